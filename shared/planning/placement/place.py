"""The placer: exact, pod by pod, for pods without a domain assignment and pods refused admission.

It tries rooms first, then nodes of this plan with space left, then a further node, or a larger
machine for one of them where pods must share a host. It checks the topology constraints at each
step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import Purchase, buy, buy_again
from shared.planning.state import PlanState, within
from shared.scheduling.topology.constraints import accepts
from shared.scheduling.topology.counts import Place, Profile, add

# Pods of one class that a single new node is bought for at once, at most.
_MOST_AT_ONCE = 512
# Steps of looking for the cheapest machine.
_PURCHASE = 200


def place(plan_state: PlanState, pod_group: PendingGroup) -> None:
    """Place as many of the pending group's pods as possible; the others stay pending."""
    while pod_group.waiting:
        before = len(pod_group.waiting)
        fill(plan_state, pod_group)
        if pod_group.waiting:
            _extend(plan_state, pod_group)
        if len(pod_group.waiting) == before:
            return


def fill(plan_state: PlanState, pod_group: PendingGroup) -> None:
    """Place waiting pods where there is space."""
    kind = pod_group.kind
    while pod_group.waiting:
        before = len(pod_group.waiting)
        for spot in _candidates(plan_state, pod_group):
            while pod_group.waiting and may_stand(plan_state, pod_group, spot):
                # Pods without rules about other pods need only one check.
                alone = kind.is_ruled or bool(pod_group.ports)
                count = 1 if alone else min(spot.fitting(pod_group), len(pod_group.waiting))
                plan_state.admit(pod_group, spot, count)
            if not pod_group.waiting:
                return
        if len(pod_group.waiting) == before or not kind.spreads:
            return


def _candidates(plan_state: PlanState, pod_group: PendingGroup) -> list[TargetNode]:
    """Return the spots with space for a pod; for pods that share a host the roomiest first."""
    cpu = pod_group.requests["cpu"]
    plan_state.work.spend(len(plan_state.spots) * (1 + pod_group.kind.rules // 8), pod_group.index)
    found = [
        spot
        for spot in plan_state.spots
        if spot.free.get("cpu", 0) >= cpu and spot.fitting(pod_group) > 0
    ]
    if pod_group.kind.with_host:
        found.sort(key=lambda spot: -min(spot.fitting(pod_group), len(pod_group.waiting)))
        whole = [spot for spot in found if spot.fitting(pod_group) >= len(pod_group.waiting)]
        if not any(_asked_for(pod_group, spot) for spot in found):
            # All of them have to stand together: a node with room for a few only would not do.
            return whole
    return found


def _asked_for(pod_group: PendingGroup, spot: TargetNode) -> bool:
    return any(
        counter.counts.get(spot.labels.get(counter.key, ""), 0) > 0
        for rule in pod_group.kind.affinities
        for counter in rule.counters
    )


def may_stand(plan_state: PlanState, pod_group: PendingGroup, spot: TargetNode) -> bool:
    """Return whether one more pod may go onto a spot as it is."""
    if spot.fitting(pod_group) < 1 or (pod_group.ports and not spot.ports_free(pod_group.ports)):
        return False
    if spot.room is not None:
        return accepts(pod_group.kind, spot.labels) and pod_group.signature.accepts(
            spot.labels, spot.taints
        )
    labels = spot.labels
    if spot.undecided:
        open_keys = spot.undecided.intersection(pod_group.kind.keys)
        labels = {**labels, **{key: spot.full[key] for key in open_keys if key in spot.full}}
    if not accepts(pod_group.kind, labels):
        return False
    return pod_group.signature in spot.signatures or not (
        spot.mask & ~plan_state.launchables.accepting(pod_group.signature)
    )


def _extend(plan_state: PlanState, pod_group: PendingGroup) -> None:
    """Buy a larger machine or a further one, whichever is cheaper for each pod it takes."""
    sellers = plan_state.launchables.sellers(pod_group.signature)
    sold_out = plan_state.sold_out() & sellers
    pod_group.turned_away |= sold_out
    steps = list(_new(plan_state, pod_group)) if sellers - sold_out else []
    if pod_group.kind.with_host:
        steps += _grown(plan_state, pod_group)
    if not steps:
        return
    if pod_group.kind.with_host:
        best = min(steps, key=lambda step: (-step.pods, step.worth))
    else:
        best = min(steps, key=lambda step: (step.worth / step.pods, step.pods))
    spot = best.spot
    if spot is None:
        spot = plan_state.open_node(best.ways, best.fallback)
    else:
        plan_state.set_ways(spot, best.ways, best.fallback)
    left = best.pods
    while left and may_stand(plan_state, pod_group, spot):
        plan_state.admit(pod_group, spot, 1)
        left -= 1
    plan_state.drop_empty()


def _new(plan_state: PlanState, pod_group: PendingGroup) -> Iterator[Purchase]:
    kind = pod_group.kind
    domains = plan_state.launchables.domains(
        pod_group.signature, kind.keys, pod_group.requests_with(())
    )
    for domain in sorted(domains, key=lambda d: (domains[d], str(d))):
        plan_state.work.spend(_PURCHASE, pod_group.index)
        labels = dict(zip(kind.keys, domain, strict=True))
        most, among, alike = _of_a_company(plan_state, pod_group, labels)
        for count in _counts(most) if most else ():
            bought = _buy(plan_state, pod_group, count, labels, among)
            if (
                alike != among
                and bought is not None
                and _most(plan_state, pod_group, labels, bought) < count
            ):
                bought = _buy(plan_state, pod_group, count, labels, alike)
            if bought is not None:
                yield replace(bought, pods=count)
                if kind.with_host:
                    break
        if most and among == plan_state.table.all and not kind.spreads:
            # Domains differ in price only, and the cheapest comes first.
            return


def _of_a_company(
    plan_state: PlanState, pod_group: PendingGroup, labels: Mapping[str, str | None]
) -> tuple[int, int, int]:
    """Return how many pods may stand on a new node of a domain, and the offerings to look at.

    Which pods of DaemonSets come with a node depends on its offering: where those of the first
    choice keep the pods away, or one that they must be near is missing, the others are tried.
    The bit masks are of the offerings that are left, and of those with the same DaemonSets' pods.
    """
    among = every = plan_state.table.all
    while single := _buy(plan_state, pod_group, 1, labels, among):
        most = _most(plan_state, pod_group, labels, single)
        alike = plan_state.with_company_of(single.ways[0]) if plan_state.daemonsets else every
        if most or alike == every:
            return most, among, alike & among
        plan_state.work.spend(_PURCHASE, pod_group.index)
        among &= ~alike
    if among == every:
        pod_group.turned_away |= _limited(plan_state, pod_group, labels)
    return 0, among, 0


def _most(
    plan_state: PlanState,
    pod_group: PendingGroup,
    labels: Mapping[str, str | None],
    bought: Purchase,
) -> int:
    """Return how many pods the constraints accept on a new node, with the pods of DaemonSets."""
    host = {keys.HOSTNAME: "\x00", **{k: v for k, v in labels.items() if v is not None}}
    return _acceptable(pod_group, host, plan_state.company(bought.ways[0]))


def _buy(
    plan_state: PlanState,
    pod_group: PendingGroup,
    count: int,
    labels: Mapping[str, str | None],
    among: int,
) -> Purchase | None:
    return buy(
        plan_state,
        signatures=(pod_group.signature,),
        requests=pod_group.requests_with((), count),
        labels=labels,
        among=among,
    )


def _limited(
    plan_state: PlanState, pod_group: PendingGroup, labels: Mapping[str, str | None]
) -> set[str]:
    """Return the provisioners whose limits leave out a machine that would hold a pod there."""
    table, left = plan_state.table, plan_state.all_left()
    mask = plan_state.launchables.accepting(pod_group.signature)
    for key, value in labels.items():
        mask &= table.labelled(key, value)
    requests = pod_group.requests_with(())
    return {
        table.offers[index].provisioner.name
        for index in {way.offer for way in table.of_mask(mask)}
        if not within(
            table.offers[index].instance_type.capacity,
            left.get(table.offers[index].provisioner.name),
        )
        and table.holds(requests, index)
    }


def _counts(most: int) -> Iterator[int]:
    """Yield how many pods to try on one node: all that may stand together, then fewer."""
    count = most
    while count > 1:
        yield count
        count = count * 3 // 4
    yield 1


def _acceptable(
    pod_group: PendingGroup, labels: Mapping[str, str], company: Sequence[Profile] = ()
) -> int:
    """Return how many pods, one after the other, the constraints accept on a node to be bought.

    Args:
        pod_group: The group of the pods.
        labels: Its host and its domains, by topology key.
        company: What pods of DaemonSets add there, if the node is new.
    """
    place_there = Place("", labels, partial=True)
    kind = pod_group.kind
    most = min(len(pod_group.waiting), _MOST_AT_ONCE)
    if pod_group.ports:
        most = min(most, 1)
    if not kind.is_ruled:
        return most
    count = 0
    for profile in company:
        add(profile, place_there)
    while count < most and accepts(kind, place_there.labels):
        add(kind.profile, place_there)
        count += 1
    add(kind.profile, place_there, -count)
    for profile in company:
        add(profile, place_there, -1)
    return count


def _grown(plan_state: PlanState, pod_group: PendingGroup) -> Iterator[Purchase]:
    """Yield larger machines for nodes of this plan."""
    spots = [spot for spot in plan_state.spots if spot.room is None]
    for spot in spots:
        plan_state.work.spend(_PURCHASE, pod_group.index)
        if pod_group.ports and not spot.ports_free(pod_group.ports):
            continue
        # What its options leave open is settled as it is for the cheapest of them.
        concerned = spot.undecided.intersection(pod_group.kind.keys)
        labels = {**spot.labels, **{key: spot.full[key] for key in concerned if key in spot.full}}
        most = _acceptable(pod_group, labels)
        settled = {key: value for key, value in labels.items() if key in plan_state.topology_keys}
        for count in _counts(most) if most else ():
            bought = buy(
                plan_state,
                signatures=(*spot.signatures, pod_group.signature),
                requests=spot.requests + pod_group.requests_with(spot.volumes, count),
                labels=settled,
                among=plan_state.table.of_variant(plan_state.table.variant(spot.ways[0].offer)),
                without=spot,
            )
            if bought is not None:
                before = spot.ways[0].offering.price_micros_per_hour
                more = max(bought.worth - before, 0)
                yield replace(bought, worth=more, pods=count, spot=spot)
                break


def shrink(plan_state: PlanState) -> None:
    """Give nodes that got fewer pods than they were packed for the cheapest machine that does."""
    for spot in plan_state.loose:
        if not spot.contents:
            continue
        bought = buy_again(plan_state, spot)
        if bought is not None and bought.price < spot.ways[0].offering.price_micros_per_hour:
            plan_state.set_ways(spot, bought.ways, bought.fallback)
    plan_state.loose.clear()


def leave_out_special(plan_state: PlanState) -> None:
    """Give nodes no special types that are for other pods of the decision, where others remain."""
    known: dict[tuple[object, ...], Purchase | None] = {}
    for spot in plan_state.spots:
        suited = plan_state.suited_to(spot)
        if not spot.mask & ~suited:
            continue
        # Without limits, what can be had does not depend on the other nodes.
        alone = spot.name if plan_state.limits else ""
        settled = tuple(spot.labels.get(key) for key in plan_state.topology_keys)
        likeness = (alone, spot.mask, suited, tuple(spot.signatures), spot.requests, settled)
        if likeness not in known:
            plan_state.work.spend(_PURCHASE, min(spot.contents))
            known[likeness] = buy_again(plan_state, spot, suited)
        bought = known[likeness]
        if bought is not None:
            plan_state.set_ways(spot, bought.ways, bought.fallback)

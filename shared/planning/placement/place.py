"""The placer: exact, pod by pod, for pods that are not packed, and packed pods that were refused.

It tries existing nodes first, then nodes of this plan with room left, then a further node or, if
pods must share a host, a larger instance for a node of this plan. It checks the topology
constraints at each step.
"""

from collections.abc import Iterator, Mapping, Sequence

from shared.model import labels as keys
from shared.model.values import replace
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.buying import PURCHASE_STEPS, Purchase, buy
from shared.planning.rules.topology.constraints import accepts
from shared.planning.rules.topology.counts import Place, Profile, add
from shared.planning.state import PlanState

# Most pods of one class for which a single new node is chosen at once.
_MOST_AT_ONCE = 512


def place(plan_state: PlanState, pod_group: PendingGroup) -> None:
    """Place as many of the pending group's pods as possible; the others stay pending."""
    while pod_group.waiting:
        before = len(pod_group.waiting)
        fill(plan_state, pod_group)
        if pod_group.waiting:
            _buy_or_grow(plan_state, pod_group)
        if len(pod_group.waiting) == before:
            return


def fill(plan_state: PlanState, pod_group: PendingGroup) -> None:
    """Place waiting pods on target nodes that have room."""
    topology = pod_group.topology
    while pod_group.waiting:
        before = len(pod_group.waiting)
        for target in _candidates(plan_state, pod_group):
            while pod_group.waiting and may_place(plan_state, pod_group, target):
                # Pods without rules about other pods need only one check.
                alone = topology.has_rules or bool(pod_group.ports)
                count = 1 if alone else min(target.fitting(pod_group), len(pod_group.waiting))
                plan_state.admit(pod_group, target, count)
            if not pod_group.waiting:
                return
        if len(pod_group.waiting) == before or not topology.spreads:
            return


def _candidates(plan_state: PlanState, pod_group: PendingGroup) -> list[TargetNode]:
    """Return target nodes with room for a pod; for pods that share a host, most room first."""
    cpu = pod_group.requests["cpu"]
    plan_state.work.spend(
        len(plan_state.targets) * (1 + pod_group.topology.rule_weight // 8), pod_group.index
    )
    found = [
        target
        for target in plan_state.targets
        if target.available.get("cpu", 0) >= cpu and target.fitting(pod_group) > 0
    ]
    if pod_group.topology.must_share_host:
        found.sort(key=lambda target: -min(target.fitting(pod_group), len(pod_group.waiting)))
        whole = [target for target in found if target.fitting(pod_group) >= len(pod_group.waiting)]
        if not any(_has_followed_pods(pod_group, target) for target in found):
            # All of them must share a host: a node with room for only a few would not do.
            return whole
    return found


def _has_followed_pods(pod_group: PendingGroup, target: TargetNode) -> bool:
    return any(
        counter.counts.get(target.labels.get(counter.key, ""), 0) > 0
        for rule in pod_group.topology.affinities
        for counter in rule.counters
    )


def may_place(plan_state: PlanState, pod_group: PendingGroup, target: TargetNode) -> bool:
    """Return whether one more pod may be placed on a target node as it is."""
    if target.fitting(pod_group) < 1 or (
        pod_group.ports and not target.ports_free(pod_group.ports)
    ):
        return False
    if target.existing is not None:
        return accepts(pod_group.topology, target.labels) and pod_group.node_constraints.accepts(
            target.labels, target.taints
        )
    labels = target.labels
    if target.undecided:
        open_keys = target.undecided.intersection(pod_group.topology.keys)
        labels = {
            **labels,
            **{key: target.all_labels[key] for key in open_keys if key in target.all_labels},
        }
    if not accepts(pod_group.topology, labels):
        return False
    return pod_group.node_constraints in target.node_constraints or not (
        target.options_mask & ~plan_state.offerings.accepting(pod_group.node_constraints)
    )


def _buy_or_grow(plan_state: PlanState, pod_group: PendingGroup) -> None:
    """Open a node or enlarge one of this plan, whichever costs less per pod it takes.

    For pods that must share a host, whichever takes most of them.
    """
    names = plan_state.offerings.provisioners_for(pod_group.node_constraints)
    at_limit = plan_state.provisioners_at_limit() & names
    pod_group.limited_provisioners |= at_limit
    purchases = list(_new_nodes(plan_state, pod_group)) if names - at_limit else []
    if pod_group.topology.must_share_host:
        purchases += _larger_instances(plan_state, pod_group)
    if not purchases:
        return
    if pod_group.topology.must_share_host:
        best = min(purchases, key=lambda purchase: (-purchase.pods, purchase.comparison_price))
    else:
        best = min(
            purchases,
            key=lambda purchase: (purchase.comparison_price / purchase.pods, purchase.pods),
        )
    target = best.target
    if target is None:
        target = plan_state.open_node(best.options, best.fallback)
    else:
        plan_state.set_options(target, best.options, best.fallback)
    left = best.pods
    while left and may_place(plan_state, pod_group, target):
        plan_state.admit(pod_group, target, 1)
        left -= 1
    plan_state.drop_empty()


def _new_nodes(plan_state: PlanState, pod_group: PendingGroup) -> Iterator[Purchase]:
    topology = pod_group.topology
    domains = plan_state.offerings.domains(
        pod_group.node_constraints, topology.keys, pod_group.requests_with(())
    )
    for domain in sorted(domains, key=lambda d: (domains[d], str(d))):
        plan_state.work.spend(PURCHASE_STEPS, pod_group.index)
        labels = dict(zip(topology.keys, domain, strict=True))
        most, among, alike = _most_and_offerings(plan_state, pod_group, labels)
        for count in _counts_to_try(most) if most else ():
            bought = _buy(plan_state, pod_group, count, labels, among)
            if (
                alike != among
                and bought is not None
                and _most_accepted(plan_state, pod_group, labels, bought) < count
            ):
                bought = _buy(plan_state, pod_group, count, labels, alike)
            if bought is not None:
                yield replace(bought, pods=count)
                if topology.must_share_host:
                    break
        if most and among == plan_state.table.all and not topology.spreads:
            # Domains differ in price only, and the cheapest comes first.
            return


def _most_and_offerings(
    plan_state: PlanState, pod_group: PendingGroup, labels: Mapping[str, str | None]
) -> tuple[int, int, int]:
    """Return how many pods fit on a new node of a domain, and two bit masks of offerings.

    Which DaemonSet pods a node gets depends on its offering: if those of the cheapest one keep the
    pods away, or lack one that they must be near, other offerings are tried. The bit masks are of
    the offerings that are left, and of those among them with the same DaemonSet pods.
    """
    among = every = plan_state.table.all
    while single := _buy(plan_state, pod_group, 1, labels, among):
        most = _most_accepted(plan_state, pod_group, labels, single)
        alike = (
            plan_state.with_same_daemonsets(single.options[0]) if plan_state.daemonsets else every
        )
        if most or alike == every:
            return most, among, alike & among
        plan_state.work.spend(PURCHASE_STEPS, pod_group.index)
        among &= ~alike
    if among == every:
        pod_group.limited_provisioners |= _limited(plan_state, pod_group, labels)
    return 0, among, 0


def _most_accepted(
    plan_state: PlanState,
    pod_group: PendingGroup,
    labels: Mapping[str, str | None],
    bought: Purchase,
) -> int:
    """Return how many pods the constraints accept on a new node with its DaemonSet pods."""
    host = {keys.HOSTNAME: "\x00", **{k: v for k, v in labels.items() if v is not None}}
    return _acceptable(pod_group, host, plan_state.daemonset_profiles(bought.options[0]))


def _buy(
    plan_state: PlanState,
    pod_group: PendingGroup,
    count: int,
    labels: Mapping[str, str | None],
    among: int,
) -> Purchase | None:
    return buy(
        plan_state,
        node_constraints_list=(pod_group.node_constraints,),
        requests=pod_group.requests_with((), count),
        labels=labels,
        among=among,
    )


def _limited(
    plan_state: PlanState, pod_group: PendingGroup, labels: Mapping[str, str | None]
) -> set[str]:
    """Return the Provisioners whose limits exclude an instance that would hold a pod there."""
    table, left = plan_state.table, plan_state.all_limits_left()
    mask = plan_state.offerings.accepting(pod_group.node_constraints)
    for key, value in labels.items():
        mask &= table.labelled(key, value)
    mask &= table.holding(pod_group.requests_with(()))
    return {
        name
        for name, own in table.by_provisioner().items()
        if name in left and mask & own & ~table.within_limits(left[name])
    }


def _counts_to_try(most: int) -> Iterator[int]:
    """Yield how many pods to try on one node: all that may share it, then fewer."""
    count = most
    while count > 1:
        yield count
        count = count * 3 // 4
    yield 1


def _acceptable(
    pod_group: PendingGroup, labels: Mapping[str, str], daemonset_profiles: Sequence[Profile] = ()
) -> int:
    """Return how many pods, one after the other, the constraints accept on a node to be launched.

    Args:
        pod_group: The group of the pods.
        labels: Its host and its domains, by topology key.
        daemonset_profiles: What DaemonSet pods add to the counts there, if the node is new.
    """
    trial = Place("", labels, is_domain=True)
    topology = pod_group.topology
    most = min(len(pod_group.waiting), _MOST_AT_ONCE)
    if pod_group.ports:
        most = min(most, 1)
    if not topology.has_rules:
        return most
    count = 0
    for profile in daemonset_profiles:
        add(profile, trial)
    while count < most and accepts(topology, trial.labels):
        add(topology.profile, trial)
        count += 1
    add(topology.profile, trial, -count)
    for profile in daemonset_profiles:
        add(profile, trial, -1)
    return count


def _larger_instances(plan_state: PlanState, pod_group: PendingGroup) -> Iterator[Purchase]:
    """Yield larger instances for nodes of this plan."""
    for target in plan_state.new_nodes:
        plan_state.work.spend(PURCHASE_STEPS, pod_group.index)
        if pod_group.ports and not target.ports_free(pod_group.ports):
            continue
        # Labels on which its options differ are settled as those of the cheapest.
        concerned = target.undecided.intersection(pod_group.topology.keys)
        labels = {
            **target.labels,
            **{key: target.all_labels[key] for key in concerned if key in target.all_labels},
        }
        most = _acceptable(pod_group, labels)
        decided = {key: value for key, value in labels.items() if key in plan_state.topology_keys}
        for count in _counts_to_try(most) if most else ():
            bought = buy(
                plan_state,
                node_constraints_list=(*target.node_constraints, pod_group.node_constraints),
                requests=target.requests + pod_group.requests_with(target.volumes, count),
                labels=decided,
                among=plan_state.table.of_variant(
                    plan_state.table.variant(target.options[0].offer)
                ),
                without=target,
            )
            if bought is not None:
                before = target.options[0].offering.price_micros_per_hour
                more = max(bought.comparison_price - before, 0)
                yield replace(bought, comparison_price=more, pods=count, target=target)
                break

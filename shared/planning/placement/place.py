"""The placer: exact, pod by pod, for what cannot be dealt and what admission turned away.

Rooms first, then nodes of this plan with space left, then a further node, or a larger machine for
one of them where pods must share a host. Every step is asked of the judge.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.planning.offerings.pending_group import Applicant
from shared.planning.offerings.target_node import Spot
from shared.planning.placement.buying import Purchase, Wanted, buy
from shared.planning.state import Board
from shared.scheduling.topology.constraints import accepts
from shared.scheduling.topology.counts import Place, Profile, add

# Pods of one class that a single new node is bought for at once, at most.
_MOST_AT_ONCE = 512
# Steps of looking for the cheapest machine.
_PURCHASE = 200


@dataclass(frozen=True, slots=True)
class _Step:
    """One way to place some pods: a purchase for a node that is grown, or a new one."""

    price: int
    pods: int
    spot: Spot | None
    purchase: Purchase
    domain: Mapping[str, str | None]


def place(board: Board, applicant: Applicant) -> None:
    """Place as many of the applicant's waiting pods as can be; the others keep waiting."""
    while applicant.waiting:
        before = len(applicant.waiting)
        fill(board, applicant)
        if applicant.waiting:
            _extend(board, applicant)
        if len(applicant.waiting) == before:
            return


def fill(board: Board, applicant: Applicant) -> None:
    """Place waiting pods where there is space."""
    kind = applicant.stance.kind
    while applicant.waiting:
        before = len(applicant.waiting)
        for spot in _candidates(board, applicant):
            while applicant.waiting and _may_stand(board, applicant, spot):
                # Pods that look at nobody need no second question.
                alone = kind.is_ruled or bool(applicant.ports)
                count = 1 if alone else min(spot.fitting(applicant), len(applicant.waiting))
                board.admit(applicant, spot, count)
            if not applicant.waiting:
                return
        if len(applicant.waiting) == before or not kind.spreads:
            return


def _candidates(board: Board, applicant: Applicant) -> list[Spot]:
    """Return the spots with space for a pod; for pods that share a host the roomiest first."""
    cpu = applicant.requests["cpu"]
    board.work.spend(len(board.spots) * (1 + applicant.stance.kind.rules // 8), applicant.index)
    found = [
        spot
        for spot in board.spots
        if spot.free.get("cpu", 0) >= cpu and spot.fitting(applicant) > 0
    ]
    if applicant.stance.kind.with_host:
        found.sort(key=lambda spot: -min(spot.fitting(applicant), len(applicant.waiting)))
        whole = [spot for spot in found if spot.fitting(applicant) >= len(applicant.waiting)]
        if not any(_asked_for(applicant, spot) for spot in found):
            # All of them have to stand together: a node with room for a few only would not do.
            return whole
    return found


def _asked_for(applicant: Applicant, spot: Spot) -> bool:
    return any(
        counter.counts.get(spot.labels.get(counter.key, ""), 0) > 0
        for rule in applicant.stance.kind.affinities
        for counter in rule.counters
    )


def _may_stand(board: Board, applicant: Applicant, spot: Spot) -> bool:
    """Return whether one more pod may go onto a spot as it is."""
    if spot.fitting(applicant) < 1 or (applicant.ports and not spot.ports_free(applicant.ports)):
        return False
    stance = applicant.stance
    if spot.room is not None:
        return accepts(stance.kind, spot.labels) and stance.signature.accepts(
            spot.labels, spot.taints
        )
    labels = spot.labels
    if spot.undecided:
        open_keys = spot.undecided.intersection(stance.kind.keys)
        labels = {**labels, **{key: spot.full[key] for key in open_keys if key in spot.full}}
    if not accepts(stance.kind, labels):
        return False
    return stance.signature in spot.signatures or not (
        spot.mask & ~board.wares.accepting(stance.signature)
    )


def _extend(board: Board, applicant: Applicant) -> None:
    """Buy a larger machine or a further one, whichever is cheaper for each pod it takes."""
    sellers = board.wares.sellers(applicant.stance.signature)
    sold_out = board.sold_out() & sellers
    applicant.turned_away |= sold_out
    steps = list(_new(board, applicant)) if sellers - sold_out else []
    if applicant.stance.kind.with_host:
        steps += _grown(board, applicant)
    if not steps:
        return
    if applicant.stance.kind.with_host:
        best = min(steps, key=lambda step: (-step.pods, step.price))
    else:
        best = min(steps, key=lambda step: (step.price / step.pods, step.pods))
    spot = best.spot
    if spot is None:
        spot = board.open_node(best.purchase.ways, best.purchase.fallback)
    else:
        board.set_ways(spot, best.purchase.ways, best.purchase.fallback)
    for _ in range(best.pods):
        if _may_stand(board, applicant, spot):
            board.admit(applicant, spot, 1)
    board.drop_empty()


def _new(board: Board, applicant: Applicant) -> Iterator[_Step]:
    kind = applicant.stance.kind
    domains = board.wares.domains(
        applicant.stance.signature, kind.keys, applicant.requests_with(())
    )
    sellers = board.wares.sellers(applicant.stance.signature)
    for domain in sorted(domains, key=lambda d: (domains[d], str(d))):
        board.work.spend(_PURCHASE, applicant.index)
        labels = dict(zip(kind.keys, domain, strict=True))
        single = _buy(board, applicant, 1, labels)
        if single is None:
            applicant.turned_away |= sellers & board.limits.keys()
            continue
        most = _acceptable(applicant, labels, board.company(single.ways[0]))
        if not most:
            continue
        for count in _counts(most):
            bought = _buy(board, applicant, count, labels)
            if bought is not None:
                yield _Step(bought.worth, count, None, bought, labels)
                if kind.with_host:
                    break
        if not kind.spreads:
            # Domains differ in price only, and the cheapest comes first.
            return


def _buy(
    board: Board, applicant: Applicant, count: int, labels: Mapping[str, str | None]
) -> Purchase | None:
    wanted = Wanted(
        signatures=(applicant.stance.signature,),
        requests=applicant.requests_with((), count),
        labels=labels,
    )
    return buy(board, wanted)


def _counts(most: int) -> Iterator[int]:
    """Yield how many pods to try on one node: all that may stand together, then fewer."""
    count = most
    while count > 1:
        yield count
        count = count * 3 // 4
    yield 1


def _acceptable(
    applicant: Applicant, domain: Mapping[str, str | None], company: Sequence[Profile]
) -> int:
    """Return how many pods, one after the other, the judge accepts on a new node in a domain.

    Args:
        one: Whose pods.
        domain: Where the node would be.
        company: What pods of DaemonSets add there.
    """
    labels = {key: value for key, value in domain.items() if value is not None}
    place_there = Place("", {**labels, keys.HOSTNAME: "\x00"}, partial=True)
    kind = applicant.stance.kind
    most = min(len(applicant.waiting), _MOST_AT_ONCE)
    if applicant.ports:
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


def _grown(board: Board, applicant: Applicant) -> Iterator[_Step]:
    """Yield larger machines for nodes of this plan."""
    stance = applicant.stance
    spots = [spot for spot in board.spots if spot.room is None]
    for spot in spots:
        board.work.spend(_PURCHASE, applicant.index)
        if applicant.ports and not spot.ports_free(applicant.ports):
            continue
        labels = spot.labels
        if not accepts(stance.kind, labels) or set(stance.kind.keys) - labels.keys():
            continue
        settled = {key: value for key, value in labels.items() if key in board.topology_keys}
        for count in _counts(len(applicant.waiting)):
            wanted = Wanted(
                signatures=(*spot.signatures, stance.signature),
                requests=spot.requests + applicant.requests_with(spot.volumes, count),
                labels=settled,
                variant=board.wares.variant(spot.ways[0].offer),
            )
            bought = buy(board, wanted, without=spot)
            if bought is not None:
                before = spot.ways[0].offering.price_micros_per_hour
                yield _Step(max(bought.worth - before, 0), count, spot, bought, settled)
                break


def shrink(board: Board) -> None:
    """Give nodes that got fewer pods than they were packed for the cheapest machine that does."""
    for spot in board.loose:
        if not spot.contents:
            continue
        wanted = Wanted(
            signatures=tuple(spot.signatures),
            requests=spot.requests,
            labels={k: v for k, v in spot.labels.items() if k in board.topology_keys},
            variant=board.wares.variant(spot.ways[0].offer),
        )
        bought = buy(board, wanted, without=spot)
        if bought is not None and bought.price < spot.ways[0].offering.price_micros_per_hour:
            board.set_ways(spot, bought.ways, bought.fallback)
    board.loose.clear()

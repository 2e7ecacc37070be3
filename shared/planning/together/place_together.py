"""Placing a small batch whose pods must be near each other: zones and nodes are chosen for all.

A pod alone cannot tell where it should go: the zone that is cheapest for it may be closed to those
that must be near it, and the node that is cheapest may have no room for them. So the pods of all
groups are assigned to domains and nodes at once: the costs of every part of the batch are known by
domain, assignments are looked at from the cheapest on, and the first is taken whose pods can be
bound one after the other.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.place import may_stand
from shared.planning.state import PlanState
from shared.planning.together.batch import Batch, is_tied
from shared.planning.together.costs import ENDLESS, DomainCosts, Prices, domains_of, new_place
from shared.scheduling.topology.constraints import accepts
from shared.scheduling.topology.counts import Place, add

# Count vectors of a batch, nodes with room and domains, at most.
_VECTORS: Final = 200
_SPOTS: Final = 8
_DOMAINS: Final = 12
# Assignments that are looked at, those of which it is tried to bind them, and orders tried for one.
# Of six pods under four rules at most 106, 9 and 10 were seen.
_ASSIGNMENTS: Final = 5_000
_TRIES: Final = 60
_ORDERS: Final = 300

# Nodes with their vectors: None and a domain for a new one.
_Node = tuple[TargetNode | None, DomainCosts, int]
_Assignment = Sequence[tuple[DomainCosts, int]]
# Pods in the order in which they are bound: (place of a node, place of a group).
_Order = list[tuple[int, int]]


class _TooManyError(Exception):
    """There are too many assignments to look at."""


def place_together(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> bool:
    """Place a small batch whose pods look at each other, on nodes that stand and new ones.

    Returns:
        Whether pods that still wait have no place beside those that were placed. If not, they are
        to be placed otherwise: the batch is too large, or limits may have refused a node.
    """
    waiting = [pod_group for pod_group in pod_groups if pod_group.waiting]
    if not _is_small(waiting) or not is_tied(waiting):
        return False
    # Nodes of the plan may have to grow; pods of DaemonSets may count on new ones.
    if plan_state.order or plan_state.daemonsets:
        return False
    spots = [spot for spot in plan_state.spots if _is_open(waiting, spot)]
    if len(spots) > _SPOTS:
        return False
    batch = Batch(waiting)
    prices = Prices(plan_state, batch)
    domains = domains_of(prices, spots)
    if len(domains) > _DOMAINS:
        return False
    steps = len(batch.counts) * len(domains)
    plan_state.work.spend_each({entry.index: steps for entry in waiting})
    try:
        best = _cheapest(prices, domains)
    except _TooManyError:
        return False
    if best is not None:
        _apply(prices, *best)
    return not plan_state.limits


def _cheapest(
    prices: Prices, domains: Sequence[tuple[Mapping[str, str | None], Sequence[TargetNode]]]
) -> tuple[list[_Node], _Order] | None:
    """Return the nodes and the order of the cheapest assignment that leaves the fewest pods.

    Args:
        prices: Of new nodes.
        domains: Their labels, and the nodes with room there.

    Raises:
        _TooManyError: If too many assignments had to be looked at.
    """
    batch = prices.batch
    hosts = {spot.labels.get(keys.HOSTNAME, "") for _, spots in domains for spot in spots}
    levels = batch.floors(hosts)
    tables: dict[tuple[int, ...], list[list[DomainCosts]]] = {}
    for targets in _targets(batch):
        ways = []
        for target in targets:
            gathered = batch.gathered(target)
            if gathered not in tables:
                tables[gathered] = [
                    [
                        DomainCosts(prices, labels, spots, floors, target)
                        for labels, spots in domains
                    ]
                    for floors in levels
                ]
            ways += [_best(prices, costs, target) for costs in tables[gathered]]
        best = min((way for way in ways if way), key=lambda way: way[0], default=None)
        if best is not None:
            return best[1:]
    return None


def _is_small(pod_groups: Sequence[PendingGroup]) -> bool:
    vectors = 1
    for pod_group in pod_groups:
        vectors *= len(pod_group.waiting) + 1
        if vectors > _VECTORS:
            return False
    return True


def _is_open(pod_groups: Sequence[PendingGroup], spot: TargetNode) -> bool:
    return any(
        spot.fitting(pod_group) and pod_group.signature.accepts(spot.labels, spot.taints)
        for pod_group in pod_groups
    )


def _targets(batch: Batch) -> Iterator[list[int]]:
    """Yield the vectors that may be placed, those that leave the same together, fewest first."""
    by_left: dict[tuple[int, ...], list[int]] = {}
    ranks = sorted({-pod_group.priority for pod_group in batch.pod_groups})
    for vector in range(1, len(batch.counts)):
        left = dict.fromkeys(ranks, 0)
        for place, pod_group in enumerate(batch.pod_groups):
            missing = batch.counts[batch.whole][place] - batch.counts[vector][place]
            left[-pod_group.priority] += missing
        by_left.setdefault(tuple(left[rank] for rank in ranks), []).append(vector)
    for key in sorted(by_left):
        yield by_left[key]


def _best(
    prices: Prices, domains: Sequence[DomainCosts], target: int
) -> tuple[int, list[_Node], _Order] | None:
    """Return the cheapest assignment of a vector that can be bound: its cost, nodes and order."""
    batch, tries = prices.batch, 0
    for cost, assignment in _assignments(batch, domains, target):
        if not _may_be(batch, assignment, target) or not _is_even(batch, assignment):
            continue
        nodes = [
            (spot, costs, vector)
            for costs, some in assignment
            for spot, vector in costs.nodes(some)
        ]
        order = _order(prices, nodes)
        if order is not None:
            return cost, nodes, order
        tries += 1
        if tries == _TRIES:
            raise _TooManyError
    return None


def _assignments(
    batch: Batch, domains: Sequence[DomainCosts], target: int
) -> Iterator[tuple[int, _Assignment]]:
    """Yield assignments of a vector to domains, the cheapest first; rules over one key are kept."""
    rest = _least_of_rest(batch, domains, target)
    queue: list[tuple[int, int, int, tuple[int, ...]]] = [
        (rest[0].get(target, ENDLESS), 0, target, ())
    ]
    over = tuple(domains[0].labels) if domains else ()
    looked = 0
    while queue:
        cost, at, left, assigned = heapq.heappop(queue)
        if cost >= ENDLESS:
            return
        looked += 1
        if looked > _ASSIGNMENTS:
            raise _TooManyError
        if at == len(domains):
            yield (
                cost,
                [(costs, part) for costs, part in zip(domains, assigned, strict=True) if part],
            )
            continue
        costs = domains[at]
        spent = cost - rest[at][left]
        for part in batch.parts[left]:
            after = rest[at + 1].get(left - part, ENDLESS)
            if costs.least[part] + after >= ENDLESS:
                continue
            if (
                part
                and len(over) == 1
                and not batch.may_share(over[0], costs.labels[over[0]], part, target)
            ):
                continue
            total = spent + costs.least[part] + after
            heapq.heappush(queue, (total, at + 1, left - part, (*assigned, part)))


def _least_of_rest(
    batch: Batch, domains: Sequence[DomainCosts], target: int
) -> list[dict[int, int]]:
    """Return the least cost of each vector in the domains from each on, whatever the rules."""
    found: list[dict[int, int]] = [{0: 0}]
    for costs in reversed(domains):
        after = found[-1]
        found.append(
            {
                vector: min(
                    costs.least[part] + after.get(vector - part, ENDLESS)
                    for part in batch.parts[vector]
                )
                for vector in batch.parts[target]
            }
        )
    return found[::-1]


def _by_value(assignment: _Assignment, key: str) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for costs, vector in assignment:
        value = costs.labels[key]
        found[value] = found.get(value, 0) + vector
    return found


def _may_be(batch: Batch, assignment: _Assignment, target: int) -> bool:
    """Return whether affinity allows an assignment over several topology keys."""
    return all(
        batch.may_share(key, value, vector, target)
        for key in assignment[0][0].labels
        for value, vector in _by_value(assignment, key).items()
    )


def _is_even(batch: Batch, assignment: _Assignment) -> bool:
    return all(
        batch.ends_even(
            key, {value: vector for value, vector in _by_value(assignment, key).items() if value}
        )
        for key in (assignment[0][0].labels if assignment else ())
    )


def _order(prices: Prices, nodes: Sequence[_Node]) -> _Order | None:
    """Return an order of binding, as (node, group), in which each pod is accepted, or None."""
    plan_state, batch = prices.plan_state, prices.batch
    places = [
        spot or _new_place(prices, number, costs.labels, vector)
        for number, (spot, costs, vector) in enumerate(nodes)
    ]
    new = [place for place, (spot, _, _) in zip(places, nodes, strict=True) if spot is None]
    for place in new:
        plan_state.topology_counts.open(place)
    left = [list(batch.counts[vector]) for _, _, vector in nodes]
    order: _Order = []
    found = _Ordering(batch, places, left, order).go()
    for number, group in order:
        add(batch.pod_groups[group].kind.profile, places[number], -1)
    for place in new:
        plan_state.topology_counts.close(place)
    return order if found else None


def _new_place(prices: Prices, number: int, labels: Mapping[str, str | None], vector: int) -> Place:
    bought = prices.of(labels, vector)
    assert bought is not None
    return new_place(prices, bought, labels, f"\x00together{number}")


class _Ordering:
    """The search for an order of binding, pod by pod, which goes back where none is accepted."""

    def __init__(
        self,
        batch: Batch,
        places: Sequence[Place],
        left: list[list[int]],
        order: _Order,
    ) -> None:
        self._kinds = [pod_group.kind for pod_group in batch.pod_groups]
        self._places = places
        self._left = left
        self._order = order
        self._seen: set[tuple[tuple[int, ...], ...]] = set()

    def go(self) -> bool:
        """Return whether the pods that are left can be bound; those bound are in the order."""
        state = tuple(map(tuple, self._left))
        if not any(map(any, state)):
            return True
        if state in self._seen or len(self._seen) == _ORDERS:
            return False
        self._seen.add(state)
        for number, counts in enumerate(self._left):
            for group, count in enumerate(counts):
                if not count or not accepts(self._kinds[group], self._places[number].labels):
                    continue
                counts[group] -= 1
                add(self._kinds[group].profile, self._places[number])
                self._order.append((number, group))
                if self.go():
                    return True
                self._order.pop()
                add(self._kinds[group].profile, self._places[number], -1)
                counts[group] += 1
        return False


def _apply(prices: Prices, nodes: Sequence[_Node], order: _Order) -> None:
    """Open the nodes and place the pods in their order; what limits refuse stays pending."""
    plan_state, batch = prices.plan_state, prices.batch
    spots: list[TargetNode | None] = []
    for spot, costs, vector in nodes:
        bought = None
        if spot is None:
            concerned = {key for entry in batch.present(vector) for key in entry.kind.keys}
            labels = {key: costs.labels[key] for key in costs.labels if key in concerned}
            bought = Prices(plan_state, batch).of(labels, vector)
        spots.append(plan_state.open_node(bought.ways, bought.fallback) if bought else spot)
    for number, group in order:
        spot, pod_group = spots[number], batch.pod_groups[group]
        if spot is not None and may_stand(plan_state, pod_group, spot):
            plan_state.admit(pod_group, spot, 1)
    plan_state.drop_empty()

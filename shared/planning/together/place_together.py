"""Placing a small batch whose pods must be near each other: zones and nodes are chosen for all.

The best place of a pod depends on others: the zone that is cheapest for it may be closed to pods
that must be near it, and the node that is cheapest may have no room for them. So the pods of all
groups are assigned to domains and nodes at once: the costs of every part of the batch are known by
domain, assignments are tried from the cheapest on, and the first is taken whose pods can be bound
one after the other.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.placement.place import may_place
from shared.planning.rules.topology.constraints import accepts
from shared.planning.rules.topology.counts import Place, add
from shared.planning.state import PlanState
from shared.planning.together.batch import Batch, are_interdependent
from shared.planning.together.costs import INFINITE, DomainCosts, NodePrices, domains_of, new_place

# Most count vectors of a batch, nodes with room, and domains.
_VECTORS: Final = 200
_TARGETS: Final = 8
_DOMAINS: Final = 12
# Most assignments that are checked, assignments for which a binding order is searched, and orders
# tried for one. Six pods under four rules needed at most 106, 9 and 10.
_ASSIGNMENTS: Final = 5_000
_TRIES: Final = 60
_ORDERS: Final = 300

# Nodes (None for a new one), each with its domain and vector.
_AssignedNode = tuple[TargetNode | None, DomainCosts, int]
_Assignment = Sequence[tuple[DomainCosts, int]]
# Pods in the order in which they are bound: (index of a node, index of a group).
_Order = list[tuple[int, int]]


class _TooManyError(Exception):
    """There are too many assignments to check."""


def place_together(plan_state: PlanState, pod_groups: Sequence[PendingGroup]) -> bool:
    """Place a small batch of pods whose rules refer to each other, on existing and new nodes.

    Returns:
        True if pods that still wait have no place beside those that were placed. If False, they
        must be placed in another way: this one does not apply, or limits may have refused a node.
    """
    waiting = [pod_group for pod_group in pod_groups if pod_group.waiting]
    if not _is_small(waiting) or not are_interdependent(waiting):
        return False
    # Nodes of this plan may need larger instances; DaemonSet pods may count on new nodes.
    if plan_state.binding_order or plan_state.daemonsets:
        return False
    targets = [target for target in plan_state.targets if _is_open(waiting, target)]
    if len(targets) > _TARGETS:
        return False
    batch = Batch(waiting)
    prices = NodePrices(plan_state, batch)
    domains = domains_of(prices, targets)
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
    prices: NodePrices, domains: Sequence[tuple[Mapping[str, str | None], Sequence[TargetNode]]]
) -> tuple[list[_AssignedNode], _Order] | None:
    """Return the nodes and the order of the cheapest assignment that leaves the fewest pods.

    Args:
        prices: Of new nodes.
        domains: Their labels, and the nodes with room there.

    Raises:
        _TooManyError: If too many assignments would have to be checked.
    """
    batch = prices.batch
    hosts = {target.labels.get(keys.HOSTNAME, "") for _, targets in domains for target in targets}
    minimums_to_try = batch.minimums(hosts)
    tables: dict[tuple[int, ...], list[list[DomainCosts]]] = {}
    for candidates in _vectors_to_place(batch):
        solutions = []
        for wanted in candidates:
            gathered = batch.co_located(wanted)
            if gathered not in tables:
                tables[gathered] = [
                    [
                        DomainCosts(prices, labels, targets, minimums, wanted)
                        for labels, targets in domains
                    ]
                    for minimums in minimums_to_try
                ]
            solutions += [_best(prices, costs, wanted) for costs in tables[gathered]]
        best = min(
            (solution for solution in solutions if solution),
            key=lambda solution: solution[0],
            default=None,
        )
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


def _is_open(pod_groups: Sequence[PendingGroup], target: TargetNode) -> bool:
    return any(
        target.fitting(pod_group)
        and pod_group.node_constraints.accepts(target.labels, target.taints)
        for pod_group in pod_groups
    )


def _vectors_to_place(batch: Batch) -> Iterator[list[int]]:
    """Yield the vectors to place, those that leave equally many pods together, fewest first."""
    by_left: dict[tuple[int, ...], list[int]] = {}
    ranks = sorted({-pod_group.priority for pod_group in batch.pod_groups})
    for vector in range(1, len(batch.counts)):
        left = dict.fromkeys(ranks, 0)
        for position, pod_group in enumerate(batch.pod_groups):
            missing = batch.counts[batch.all_pods][position] - batch.counts[vector][position]
            left[-pod_group.priority] += missing
        by_left.setdefault(tuple(left[rank] for rank in ranks), []).append(vector)
    for key in sorted(by_left):
        yield by_left[key]


def _best(
    prices: NodePrices, domains: Sequence[DomainCosts], wanted: int
) -> tuple[int, list[_AssignedNode], _Order] | None:
    """Return the cheapest assignment of a vector that can be bound: its cost, nodes and order."""
    batch, tries = prices.batch, 0
    for cost, assignment in _assignments(batch, domains, wanted):
        if not _may_be(batch, assignment, wanted) or not _is_even(batch, assignment):
            continue
        nodes = [
            (target, costs, vector)
            for costs, some in assignment
            for target, vector in costs.nodes(some)
        ]
        order = _order(prices, nodes)
        if order is not None:
            return cost, nodes, order
        tries += 1
        if tries == _TRIES:
            raise _TooManyError
    return None


def _assignments(
    batch: Batch, domains: Sequence[DomainCosts], wanted: int
) -> Iterator[tuple[int, _Assignment]]:
    """Yield assignments of a vector to domains, cheapest first; affinity over a sole key holds."""
    rest = _least_of_rest(batch, domains, wanted)
    queue: list[tuple[int, int, int, tuple[int, ...]]] = [
        (rest[0].get(wanted, INFINITE), 0, wanted, ())
    ]
    topology_keys = tuple(domains[0].labels) if domains else ()
    looked = 0
    while queue:
        cost, at, left, assigned = heapq.heappop(queue)
        if cost >= INFINITE:
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
            after = rest[at + 1].get(left - part, INFINITE)
            if costs.least[part] + after >= INFINITE:
                continue
            if (
                part
                and len(topology_keys) == 1
                and not batch.may_share(
                    topology_keys[0], costs.labels[topology_keys[0]], part, wanted
                )
            ):
                continue
            total = spent + costs.least[part] + after
            heapq.heappush(queue, (total, at + 1, left - part, (*assigned, part)))


def _least_of_rest(
    batch: Batch, domains: Sequence[DomainCosts], wanted: int
) -> list[dict[int, int]]:
    """Return, by domain, the least cost of each vector in it and later ones; rules are ignored."""
    found: list[dict[int, int]] = [{0: 0}]
    for costs in reversed(domains):
        after = found[-1]
        found.append(
            {
                vector: min(
                    costs.least[part] + after.get(vector - part, INFINITE)
                    for part in batch.parts[vector]
                )
                for vector in batch.parts[wanted]
            }
        )
    return found[::-1]


def _by_value(assignment: _Assignment, key: str) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for costs, vector in assignment:
        value = costs.labels[key]
        found[value] = found.get(value, 0) + vector
    return found


def _may_be(batch: Batch, assignment: _Assignment, wanted: int) -> bool:
    """Return whether affinity allows an assignment over several topology keys."""
    return all(
        batch.may_share(key, value, vector, wanted)
        for key in assignment[0][0].labels
        for value, vector in _by_value(assignment, key).items()
    )


def _is_even(batch: Batch, assignment: _Assignment) -> bool:
    return all(
        batch.ends_within_skew(
            key, {value: vector for value, vector in _by_value(assignment, key).items() if value}
        )
        for key in (assignment[0][0].labels if assignment else ())
    )


def _order(prices: NodePrices, nodes: Sequence[_AssignedNode]) -> _Order | None:
    """Return an order of binding, as (node, group), in which each pod is accepted, or None."""
    plan_state, batch = prices.plan_state, prices.batch
    places = [
        target or _new_place(prices, number, costs.labels, vector)
        for number, (target, costs, vector) in enumerate(nodes)
    ]
    new = [place for place, (target, _, _) in zip(places, nodes, strict=True) if target is None]
    for place in new:
        plan_state.topology_counts.open(place)
    left = [list(batch.counts[vector]) for _, _, vector in nodes]
    order: _Order = []
    found = _Ordering(batch, places, left, order).go()
    for number, group_index in order:
        add(batch.pod_groups[group_index].topology.profile, places[number], -1)
    for place in new:
        plan_state.topology_counts.close(place)
    return order if found else None


def _new_place(
    prices: NodePrices, number: int, labels: Mapping[str, str | None], vector: int
) -> Place:
    bought = prices.of(labels, vector)
    assert bought is not None
    return new_place(prices, bought, labels, f"\x00together{number}")


class _Ordering:
    """A backtracking search for an order of binding, pod by pod."""

    def __init__(
        self,
        batch: Batch,
        places: Sequence[Place],
        left: list[list[int]],
        order: _Order,
    ) -> None:
        self._topologies = [pod_group.topology for pod_group in batch.pod_groups]
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
            for group_index, count in enumerate(counts):
                if not count or not accepts(
                    self._topologies[group_index], self._places[number].labels
                ):
                    continue
                counts[group_index] -= 1
                add(self._topologies[group_index].profile, self._places[number])
                self._order.append((number, group_index))
                if self.go():
                    return True
                self._order.pop()
                add(self._topologies[group_index].profile, self._places[number], -1)
                counts[group_index] += 1
        return False


def _apply(prices: NodePrices, nodes: Sequence[_AssignedNode], order: _Order) -> None:
    """Open the nodes and place the pods in their order; what limits refuse stays pending."""
    plan_state, batch = prices.plan_state, prices.batch
    targets: list[TargetNode | None] = []
    for target, costs, vector in nodes:
        bought = None
        if target is None:
            concerned = {key for entry in batch.present(vector) for key in entry.topology.keys}
            labels = {key: costs.labels[key] for key in costs.labels if key in concerned}
            bought = NodePrices(plan_state, batch).of(labels, vector)
        targets.append(plan_state.open_node(bought.options, bought.fallback) if bought else target)
    for number, group_index in order:
        target, pod_group = targets[number], batch.pod_groups[group_index]
        if target is not None and may_place(plan_state, pod_group, target):
            plan_state.admit(pod_group, target, 1)
    plan_state.drop_empty()

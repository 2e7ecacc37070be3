"""Merging launch groups: nodes with the same list of options take one CreateFleet call.

Each packing keeps to `max_launch_groups`; nodes that are opened later, or pinned to a zone, may
exceed it. Then groups whose pods fit the options of another group take its list, the cheapest
change first, as long as all changes together cost little.
"""

import heapq
from typing import Final

from msgspec import Struct

from shared.planning.offerings.target_node import TargetNode
from shared.planning.state import PlanState

_THOUSAND: Final = 1000


class _LaunchGroup(Struct, eq=False):
    """Nodes with the same list of options.

    Attributes:
        allowed_mask: Bit mask of the launchable offerings that all their pods accept and that suit
            some of them, in the domains where the pods count.
        used: By resource, the most that pods use on any of the nodes.
    """

    number: int
    targets: list[TargetNode]
    allowed_mask: int
    used: dict[str, int]

    @property
    def price(self) -> int:
        return self.targets[0].options[0].offering.price_micros_per_hour

    def fits(self, other: "_LaunchGroup") -> bool:
        """Return whether these nodes may take the options of another group."""
        target = other.targets[0]
        if target.options_mask & ~self.allowed_mask:
            return False
        least = {name: left + target.used.get(name, 0) for name, left in target.available.items()}
        return all(amount <= least.get(name, 0) for name, amount in self.used.items())


def merge_launch_groups(plan_state: PlanState) -> None:
    """Merge launch groups until there are at most `max_launch_groups`, if that costs little."""
    most = plan_state.settings.max_launch_groups
    groups = _groups_of(plan_state)
    if not most or len(groups) <= most:
        return
    # Entries are (added cost, number of the group to merge, number of the group it joins).
    queue = [
        step
        for number in groups
        if (step := _cheapest_merge(plan_state, groups, number)) is not None
    ]
    heapq.heapify(queue)
    left = plan_state.cost() * plan_state.settings.fewer_groups_permille // _THOUSAND
    while queue and len(groups) > most:
        step = heapq.heappop(queue)
        cost, number, into = step
        if cost > left:
            break
        best = _cheapest_merge(plan_state, groups, number)
        if best == step:
            left -= cost
            _merge_into(plan_state, groups.pop(number), groups[into])
        elif best is not None:
            # The group it was to join is gone, or its nodes hold more by now.
            heapq.heappush(queue, best)


def _groups_of(plan_state: PlanState) -> dict[int, _LaunchGroup]:
    found: dict[int, _LaunchGroup] = {}
    for target in plan_state.new_nodes:
        group = found.setdefault(target.options_mask, _LaunchGroup(len(found), [], -1, {}))
        _add(plan_state, group, target)
    return {group.number: group for group in found.values()}


def _add(plan_state: PlanState, group: _LaunchGroup, target: TargetNode) -> None:
    offerings = plan_state.offerings
    group.targets.append(target)
    group.allowed_mask &= offerings.table.of_variant(
        offerings.table.variant(target.options[0].offer)
    )
    group.allowed_mask &= plan_state.suited_to(target)
    for node_constraints in target.node_constraints:
        group.allowed_mask &= offerings.accepting(node_constraints)
    for key in plan_state.topology_keys:
        if key in target.labels:
            group.allowed_mask &= offerings.table.labelled(key, target.labels[key])
    for name, amount in target.used.items():
        group.used[name] = max(amount, group.used.get(name, 0))


def _cheapest_merge(
    plan_state: PlanState, groups: dict[int, _LaunchGroup], number: int
) -> tuple[int, int, int] | None:
    """Return the cheapest merge of a group: (added cost, its number, the other's number)."""
    group = groups[number]
    plan_state.work.spend_each(dict.fromkeys(group.targets[0].contents, len(groups)))
    steps = [
        (max(other.price - group.price, 0) * len(group.targets), number, other.number)
        for other in groups.values()
        if other is not group and group.fits(other) and _is_within_limits(plan_state, group, other)
    ]
    return min(steps, default=None)


def _is_within_limits(plan_state: PlanState, group: _LaunchGroup, other: _LaunchGroup) -> bool:
    """Return whether limits allow the larger instances."""
    offer = plan_state.table.offers[group.targets[0].options[0].offer]
    left = plan_state.limits_left(offer.provisioner.name)
    if left is None:
        return True
    before, after = group.targets[0].reserved, other.targets[0].reserved
    return all(
        (after[name] - before[name]) * len(group.targets) <= max(amount, 0)
        for name, amount in left.items
    )


def _merge_into(plan_state: PlanState, group: _LaunchGroup, other: _LaunchGroup) -> None:
    options, fallback = other.targets[0].options, other.targets[0].fallback
    for target in group.targets:
        plan_state.set_options(target, options, fallback)
        _add(plan_state, other, target)

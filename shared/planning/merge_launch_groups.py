"""Joining: few lists of options, since each list of a plan is one CreateFleet call.

The packer keeps to the number in each packing; nodes that came later, or were pinned to some zone,
may go beyond it. Those whose pods can also run on what another node is to be bought as then take
that node's list, the cheapest change first, as long as all of them cost little.
"""

import heapq
from dataclasses import dataclass
from typing import Final

from shared.planning.offerings.target_node import TargetNode
from shared.planning.state import PlanState

_THOUSAND: Final = 1000


@dataclass(slots=True, eq=False)
class _List:
    """Nodes with the same list of options.

    Attributes:
        allowed: Bit mask of the launchable offerings that all their pods accept and some need, in
            the domains they count in.
        used: The most that pods take on any of them, by resource.
    """

    number: int
    spots: list[TargetNode]
    allowed: int
    used: dict[str, int]

    @property
    def price(self) -> int:
        return self.spots[0].ways[0].offering.price_micros_per_hour

    def takes(self, other: "_List") -> bool:
        """Return whether the nodes may have another one's list instead."""
        offer = other.spots[0]
        if offer.mask & ~self.allowed:
            return False
        least = {name: left + offer.used.get(name, 0) for name, left in offer.free.items()}
        return all(amount <= least.get(name, 0) for name, amount in self.used.items())


def merge_launch_groups(plan_state: PlanState) -> None:
    """Join lists of options until there are no more than the settings want, if it costs little."""
    most = plan_state.settings.max_launch_groups
    lists = _lists(plan_state)
    if not most or len(lists) <= most:
        return
    # What it costs more to give the nodes of one list another one, then both lists' numbers.
    queue = [step for number in lists if (step := _best(plan_state, lists, number)) is not None]
    heapq.heapify(queue)
    left = plan_state.cost() * plan_state.settings.fewer_groups_permille // _THOUSAND
    while queue and len(lists) > most:
        step = heapq.heappop(queue)
        cost, number, target = step
        if cost > left:
            break
        best = _best(plan_state, lists, number)
        if best == step:
            left -= cost
            _adopt(plan_state, lists.pop(number), lists[target])
        elif best is not None:
            # What it was to be joined with is gone, or holds more by now.
            heapq.heappush(queue, best)


def _lists(plan_state: PlanState) -> dict[int, _List]:
    found: dict[int, _List] = {}
    for spot in plan_state.spots:
        if spot.room is None:
            options = found.setdefault(spot.mask, _List(len(found), [], -1, {}))
            _add(plan_state, options, spot)
    return {options.number: options for options in found.values()}


def _add(plan_state: PlanState, options: _List, spot: TargetNode) -> None:
    launchables = plan_state.launchables
    options.spots.append(spot)
    options.allowed &= launchables.table.of_variant(launchables.table.variant(spot.ways[0].offer))
    options.allowed &= plan_state.suited_to(spot)
    for signature in spot.signatures:
        options.allowed &= launchables.accepting(signature)
    for key in plan_state.topology_keys:
        if key in spot.labels:
            options.allowed &= launchables.table.labelled(key, spot.labels[key])
    for name, amount in spot.used.items():
        options.used[name] = max(amount, options.used.get(name, 0))


def _best(
    plan_state: PlanState, lists: dict[int, _List], number: int
) -> tuple[int, int, int] | None:
    """Return the cheapest list that nodes can take instead of their own: cost, own, other."""
    one = lists[number]
    plan_state.work.spend_each(dict.fromkeys(one.spots[0].contents, len(lists)))
    steps = [
        (max(other.price - one.price, 0) * len(one.spots), number, other.number)
        for other in lists.values()
        if other is not one and one.takes(other) and _affordable(plan_state, one, other)
    ]
    return min(steps, default=None)


def _affordable(plan_state: PlanState, options: _List, other: _List) -> bool:
    """Return whether limits leave room for the larger machines."""
    offer = plan_state.table.offers[options.spots[0].ways[0].offer]
    left = plan_state.left(offer.provisioner.name)
    if left is None:
        return True
    before, after = options.spots[0].reserved, other.spots[0].reserved
    return all(
        (after[name] - before[name]) * len(options.spots) <= max(amount, 0)
        for name, amount in left.items
    )


def _adopt(plan_state: PlanState, options: _List, other: _List) -> None:
    ways, fallback = other.spots[0].ways, other.spots[0].fallback
    for spot in options.spots:
        plan_state.set_ways(spot, ways, fallback)
        _add(plan_state, other, spot)

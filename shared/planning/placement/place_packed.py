"""Place packed pods: pods of the lots go to the nodes that were packed, each checked."""

from collections.abc import Iterable, Sequence

from shared.packing.problem import Packing
from shared.planning.offerings.bundle import Bundle
from shared.planning.offerings.domain_assignment import DomainShare, accepts_domain
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.packing_problem import Lot
from shared.planning.state import PlanState
from shared.scheduling.topology.constraints import accepts


class Seats:
    """Room that was packed for one lot: spots with the number of its pods they may take."""

    def __init__(self) -> None:
        self.spots: list[TargetNode] = []
        self.counts: list[int] = []
        self._next = 0

    def add(self, spot: TargetNode, count: int) -> None:
        """Keep room for so many pods on a spot."""
        self.spots.append(spot)
        self.counts.append(count)

    def find(self, pod_group: PendingGroup) -> int:
        """Return the index of a seat on which the constraints accept such a pod, -1 for none."""
        seats = len(self.spots)
        kind = pod_group.kind
        if not seats or not accepts_domain(kind, self.spots[0].labels):
            return -1
        if not kind.by_host:
            return (
                self._next % seats if accepts(kind, self.spots[self._next % seats].labels) else -1
            )
        for step in range(seats):
            index = (self._next + step) % seats
            if accepts(kind, self.spots[index].labels):
                self._next = index + 1
                return index
        return -1

    def take(self, index: int, count: int) -> None:
        """Use so many places of a seat."""
        self.counts[index] -= count
        if not self.counts[index]:
            last_spot, last_count = self.spots.pop(), self.counts.pop()
            if index < len(self.spots):
                self.spots[index], self.counts[index] = last_spot, last_count


def place_packed(
    plan_state: PlanState,
    lots: Sequence[Lot],
    ways: Sequence[tuple[LaunchableOffering, ...]],
    packing: Packing,
    runs: Iterable[tuple[DomainShare, int]],
) -> None:
    """Place packed pods in the order of assignment; pods that constraints refuse stay pending."""
    seats = [Seats() for _ in lots]
    for index, contents in packing.placements:
        for number, count in contents:
            seats[number].add(plan_state.spots[index], count)
    _open(plan_state, ways, packing, seats)
    seats_of: dict[DomainShare, list[Seats]] = {}
    for number, lot in enumerate(lots):
        for share in lot.pods:
            seats_of.setdefault(share, []).append(seats[number])
    of_members = _Members()
    for share, count in runs:
        left = count
        for seat in seats_of[share]:
            if isinstance(share.pod_group, Bundle):
                left -= of_members.reserve(share.pod_group, seat, left)
            else:
                left -= _seat(plan_state, share.pod_group, seat, left)
    seats += of_members.fill(plan_state)
    loose = {spot.name: spot for seat in seats for spot in seat.spots if spot.room is None}
    plan_state.loose.extend(loose.values())
    plan_state.drop_empty()


class _Members:
    """Room that was packed for bundles, by the groups of their pods and where it came from."""

    def __init__(self) -> None:
        self._seats: dict[PendingGroup, dict[int, Seats]] = {}

    def reserve(self, bundle: Bundle, seats: Seats, count: int) -> int:
        """Keep room of a lot for up to so many bundles; return how many."""
        reserved = 0
        while reserved < count and seats.spots:
            for member, pods in bundle.members:
                of_lot = self._seats.setdefault(member, {}).setdefault(id(seats), Seats())
                of_lot.add(seats.spots[-1], pods)
            seats.take(len(seats.spots) - 1, 1)
            bundle.waiting.pop()
            reserved += 1
        return reserved

    def fill(self, plan_state: PlanState) -> list[Seats]:
        """Place the pods, those that others follow first, and return the room that is left.

        The lots of a group take turns: a spread over their domains lets in few pods at a time.
        """
        for member, by_lot in self._seats.items():
            moved = True
            while moved:
                placed = [
                    _seat(plan_state, member, seats, sum(seats.counts)) for seats in by_lot.values()
                ]
                moved = any(placed)
        return [seats for by_lot in self._seats.values() for seats in by_lot.values()]


def _open(
    plan_state: PlanState,
    ways: Sequence[tuple[LaunchableOffering, ...]],
    packing: Packing,
    seats: Sequence[Seats],
) -> None:
    """Open the nodes that were packed."""
    lists: dict[tuple[tuple[int, int], ...], tuple[LaunchableOffering, ...]] = {}

    def launchables(options: tuple[tuple[int, int], ...]) -> tuple[LaunchableOffering, ...]:
        if options not in lists:
            lists[options] = tuple(ways[shape][pool] for shape, pool in options)
        return lists[options]

    for node in packing.nodes:
        spot = plan_state.open_node(launchables(node.options), launchables(node.fallback_options))
        for number, count in node.contents:
            seats[number].add(spot, count)


def _seat(plan_state: PlanState, pod_group: PendingGroup, seats: Seats, count: int) -> int:
    """Place up to so many pods; return how many."""
    placed = 0
    if not pod_group.kind.is_ruled:
        while placed < count and seats.spots:
            taken = min(count - placed, seats.counts[-1])
            plan_state.admit(pod_group, seats.spots[-1], taken)
            seats.take(len(seats.spots) - 1, taken)
            placed += taken
        return placed
    while placed < count:
        plan_state.work.spend(1 + len(seats.spots) // 8, pod_group.index)
        index = seats.find(pod_group)
        if index < 0:
            return placed
        plan_state.admit(pod_group, seats.spots[index], 1)
        seats.take(index, 1)
        placed += 1
    return placed

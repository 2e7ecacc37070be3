"""Places packed pods: pods of packed groups go to the nodes that were packed, each pod checked."""

from collections.abc import Iterable, Sequence

from shared.packing.problem import Packing
from shared.planning.offerings.domain_assignment import DomainShare, accepts_domain
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.packing_problem import PackedGroup
from shared.planning.rules.topology.constraints import accepts
from shared.planning.state import PlanState
from shared.planning.together.bundles import Bundle


class PackedPlaces:
    """Places of one packed group: target nodes with the number of its pods that they may take."""

    def __init__(self) -> None:
        self.targets: list[TargetNode] = []
        self.counts: list[int] = []
        self._next = 0

    def add(self, target: TargetNode, count: int) -> None:
        """Add places for `count` pods on a target node."""
        self.targets.append(target)
        self.counts.append(count)

    def find(self, pod_group: PendingGroup) -> int:
        """Return the index of a target node where the constraints accept the pod, -1 for none."""
        many = len(self.targets)
        topology = pod_group.topology
        if not many or not accepts_domain(topology, self.targets[0].labels):
            return -1
        if not topology.has_host_rules:
            return (
                self._next % many
                if accepts(topology, self.targets[self._next % many].labels)
                else -1
            )
        for step in range(many):
            index = (self._next + step) % many
            if accepts(topology, self.targets[index].labels):
                self._next = index + 1
                return index
        return -1

    def use(self, index: int, count: int) -> None:
        """Use `count` places on the target node with this index."""
        self.counts[index] -= count
        if not self.counts[index]:
            last_target, last_count = self.targets.pop(), self.counts.pop()
            if index < len(self.targets):
                self.targets[index], self.counts[index] = last_target, last_count


def place_packed(
    plan_state: PlanState,
    packed_groups: Sequence[PackedGroup],
    options_by_node_type: Sequence[tuple[LaunchableOffering, ...]],
    packing: Packing,
    runs: Iterable[tuple[DomainShare, int]],
) -> None:
    """Place packed pods in the order of assignment; pods that constraints refuse stay pending."""
    places = [PackedPlaces() for _ in packed_groups]
    for index, contents in packing.placements:
        for number, count in contents:
            places[number].add(plan_state.targets[index], count)
    _open_nodes(plan_state, options_by_node_type, packing, places)
    places_by_share: dict[DomainShare, list[PackedPlaces]] = {}
    for number, packed_group in enumerate(packed_groups):
        for share in packed_group.pods:
            places_by_share.setdefault(share, []).append(places[number])
    of_members = _BundlePlaces()
    for share, count in runs:
        left = count
        for group_places in places_by_share[share]:
            if isinstance(share.pod_group, Bundle):
                left -= of_members.reserve(share.pod_group, group_places, left)
            else:
                left -= _place_group(plan_state, share.pod_group, group_places, left)
    places += of_members.fill(plan_state)
    loose = {
        target.name: target
        for group_places in places
        for target in group_places.targets
        if target.existing is None
    }
    plan_state.underfilled.extend(loose.values())
    plan_state.drop_empty()


class _BundlePlaces:
    """Places that were packed for bundles, by the group of their pods and the packed group."""

    def __init__(self) -> None:
        self._places: dict[PendingGroup, dict[int, PackedPlaces]] = {}

    def reserve(self, bundle: Bundle, places: PackedPlaces, count: int) -> int:
        """Reserve places of a packed group for up to `count` bundles; return how many."""
        reserved = 0
        while reserved < count and places.targets:
            for member, pods in bundle.members:
                of_group = self._places.setdefault(member, {}).setdefault(
                    id(places), PackedPlaces()
                )
                of_group.add(places.targets[-1], pods)
            places.use(len(places.targets) - 1, 1)
            bundle.waiting.pop()
            reserved += 1
        return reserved

    def fill(self, plan_state: PlanState) -> list[PackedPlaces]:
        """Place the pods, those that others follow first, and return the places that are left.

        The packed groups of a member take turns: a spread over their domains lets in few pods at a
        time.
        """
        for member, by_group in self._places.items():
            moved = True
            while moved:
                placed = [
                    _place_group(plan_state, member, places, sum(places.counts))
                    for places in by_group.values()
                ]
                moved = any(placed)
        return [places for by_group in self._places.values() for places in by_group.values()]


def _open_nodes(
    plan_state: PlanState,
    options_by_node_type: Sequence[tuple[LaunchableOffering, ...]],
    packing: Packing,
    places: Sequence[PackedPlaces],
) -> None:
    """Open the nodes that were packed."""
    lists: dict[tuple[tuple[int, int], ...], tuple[LaunchableOffering, ...]] = {}

    def options_of(options: tuple[tuple[int, int], ...]) -> tuple[LaunchableOffering, ...]:
        if options not in lists:
            lists[options] = tuple(
                options_by_node_type[node_type][number] for node_type, number in options
            )
        return lists[options]

    for node in packing.nodes:
        target = plan_state.open_node(options_of(node.options), options_of(node.fallback_options))
        for number, count in node.contents:
            places[number].add(target, count)


def _place_group(
    plan_state: PlanState, pod_group: PendingGroup, places: PackedPlaces, count: int
) -> int:
    """Place up to `count` pods; return how many."""
    placed = 0
    if not pod_group.topology.has_rules:
        while placed < count and places.targets:
            taken = min(count - placed, places.counts[-1])
            plan_state.admit(pod_group, places.targets[-1], taken)
            places.use(len(places.targets) - 1, taken)
            placed += taken
        return placed
    while placed < count:
        plan_state.work.spend(1 + len(places.targets) // 8, pod_group.index)
        index = places.find(pod_group)
        if index < 0:
            return placed
        plan_state.admit(pod_group, places.targets[index], 1)
        places.use(index, 1)
        placed += 1
    return placed

"""Turns shares, offers and spots into a packing problem, and remembers what its indexes mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.model import labels as keys
from shared.model.resources import CPU, Resources
from shared.packing.problem import Bin, PackingProblem, Shape
from shared.packing.problem import PodClass as PackedClass
from shared.planning.offerings.domain_assignment import DomainShare
from shared.planning.offerings.host_limits import HostLimits, closed_hosts
from shared.planning.offerings.offering_index import LaunchableOffering, bit_mask
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.state import PlanState
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.provisioner_offerings import ProvisionerOffering

# With more classes than this, rules over hosts that are easily kept get no slots: the topology
# constraints check them at admission.
_MANY_CLASSES = 150
_Identity = tuple[Resources, NodeConstraints, int, frozenset[str]]


@dataclass(slots=True, eq=False)
class Lot:
    """Pods the packer cannot tell apart.

    Attributes:
        pods: By share.
        bins: Bit mask of the spots that may take them.
        turned_away: Provisioners whose limits are in the way.
    """

    requests: Resources
    signature: NodeConstraints
    bins: int
    turned_away: frozenset[str]
    pods: dict[DomainShare, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Pods in all."""
        return sum(self.pods.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A packing problem and what stands behind its indexes.

    Attributes:
        ways: By shape index, then pool index.
        provisioner_of: By lot, the provisioner it was offered; absent when none could serve it.
    """

    problem: PackingProblem
    ways: tuple[tuple[LaunchableOffering, ...], ...]
    provisioner_of: Mapping[int, str] = field(hash=False)


def sort_into_lots(
    plan_state: PlanState,
    runs: Iterable[tuple[DomainShare, int]],
    pod_groups: Sequence[PendingGroup],
) -> tuple[tuple[Lot, ...], HostLimits]:
    """Return lots of pods that are the same to the packer, and the slots of rules over hosts."""
    counts: dict[DomainShare, int] = {}
    for share, count in runs:
        counts[share] = counts.get(share, 0) + count
    slots = HostLimits(pod_groups)
    lots = _lots(plan_state, counts, slots)
    if len(lots) > _MANY_CLASSES and slots:
        slots.without_slack(pod_groups)
        lots = _lots(plan_state, counts, slots)
    return lots, slots


def _lots(
    plan_state: PlanState, counts: Mapping[DomainShare, int], slots: HostLimits
) -> tuple[Lot, ...]:
    bins = _Bins(plan_state)
    lots: dict[_Identity, Lot] = {}
    asked: dict[int, Resources] = {}
    pinned: dict[tuple[NodeConstraints, object], NodeConstraints] = {}
    for share, count in counts.items():
        one = share.pod_group
        if one.index not in asked:
            asked[one.index] = one.requests + slots.taken(one)
        unpinned = one.signature
        question = (unpinned, share.pin)
        if question not in pinned:
            pinned[question] = plan_state.launchables.intern(unpinned.pinned(share.pin))
        signature = pinned[question]
        mask = bins.taking(one, signature)
        away = frozenset(one.turned_away)
        identity = (asked[one.index], signature, mask, away)
        if identity not in lots:
            lots[identity] = Lot(asked[one.index], signature, mask, away)
        lots[identity].pods[share] = count
    return tuple(lots.values())


class _Bins:
    """Which pods each target node may take."""

    def __init__(self, plan_state: PlanState) -> None:
        self._board = plan_state
        self._by_host = {
            spot.labels[keys.HOSTNAME]: index
            for index, spot in enumerate(plan_state.spots)
            if keys.HOSTNAME in spot.labels
        }
        self._static: dict[NodeConstraints, int] = {}

    def taking(self, pod_group: PendingGroup, signature: NodeConstraints) -> int:
        if signature not in self._static:
            self._board.work.spend(len(self._board.spots), pod_group.index)
            self._static[signature] = self._accepting(signature)
        mask = self._static[signature]
        if mask and pod_group.kind.by_host:
            looks = pod_group.kind.rules * (1 + len(self._board.spots) // 4)
            self._board.work.spend(looks, pod_group.index)
            for host in closed_hosts(pod_group):
                if host in self._by_host:
                    mask &= ~(1 << self._by_host[host])
        if mask and pod_group.ports:
            for index, spot in enumerate(self._board.spots):
                if mask >> index & 1 and not spot.ports_free(pod_group.ports):
                    mask &= ~(1 << index)
        return mask

    def _accepting(self, signature: NodeConstraints) -> int:
        mask = 0
        by_ways: dict[int, bool] = {}
        for index, spot in enumerate(self._board.spots):
            if spot.room is not None:
                good = signature.accepts(spot.labels, spot.taints)
            else:
                group = id(spot.ways)
                if group not in by_ways:
                    by_ways[group] = accepted_by_all(self._board, spot, signature)
                good = by_ways[group]
            if good:
                mask |= 1 << index
        return mask


def accepted_by_all(plan_state: PlanState, spot: TargetNode, signature: NodeConstraints) -> bool:
    """Return whether a signature accepts every option of a node to be bought."""
    return not spot.mask & ~plan_state.launchables.accepting(signature)


def assemble(plan_state: PlanState, lots: Sequence[Lot], slots: HostLimits) -> Assembled:
    """Return the packing problem of these lots.

    Each lot is offered only the first provisioner, in the order of `offers`, that could serve it
    and has not turned it away.
    """
    signatures: dict[NodeConstraints, int] = {}
    for lot in lots:
        signatures.setdefault(lot.signature, len(signatures))
    shelf = shelve(plan_state, tuple(signatures), slots.of_new_node())
    chooser = _Chooser(shelf.shapes, shelf.accepted)
    compatible = []
    provisioner_of = {}
    for number, lot in enumerate(lots):
        chosen, mask = chooser.choose(lot, signatures[lot.signature])
        compatible.append(mask)
        if chosen:
            provisioner_of[number] = chosen
    bins = plan_state.spots if any(lot.bins for lot in lots) else []
    problem = PackingProblem(
        classes=tuple(PackedClass(requests=lot.requests, count=lot.count) for lot in lots),
        shapes=shelf.shapes,
        bins=tuple(
            Bin(name=spot.name, available=Resources.from_mapping(spot.free) + slots.left(spot))
            for spot in bins
        ),
        compatible=tuple(compatible),
        compatible_bins=tuple(lot.bins for lot in lots),
        limits=plan_state.all_left(),
        settings=plan_state.settings,
        seed=plan_state.seed,
        running=_running(plan_state, sum(lot.count for lot in lots)),
    )
    return Assembled(problem=problem, ways=shelf.ways, provisioner_of=provisioner_of)


def _running(plan_state: PlanState, waiting: int) -> Resources:
    """Return what the pods ask for that run where others may join them, for small batches."""
    if waiting > plan_state.settings.small_batch_pods or not plan_state.settings.growth_percent:
        return Resources()
    return Resources.total(
        pod.scheduling.requests for room in plan_state.launchables.rooms for pod in room.pods
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What can be bought, to the packer.

    Attributes:
        ways: By shape index, then pool index.
        accepted: By shape index, the signatures that accept it, as a bit mask.
    """

    shapes: tuple[Shape, ...]
    ways: tuple[tuple[LaunchableOffering, ...], ...]
    accepted: tuple[int, ...]


def shelve(plan_state: PlanState, signatures: Sequence[NodeConstraints], slots: Resources) -> Shelf:
    """Return the shapes that some signatures accept.

    Args:
        slots: Pseudo resources of an empty node.
    """
    shapes: list[Shape] = []
    ways: list[tuple[LaunchableOffering, ...]] = []
    accepted: list[int] = []
    rooms: dict[int, Resources] = {}
    for index, mask, group in plan_state.launchables.grouped(signatures):
        offer = plan_state.launchables.offers[index]
        if index not in rooms:
            rooms[index] = offer.available
            if slots:
                # Slots are pseudo resources that no machine has: nothing needs to be added up.
                both = sorted((*offer.available.items, *slots.items))
                rooms[index] = Resources(tuple(both))
        shapes.append(_shape(offer, group, rooms[index]))
        ways.append(group)
        accepted.append(mask)
    return Shelf(shapes=tuple(shapes), ways=tuple(ways), accepted=tuple(accepted))


def _shape(
    offer: ProvisionerOffering, group: Sequence[LaunchableOffering], room: Resources
) -> Shape:
    return Shape(
        provisioner=offer.provisioner.name,
        instance_type=offer.instance_type.name,
        allocatable=room,
        capacity=offer.instance_type.capacity,
        pools=tuple([launchable.offering for launchable in group]),
        vcpus=offer.instance_type.capacity[CPU] // 1000,
    )


class _Chooser:
    """Finds the first provisioner that could serve a lot, with its shapes as a bit mask."""

    def __init__(self, shapes: Sequence[Shape], accepted: Sequence[int]) -> None:
        self._amounts = [dict(shape.allocatable.items) for shape in shapes]
        self._accepted = accepted
        self._of: dict[str, list[int]] = {}
        for index, shape in enumerate(shapes):
            self._of.setdefault(shape.provisioner, []).append(index)
        for indexes in self._of.values():
            # The largest first: whether anything fits is then mostly known at once.
            indexes.sort(key=lambda index: -shapes[index].vcpus)
        self._masks: dict[tuple[str, int], int] = {}

    def choose(self, lot: Lot, signature: int) -> tuple[str, int]:
        bit = 1 << signature
        for provisioner, indexes in self._of.items():
            if provisioner in lot.turned_away:
                continue
            if any(self._accepted[i] & bit and self._fits(lot.requests, i) for i in indexes):
                return provisioner, self._mask(provisioner, signature)
        return "", 0

    def _fits(self, requests: Resources, index: int) -> bool:
        room = self._amounts[index]
        return all(amount <= room.get(name, 0) for name, amount in requests.items)

    def _mask(self, provisioner: str, signature: int) -> int:
        question = (provisioner, signature)
        if question not in self._masks:
            mask = bit_mask(
                [i for i in self._of[provisioner] if self._accepted[i] >> signature & 1],
                len(self._accepted),
            )
            self._masks[question] = mask
        return self._masks[question]

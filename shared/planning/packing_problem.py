"""Turns shares, offers and spots into a packing problem, and remembers what its indexes mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.packing.problem import PackingProblem, Shape
from shared.packing.problem import PodClass as PackedClass
from shared.planning.offerings.domain_assignment import DomainShare
from shared.planning.offerings.host_limits import (
    HostLimit,
    closed_hosts,
    host_limits,
    slots_left,
    slots_of_new_node,
    slots_taken,
    without_slack,
)
from shared.planning.offerings.offering_table import Ways, bit_mask
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.state import PlanState
from shared.scheduling.node_constraints import NodeConstraints

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
        provisioner: Whose nodes may be bought for them, empty when none could serve them.
    """

    requests: Resources
    signature: NodeConstraints
    bins: int
    turned_away: frozenset[str]
    pods: dict[DomainShare, int] = field(default_factory=dict)
    provisioner: str = ""

    @property
    def count(self) -> int:
        """Pods in all."""
        return sum(self.pods.values())


def sort_into_lots(
    plan_state: PlanState,
    runs: Iterable[tuple[DomainShare, int]],
    pod_groups: Sequence[PendingGroup],
) -> tuple[tuple[Lot, ...], tuple[HostLimit, ...]]:
    """Return lots of pods that are the same to the packer, and the slots of rules over hosts."""
    counts: dict[DomainShare, int] = {}
    for share, count in runs:
        counts[share] = counts.get(share, 0) + count
    slots = host_limits(pod_groups)
    lots = _lots(plan_state, counts, slots)
    if len(lots) > _MANY_CLASSES and slots:
        slots = without_slack(slots, pod_groups)
        lots = _lots(plan_state, counts, slots)
    return lots, slots


def _lots(
    plan_state: PlanState, counts: Mapping[DomainShare, int], slots: Iterable[HostLimit]
) -> tuple[Lot, ...]:
    taken = slots_taken(slots)
    by_host = {
        spot.labels[keys.HOSTNAME]: index
        for index, spot in enumerate(plan_state.spots)
        if keys.HOSTNAME in spot.labels
    }
    lots: dict[_Identity, Lot] = {}
    asked: dict[int, Resources] = {}
    pinned: dict[tuple[NodeConstraints, object], NodeConstraints] = {}
    accepting: dict[NodeConstraints, int] = {}
    for share, count in counts.items():
        pod_group = share.pod_group
        if pod_group.index not in asked:
            own = taken.get(pod_group.index, Resources())
            asked[pod_group.index] = pod_group.requests + own
        unpinned = pod_group.signature
        question = (unpinned, share.pin)
        if question not in pinned:
            pinned[question] = plan_state.launchables.intern(unpinned.pinned(share.pin))
        signature = pinned[question]
        if signature not in accepting:
            plan_state.work.spend(len(plan_state.spots), pod_group.index)
            accepting[signature] = _spots_accepting(plan_state, signature)
        mask = _open_to(plan_state, pod_group, accepting[signature], by_host)
        away = frozenset(pod_group.turned_away)
        identity = (asked[pod_group.index], signature, mask, away)
        if identity not in lots:
            lots[identity] = Lot(asked[pod_group.index], signature, mask, away)
        lots[identity].pods[share] = count
    return tuple(lots.values())


def _spots_accepting(plan_state: PlanState, signature: NodeConstraints) -> int:
    """Return the spots that a signature accepts, with all their options, as a bit mask."""
    mask = 0
    refused = ~plan_state.launchables.accepting(signature)
    for index, spot in enumerate(plan_state.spots):
        if spot.room is None:
            good = not spot.mask & refused
        else:
            good = signature.accepts(spot.labels, spot.taints)
        if good:
            mask |= 1 << index
    return mask


def _open_to(
    plan_state: PlanState, pod_group: PendingGroup, mask: int, by_host: Mapping[str, int]
) -> int:
    """Return those of some spots on which neither rules over hosts nor ports refuse the pods."""
    if mask and pod_group.kind.by_host:
        looks = pod_group.kind.rules * (1 + len(plan_state.spots) // 4)
        plan_state.work.spend(looks, pod_group.index)
        for host in closed_hosts(pod_group):
            if host in by_host:
                mask &= ~(1 << by_host[host])
    if mask and pod_group.ports:
        for index, spot in enumerate(plan_state.spots):
            if mask >> index & 1 and not spot.ports_free(pod_group.ports):
                mask &= ~(1 << index)
    return mask


def assemble(
    plan_state: PlanState, lots: Sequence[Lot], slots: Sequence[HostLimit]
) -> tuple[PackingProblem, tuple[Ways, ...]]:
    """Return the packing problem of these lots, and launchable offerings by shape, then pool.

    Each lot is offered only the first provisioner, in the order of `offers`, that could serve it
    and has not turned it away: its `provisioner` from now on.
    """
    signatures: dict[NodeConstraints, int] = {}
    for lot in lots:
        signatures.setdefault(lot.signature, len(signatures))
    shapes, ways, accepted = plan_state.launchables.shapes(signatures, slots_of_new_node(slots))
    sold_by = _by_provisioner(shapes)
    masks = {name: bit_mask(indexes, len(shapes)) for name, indexes in sold_by.items()}
    amounts = [dict(shape.allocatable.items) for shape in shapes]
    compatible = []
    for lot in lots:
        open_to = accepted[signatures[lot.signature]]
        lot.provisioner = next(
            (
                name
                for name, indexes in sold_by.items()
                if name not in lot.turned_away
                and open_to & masks[name]
                and any(open_to >> i & 1 and _fits(lot.requests, amounts[i]) for i in indexes)
            ),
            "",
        )
        compatible.append(open_to & masks.get(lot.provisioner, 0))
    groups = {share.pod_group for lot in lots for share in lot.pods}
    waiting = {pod_group.index: len(pod_group.waiting) for pod_group in groups}
    bins = plan_state.spots if any(lot.bins for lot in lots) else []
    problem = PackingProblem(
        classes=tuple(PackedClass(requests=lot.requests, count=lot.count) for lot in lots),
        shapes=shapes,
        bins=tuple(
            Resources.from_mapping(spot.free) + left
            for spot, left in zip(bins, slots_left(slots, bins, waiting), strict=True)
        ),
        compatible=tuple(compatible),
        compatible_bins=tuple(lot.bins for lot in lots),
        limits=plan_state.all_left(),
        settings=plan_state.settings,
        seed=plan_state.seed,
        running=_running(plan_state, sum(lot.count for lot in lots)),
    )
    return problem, ways


def _by_provisioner(shapes: Sequence[Shape]) -> dict[str, list[int]]:
    """Return the shapes of each provisioner, the largest first: it fits most lots."""
    found: dict[str, list[int]] = {}
    for index, shape in enumerate(shapes):
        found.setdefault(shape.provisioner, []).append(index)
    for indexes in found.values():
        indexes.sort(key=lambda index: -shapes[index].vcpus)
    return found


def _fits(requests: Resources, room: Mapping[str, int]) -> bool:
    return all(amount <= room.get(name, 0) for name, amount in requests.items)


def _running(plan_state: PlanState, waiting: int) -> Resources:
    """Return what the pods ask for that run where others may join them, for small batches."""
    if waiting > plan_state.settings.small_batch_pods or not plan_state.settings.growth_percent:
        return Resources()
    return Resources.total(
        pod.scheduling.requests for room in plan_state.launchables.rooms for pod in room.pods
    )

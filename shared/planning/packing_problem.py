"""Turns shares, offers and target nodes into a packing problem; records what its indexes mean."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.packing.problem import ItemClass as PackedClass
from shared.packing.problem import NodeType, PackingProblem
from shared.planning.offerings.domain_assignment import DomainShare
from shared.planning.offerings.host_limits import (
    HostLimit,
    closed_hosts,
    find_host_limits,
    pseudo_available,
    pseudo_capacity_of_new_node,
    pseudo_requests,
    without_slack,
)
from shared.planning.offerings.offering_table import Options, bit_mask
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.state import PlanState

# With more classes than this, rules over hosts that are easily kept get no host limit: the topology
# constraints check them when a pod is placed.
_MANY_CLASSES = 150
_Identity = tuple[Resources, NodeConstraints, int, frozenset[str]]


class PackedGroup(Struct, eq=False):
    """Pods the packer cannot tell apart.

    Attributes:
        pods: Number of pods, by share.
        bins: Bit mask of the target nodes that may take them.
        limited_provisioners: Provisioners whose limits keep them from being placed.
        provisioner: Whose nodes may be launched for them; empty if no Provisioner could hold them.
    """

    requests: Resources
    signature: NodeConstraints
    bins: int
    limited_provisioners: frozenset[str]
    pods: dict[DomainShare, int] = field(default_factory=dict)
    provisioner: str = ""

    @property
    def count(self) -> int:
        """Total number of pods."""
        return sum(self.pods.values())


def group_for_packing(
    plan_state: PlanState,
    runs: Iterable[tuple[DomainShare, int]],
    pod_groups: Sequence[PendingGroup],
) -> tuple[tuple[PackedGroup, ...], tuple[HostLimit, ...]]:
    """Return the groups of pods that are the same to the packer, and the host limits."""
    counts: dict[DomainShare, int] = {}
    for share, count in runs:
        counts[share] = counts.get(share, 0) + count
    host_limits = find_host_limits(pod_groups)
    packed_groups = _packed_groups(plan_state, counts, host_limits)
    if len(packed_groups) > _MANY_CLASSES and host_limits:
        host_limits = without_slack(host_limits, pod_groups)
        packed_groups = _packed_groups(plan_state, counts, host_limits)
    return packed_groups, host_limits


def _packed_groups(
    plan_state: PlanState, counts: Mapping[DomainShare, int], host_limits: Iterable[HostLimit]
) -> tuple[PackedGroup, ...]:
    taken = pseudo_requests(host_limits)
    index_by_host = {
        target.labels[keys.HOSTNAME]: index
        for index, target in enumerate(plan_state.targets)
        if keys.HOSTNAME in target.labels
    }
    packed_groups: dict[_Identity, PackedGroup] = {}
    asked: dict[int, Resources] = {}
    pinned: dict[tuple[NodeConstraints, object], NodeConstraints] = {}
    accepting: dict[NodeConstraints, int] = {}
    for share, count in counts.items():
        pod_group = share.pod_group
        if pod_group.index not in asked:
            own = taken.get(pod_group.index, Resources())
            asked[pod_group.index] = pod_group.requests + own
        unpinned = pod_group.node_constraints
        question = (unpinned, share.pin)
        if question not in pinned:
            pinned[question] = plan_state.offerings.intern(unpinned.pinned(share.pin))
        node_constraints = pinned[question]
        if node_constraints not in accepting:
            plan_state.work.spend(len(plan_state.targets), pod_group.index)
            accepting[node_constraints] = _targets_accepting(plan_state, node_constraints)
        mask = _without_closed_hosts(
            plan_state, pod_group, accepting[node_constraints], index_by_host
        )
        limited = frozenset(pod_group.limited_provisioners)
        identity = (asked[pod_group.index], node_constraints, mask, limited)
        if identity not in packed_groups:
            packed_groups[identity] = PackedGroup(
                asked[pod_group.index], node_constraints, mask, limited
            )
        packed_groups[identity].pods[share] = count
    return tuple(packed_groups.values())


def _targets_accepting(plan_state: PlanState, node_constraints: NodeConstraints) -> int:
    """Return a bit mask of target nodes that node constraints accept, with all their options."""
    mask = 0
    refused = ~plan_state.offerings.accepting(node_constraints)
    for index, target in enumerate(plan_state.targets):
        if target.existing is None:
            good = not target.options_mask & refused
        else:
            good = node_constraints.accepts(target.labels, target.taints)
        if good:
            mask |= 1 << index
    return mask


def _without_closed_hosts(
    plan_state: PlanState, pod_group: PendingGroup, mask: int, index_by_host: Mapping[str, int]
) -> int:
    """Return a bit mask without target nodes on which host rules or ports refuse the pods."""
    if mask and pod_group.topology.has_host_rules:
        steps = pod_group.topology.rule_weight * (1 + len(plan_state.targets) // 4)
        plan_state.work.spend(steps, pod_group.index)
        for host in closed_hosts(pod_group):
            if host in index_by_host:
                mask &= ~(1 << index_by_host[host])
    if mask and pod_group.ports:
        for index, target in enumerate(plan_state.targets):
            if mask >> index & 1 and not target.ports_free(pod_group.ports):
                mask &= ~(1 << index)
    return mask


def to_packing_problem(
    plan_state: PlanState, packed_groups: Sequence[PackedGroup], host_limits: Sequence[HostLimit]
) -> tuple[PackingProblem, tuple[Options, ...]]:
    """Return the packing problem of these groups, and its launchable offerings by node type.

    Each group may use only the first Provisioner, in the order of `offers`, that could hold it and
    whose limits have not refused it. This sets its `provisioner`.
    """
    numbers: dict[NodeConstraints, int] = {}
    for packed_group in packed_groups:
        numbers.setdefault(packed_group.signature, len(numbers))
    node_types, options_by_node_type, accepted = plan_state.offerings.node_types(
        numbers, pseudo_capacity_of_new_node(host_limits)
    )
    by_provisioner = _by_provisioner(node_types)
    masks = {name: bit_mask(indexes, len(node_types)) for name, indexes in by_provisioner.items()}
    amounts = [dict(node_type.allocatable.items) for node_type in node_types]
    compatible = []
    for packed_group in packed_groups:
        open_to = accepted[numbers[packed_group.signature]]
        packed_group.provisioner = next(
            (
                name
                for name, indexes in by_provisioner.items()
                if name not in packed_group.limited_provisioners
                and open_to & masks[name]
                and any(
                    open_to >> i & 1 and _fits(packed_group.requests, amounts[i]) for i in indexes
                )
            ),
            "",
        )
        compatible.append(open_to & masks.get(packed_group.provisioner, 0))
    groups = {share.pod_group for packed_group in packed_groups for share in packed_group.pods}
    waiting = {pod_group.index: len(pod_group.waiting) for pod_group in groups}
    bins = plan_state.targets if any(packed_group.bins for packed_group in packed_groups) else []
    problem = PackingProblem(
        classes=tuple(
            PackedClass(requests=packed_group.requests, count=packed_group.count)
            for packed_group in packed_groups
        ),
        node_types=node_types,
        bins=tuple(
            Resources.from_mapping(target.available) + left
            for target, left in zip(bins, pseudo_available(host_limits, bins, waiting), strict=True)
        ),
        compatible=tuple(compatible),
        compatible_bins=tuple(packed_group.bins for packed_group in packed_groups),
        limits=plan_state.all_limits_left(),
        settings=plan_state.settings,
        seed=plan_state.seed,
        running=_running(plan_state, sum(packed_group.count for packed_group in packed_groups)),
    )
    return problem, options_by_node_type


def _by_provisioner(node_types: Sequence[NodeType]) -> dict[str, list[int]]:
    """Return the node types of each Provisioner, the largest first: it fits most groups."""
    found: dict[str, list[int]] = {}
    for index, node_type in enumerate(node_types):
        found.setdefault(node_type.provisioner, []).append(index)
    for indexes in found.values():
        indexes.sort(key=lambda index: -node_types[index].vcpus)
    return found


def _fits(requests: Resources, allocatable: Mapping[str, int]) -> bool:
    return all(amount <= allocatable.get(name, 0) for name, amount in requests.items)


def _running(plan_state: PlanState, waiting: int) -> Resources:
    """Return the total requests of pods on existing nodes, for small batches; else nothing."""
    if waiting > plan_state.settings.small_batch_pods or not plan_state.settings.growth_percent:
        return Resources()
    return Resources.total(
        pod.scheduling.requests
        for existing in plan_state.offerings.existing_nodes
        for pod in existing.pods
    )

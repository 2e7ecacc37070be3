"""Target nodes: existing nodes and nodes to be launched, while the plan fills them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.taints import Taint
from shared.model.resources import Resources
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.rules.existing_nodes import ExistingNode
from shared.planning.rules.labels_and_taints import Port, ports_conflict
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.rules.topology.counts import Place, Profile

_ENDLESS: Final = 1 << 60


class TargetNode(Place):
    """A node with the capacity it has left.

    Attributes:
        existing: The existing node; None for a node to be launched.
        available: Amounts left, by resource name; on a node to be launched, the least of any
            option.
        options_mask: Bit mask over `OfferingTable.listed` of its `options` and `fallback`.
        options: Options of a node to be launched, cheapest first; each holds everything on it.
        fallback: Options of another capacity type.
        daemon_requests: What DaemonSet pods will take on a node to be launched.
        contents: Pods placed by this plan, by pending group.
        reserved: Of a node to be launched, the largest capacity of any option: limits count that.
        undecided: Topology keys on which the options of a node to be launched differ.
        node_constraints: Those of the pods on a node to be launched, each once.
        daemon_set_pods: What DaemonSet pods of a node to be launched add to the topology counts.
        volumes: Shared volumes attached to it, each with the number of this plan's pods that use
            it, plus one if it was attached before.
    """

    __slots__ = (
        "available",
        "contents",
        "daemon_requests",
        "daemon_set_pods",
        "existing",
        "fallback",
        "node_constraints",
        "options",
        "options_mask",
        "ports",
        "reserved",
        "undecided",
        "used",
        "volumes",
    )

    def __init__(
        self, name: str, labels: Mapping[str, str], existing: ExistingNode | None = None
    ) -> None:
        super().__init__(name, labels, existing.taints if existing is not None else ())
        self.existing = existing
        self.available: dict[str, int] = (
            dict(existing.available.items) if existing is not None else {}
        )
        self.undecided: frozenset[str] = frozenset()
        self.options: tuple[LaunchableOffering, ...] = ()
        self.options_mask = 0
        self.fallback: tuple[LaunchableOffering, ...] = ()
        self.daemon_requests = Resources()
        self.used: dict[str, int] = {}
        self.reserved = Resources()
        self.contents: dict[int, list[PodRef]] = {}
        self.node_constraints: dict[NodeConstraints, None] = {}
        self.ports: list[Port] = []
        self.daemon_set_pods: tuple[Profile, ...] = ()
        self.volumes: dict[str, int] = {}
        if existing is not None:
            self.ports = list(existing.ports)
            self.volumes = dict.fromkeys(existing.volumes, 1)

    @property
    def requests(self) -> Resources:
        """Total requests of the pods on a node to be launched."""
        return Resources.from_mapping(self.used)

    def fitting(self, pod_group: PendingGroup) -> int:
        """Return how many such pods still fit."""
        free = self.available
        if pod_group.shared_volumes and any(
            amount > free.get(name, 0)
            for name, amount in pod_group.requests_with(self.volumes).items
        ):
            return 0
        most = _ENDLESS
        for name, amount in pod_group.requests.items:
            most = min(most, free.get(name, 0) // amount)
        return max(most, 0)

    def ports_free(self, ports: Iterable[Port]) -> bool:
        """Return whether no pod on it has one of these host ports."""
        return not any(ports_conflict(port, other) for port in ports for other in self.ports)

    def add_pods(self, pod_group: PendingGroup, pods: Sequence[PodRef]) -> None:
        """Place pods; the caller has checked that they may be placed."""
        self.contents.setdefault(pod_group.index, []).extend(pods)
        for volume, resource in pod_group.shared_volumes:
            if volume not in self.volumes:
                self._use(resource, 1)
            self.volumes[volume] = self.volumes.get(volume, 0) + len(pods)
        for name, amount in pod_group.requests.items:
            self._use(name, amount * len(pods))
        if self.existing is None:
            self.node_constraints[pod_group.node_constraints] = None
        if pod_group.ports:
            self.ports.extend(pod_group.ports)

    def remove_pod(self, pod_group: PendingGroup, pod: PodRef) -> None:
        """Take a pod away again."""
        self.contents[pod_group.index].remove(pod)
        if not self.contents[pod_group.index]:
            del self.contents[pod_group.index]
        for volume, resource in pod_group.shared_volumes:
            self.volumes[volume] -= 1
            if not self.volumes[volume]:
                del self.volumes[volume]
                self._use(resource, -1)
        for name, amount in pod_group.requests.items:
            self._use(name, -amount)
        for port in pod_group.ports:
            self.ports.remove(port)

    def _use(self, name: str, amount: int) -> None:
        self.available[name] = self.available.get(name, 0) - amount
        if self.existing is None:
            self.used[name] = self.used.get(name, 0) + amount

    def set_options(self, target_options: "TargetOptions") -> None:
        """Replace the options and recompute what is available."""
        self.options = target_options.options
        self.options_mask = target_options.options_mask
        self.fallback = target_options.fallback
        self.daemon_requests = target_options.daemon_requests
        self.reserved = target_options.reserved
        self.taints = target_options.taints
        self.undecided = target_options.undecided
        self.available = dict(target_options.least_available)
        for name, amount in self.used.items():
            self.available[name] = self.available.get(name, 0) - amount


class TargetOptions(Struct, frozen=True, kw_only=True, eq=False):
    """Options of nodes to be launched, and what follows from them.

    Attributes:
        cheapest_labels: Labels of the cheapest option, without the host's.
        decided_labels: Labels of topology keys on which all options agree.
        undecided: Topology keys on which they differ.
        least_available: By resource, the least that any option has for pods.
        reserved: The largest capacity of any option, by resource.
    """

    options: tuple[LaunchableOffering, ...]
    fallback: tuple[LaunchableOffering, ...]
    cheapest_labels: Mapping[str, str]
    decided_labels: Mapping[str, str]
    undecided: frozenset[str]
    least_available: Mapping[str, int]
    reserved: Resources
    daemon_requests: Resources
    taints: tuple[Taint, ...]
    options_mask: int


def target_options(
    offerings: OfferingIndex,
    options: Sequence[LaunchableOffering],
    fallback: Sequence[LaunchableOffering],
    topology_keys: Iterable[str],
) -> TargetOptions:
    """Return the options with the first one's Provisioner and pick, and what follows from them.

    Spot options that cost more than the cheapest on-demand one are left out, since EC2 may choose
    any of the options. If a Provisioner sets minValues they stay.

    Source: `SpotOfferingFilter` of
    https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instance/filter/filter.go
    (2026-11-27).
    """
    variant = offerings.table.variant(options[0].offer)
    kept = tuple(option for option in options if offerings.table.variant(option.offer) == variant)
    spare = tuple(option for option in fallback if offerings.table.variant(option.offer) == variant)
    first = offerings.table.offers[kept[0].offer]
    is_spot = kept[0].offering.capacity_type == CapacityType.SPOT
    if is_spot and spare and not first.provisioner.least_values:
        most = spare[0].offering.price_micros_per_hour
        kept = tuple(option for option in kept if option.offering.price_micros_per_hour <= most)
    decided = {}
    undecided = set()
    for key in topology_keys:
        values = {offerings.table.label(option, key) for option in (*kept, *spare)}
        value = offerings.table.label(kept[0], key)
        if len(values) > 1:
            undecided.add(key)
        elif value is not None:
            decided[key] = value
    offers = sorted({option.offer for option in (*kept, *spare)})
    least = dict(offerings.table.offers[offers[0]].available.items)
    for index in offers[1:]:
        amounts = dict(offerings.table.offers[index].available.items)
        least = {name: min(v, amounts.get(name, 0)) for name, v in least.items()}
    return TargetOptions(
        options=kept,
        fallback=spare,
        cheapest_labels=offerings.table.labels(kept[0]),
        decided_labels=decided,
        undecided=frozenset(undecided),
        least_available=least,
        reserved=offerings.table.largest_counted((*kept, *spare)),
        daemon_requests=first.daemon_requests,
        taints=first.provisioner.taints,
        options_mask=offerings.table.mask_of((*kept, *spare)),
    )

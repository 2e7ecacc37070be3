"""Spots: nodes that are filled while a plan is made, those that stand and those to be bought."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.taints import Taint
from shared.model.resources import Resources
from shared.planning.offerings.offering_index import OfferingIndex
from shared.planning.offerings.offering_table import LaunchableOffering
from shared.planning.offerings.pending_group import PendingGroup
from shared.scheduling.compatibility import Port, conflict
from shared.scheduling.existing_nodes import ExistingNode
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.topology.counts import Place, Profile

_ENDLESS: Final = 1 << 60


class TargetNode(Place):
    """A node with the room it has left.

    Attributes:
        room: The room it is; None for a node to be bought.
        free: Amounts left, by resource name: on a node to be bought, of its smallest option.
        mask: Over `OfferingTable.listed`: the options of a node to be bought, and its `fallback`.
        ways: Options of a node to be bought, cheapest first; all hold everything on it.
        fallback: Options of another capacity type.
        daemons: What DaemonSet pods will take on a node to be bought.
        contents: Pods placed by this plan, by pending group.
        reserved: Of a node to be bought: the most any option has, where limits count it.
        undecided: Topology keys of which a node to be bought may get several values.
        signatures: What the pods on it demand, each once.
        daemon_set_pods: What pods of DaemonSets add to the topology counts of a node to be bought.
        volumes: Shared volumes attached to it, each with the pods of this plan that use it and one
            more when it was there before.
    """

    __slots__ = (
        "contents",
        "daemon_set_pods",
        "daemons",
        "fallback",
        "free",
        "mask",
        "ports",
        "reserved",
        "room",
        "signatures",
        "undecided",
        "used",
        "volumes",
        "ways",
    )

    def __init__(
        self, name: str, labels: Mapping[str, str], room: ExistingNode | None = None
    ) -> None:
        super().__init__(name, labels, room.taints if room is not None else ())
        self.room = room
        self.free: dict[str, int] = dict(room.available.items) if room is not None else {}
        self.undecided: frozenset[str] = frozenset()
        self.ways: tuple[LaunchableOffering, ...] = ()
        self.mask = 0
        self.fallback: tuple[LaunchableOffering, ...] = ()
        self.daemons = Resources()
        self.used: dict[str, int] = {}
        self.reserved = Resources()
        self.contents: dict[int, list[PodRef]] = {}
        self.signatures: dict[NodeConstraints, None] = {}
        self.ports: list[Port] = []
        self.daemon_set_pods: tuple[Profile, ...] = ()
        self.volumes: dict[str, int] = {}
        if room is not None:
            self.ports = list(room.ports)
            self.volumes = dict.fromkeys(room.volumes, 1)

    @property
    def requests(self) -> Resources:
        """What the pods on a node to be bought ask for together."""
        return Resources.from_mapping(self.used)

    def fitting(self, pod_group: PendingGroup) -> int:
        """Return how many such pods still fit."""
        free = self.free
        if pod_group.shared and any(
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
        return not any(conflict(port, other) for port in ports for other in self.ports)

    def put(self, pod_group: PendingGroup, pods: Sequence[PodRef]) -> None:
        """Place pods; whether they may be is asked before."""
        self.contents.setdefault(pod_group.index, []).extend(pods)
        for volume, resource in pod_group.shared:
            if volume not in self.volumes:
                self._take_amount(resource, 1)
            self.volumes[volume] = self.volumes.get(volume, 0) + len(pods)
        for name, amount in pod_group.requests.items:
            self.free[name] = self.free.get(name, 0) - amount * len(pods)
        if self.room is None:
            for name, amount in pod_group.requests.items:
                self.used[name] = self.used.get(name, 0) + amount * len(pods)
            self.signatures[pod_group.signature] = None
        if pod_group.ports:
            self.ports.extend(pod_group.ports)

    def remove(self, pod_group: PendingGroup, pod: PodRef) -> None:
        """Take a pod away again."""
        self.contents[pod_group.index].remove(pod)
        if not self.contents[pod_group.index]:
            del self.contents[pod_group.index]
        for volume, resource in pod_group.shared:
            self.volumes[volume] -= 1
            if not self.volumes[volume]:
                del self.volumes[volume]
                self._take_amount(resource, -1)
        for name, amount in pod_group.requests.items:
            self.free[name] += amount
        if self.room is None:
            for name, amount in pod_group.requests.items:
                self.used[name] -= amount
        for port in pod_group.ports:
            self.ports.remove(port)

    def _take_amount(self, name: str, amount: int) -> None:
        self.free[name] = self.free.get(name, 0) - amount
        if self.room is None:
            self.used[name] = self.used.get(name, 0) + amount

    def take(self, group: "TargetGroup") -> None:
        """Take other options; what is free is worked out anew."""
        self.ways = group.ways
        self.mask = group.mask
        self.fallback = group.fallback
        self.daemons = group.daemons
        self.reserved = group.reserved
        self.taints = group.taints
        self.undecided = group.undecided
        self.free = dict(group.least)
        for name, amount in self.used.items():
            self.free[name] = self.free.get(name, 0) - amount


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetGroup:
    """Options of nodes to be bought, and what follows from them.

    Attributes:
        full: Labels of the cheapest option, without the host's.
        settled: Labels of topology keys on which all options agree.
        undecided: Topology keys on which they do not.
        least: The least any option has for pods.
        reserved: The most any option has in all.
    """

    ways: tuple[LaunchableOffering, ...]
    fallback: tuple[LaunchableOffering, ...]
    full: Mapping[str, str]
    settled: Mapping[str, str]
    undecided: frozenset[str]
    least: Mapping[str, int]
    reserved: Resources
    daemons: Resources
    taints: tuple[Taint, ...]
    mask: int


def group_of(
    launchables: OfferingIndex,
    ways: Sequence[LaunchableOffering],
    fallback: Sequence[LaunchableOffering],
    topology_keys: Iterable[str],
) -> TargetGroup:
    """Return the group of these options, as far as they carry the labels of the first.

    Spot that costs more than on demand would is left out, as EC2 may take any of several options.
    Where a Provisioner asks for least values it stays.

    Source: `SpotOfferingFilter` of
    https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instance/filter/filter.go
    (2026-11-27).
    """
    variant = launchables.table.variant(ways[0].offer)
    kept = tuple(way for way in ways if launchables.table.variant(way.offer) == variant)
    spare = tuple(
        launchable
        for launchable in fallback
        if launchables.table.variant(launchable.offer) == variant
    )
    first = launchables.table.offers[kept[0].offer]
    is_spot = kept[0].offering.capacity_type == CapacityType.SPOT
    if is_spot and spare and not first.provisioner.least_values:
        most = spare[0].offering.price_micros_per_hour
        kept = tuple(way for way in kept if way.offering.price_micros_per_hour <= most)
    settled = {}
    undecided = set()
    for key in topology_keys:
        values = {launchables.table.label(launchable, key) for launchable in (*kept, *spare)}
        value = launchables.table.label(kept[0], key)
        if len(values) > 1:
            undecided.add(key)
        elif value is not None:
            settled[key] = value
    offers = sorted({launchable.offer for launchable in (*kept, *spare)})
    least = dict(launchables.table.offers[offers[0]].available.items)
    for index in offers[1:]:
        amounts = dict(launchables.table.offers[index].available.items)
        least = {name: min(v, amounts.get(name, 0)) for name, v in least.items()}
    return TargetGroup(
        ways=kept,
        fallback=spare,
        full=launchables.table.labels(kept[0]),
        settled=settled,
        undecided=frozenset(undecided),
        least=least,
        reserved=launchables.table.largest_capacity((*kept, *spare)),
        daemons=first.daemon_requests,
        taints=first.provisioner.taints,
        mask=launchables.table.mask_of((*kept, *spare)),
    )

"""Spots: nodes that are filled while a plan is made, those that stand and those to be bought."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model.ec2.launches import PodRef
from shared.model.kubernetes.taints import Taint
from shared.model.resources import Resources
from shared.planning.offerings.offering_index import Wares
from shared.planning.offerings.offering_list import Ware
from shared.planning.offerings.pending_group import Applicant
from shared.scheduling.compatibility import Port, conflict
from shared.scheduling.existing_nodes import Room
from shared.scheduling.node_constraints import Signature
from shared.scheduling.topology.counts import Place, Profile

_ENDLESS: Final = 1 << 60


class Spot(Place):
    """A node with the room it has left.

    Attributes:
        room: The room it is; None for a node to be bought.
        free: Amounts left, by resource name: on a node to be bought, of its smallest option.
        mask: Of `Wares.listed`: the options of a node to be bought, and those of `fallback`.
        ways: Options of a node to be bought, cheapest first; all hold everything on it.
        fallback: Options of another capacity type.
        daemons: What DaemonSet pods will take on a node to be bought.
        contents: Pods placed by this plan, by applicant.
        reserved: Of a node to be bought: the most any option has, where limits count it.
        undecided: Topology keys of which a node to be bought may get several values.
        signatures: What the pods on it demand, each once.
        companions: What pods of DaemonSets add to the census there, on a node to be bought.
        volumes: Shared volumes attached to it, each with the pods of this plan that use it and one
            more when it was there before.
    """

    __slots__ = (
        "companions",
        "contents",
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

    def __init__(self, name: str, labels: Mapping[str, str], room: Room | None = None) -> None:
        super().__init__(name, labels, room.taints if room is not None else ())
        self.room = room
        self.free: dict[str, int] = dict(room.available.items) if room is not None else {}
        self.undecided: frozenset[str] = frozenset()
        self.ways: tuple[Ware, ...] = ()
        self.mask = 0
        self.fallback: tuple[Ware, ...] = ()
        self.daemons = Resources()
        self.used: dict[str, int] = {}
        self.reserved = Resources()
        self.contents: dict[int, list[PodRef]] = {}
        self.signatures: dict[Signature, None] = {}
        self.ports: list[Port] = []
        self.companions: tuple[Profile, ...] = ()
        self.volumes: dict[str, int] = {}
        if room is not None:
            self.ports = list(room.ports)
            self.volumes = dict.fromkeys(room.volumes, 1)

    @property
    def requests(self) -> Resources:
        """What the pods on a node to be bought ask for together."""
        return Resources.from_mapping(self.used)

    def fitting(self, applicant: Applicant) -> int:
        """Return how many such pods still fit."""
        free = self.free
        if applicant.shared and any(
            amount > free.get(name, 0)
            for name, amount in applicant.requests_with(self.volumes).items
        ):
            return 0
        most = _ENDLESS
        for name, amount in applicant.requests.items:
            most = min(most, free.get(name, 0) // amount)
        return max(most, 0)

    def ports_free(self, ports: Iterable[Port]) -> bool:
        """Return whether no pod on it has one of these host ports."""
        return not any(conflict(port, other) for port in ports for other in self.ports)

    def put(self, applicant: Applicant, pods: Sequence[PodRef]) -> None:
        """Place pods; whether they may be is asked before."""
        self.contents.setdefault(applicant.index, []).extend(pods)
        for volume, resource in applicant.shared:
            if volume not in self.volumes:
                self._take_amount(resource, 1)
            self.volumes[volume] = self.volumes.get(volume, 0) + len(pods)
        for name, amount in applicant.requests.items:
            self.free[name] = self.free.get(name, 0) - amount * len(pods)
        if self.room is None:
            for name, amount in applicant.requests.items:
                self.used[name] = self.used.get(name, 0) + amount * len(pods)
            self.signatures[applicant.stance.signature] = None
        if applicant.ports:
            self.ports.extend(applicant.ports)

    def remove(self, applicant: Applicant, pod: PodRef) -> None:
        """Take a pod away again."""
        self.contents[applicant.index].remove(pod)
        if not self.contents[applicant.index]:
            del self.contents[applicant.index]
        for volume, resource in applicant.shared:
            self.volumes[volume] -= 1
            if not self.volumes[volume]:
                del self.volumes[volume]
                self._take_amount(resource, -1)
        for name, amount in applicant.requests.items:
            self.free[name] += amount
        if self.room is None:
            for name, amount in applicant.requests.items:
                self.used[name] -= amount
        for port in applicant.ports:
            self.ports.remove(port)

    def _take_amount(self, name: str, amount: int) -> None:
        self.free[name] = self.free.get(name, 0) - amount
        if self.room is None:
            self.used[name] = self.used.get(name, 0) + amount

    def take(self, group: "Group") -> None:
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
class Group:
    """Options of nodes to be bought, and what follows from them.

    Attributes:
        full: Labels of the cheapest option, without the host's.
        settled: Labels of topology keys on which all options agree.
        undecided: Topology keys on which they do not.
        least: The least any option has for pods.
        reserved: The most any option has in all.
    """

    ways: tuple[Ware, ...]
    fallback: tuple[Ware, ...]
    full: Mapping[str, str]
    settled: Mapping[str, str]
    undecided: frozenset[str]
    least: Mapping[str, int]
    reserved: Resources
    daemons: Resources
    taints: tuple[Taint, ...]
    mask: int


def group_of(
    wares: Wares, ways: Sequence[Ware], fallback: Sequence[Ware], topology_keys: Iterable[str]
) -> Group:
    """Return the group of these options, as far as they carry the labels of the first."""
    variant = wares.variant(ways[0].offer)
    kept = tuple(way for way in ways if wares.variant(way.offer) == variant)
    spare = tuple(ware for ware in fallback if wares.variant(ware.offer) == variant)
    settled = {}
    undecided = set()
    for key in topology_keys:
        values = {wares.label(ware, key) for ware in (*kept, *spare)}
        value = wares.label(kept[0], key)
        if len(values) > 1:
            undecided.add(key)
        elif value is not None:
            settled[key] = value
    offers = sorted({ware.offer for ware in (*kept, *spare)})
    least = dict(wares.offers[offers[0]].available.items)
    for index in offers[1:]:
        amounts = dict(wares.offers[index].available.items)
        least = {name: min(v, amounts.get(name, 0)) for name, v in least.items()}
    first = wares.offers[kept[0].offer]
    return Group(
        ways=kept,
        fallback=spare,
        full=wares.labels(kept[0]),
        settled=settled,
        undecided=frozenset(undecided),
        least=least,
        reserved=wares.largest_capacity((*kept, *spare)),
        daemons=first.daemon_requests,
        taints=first.provisioner.taints,
        mask=wares.mask_of((*kept, *spare)),
    )

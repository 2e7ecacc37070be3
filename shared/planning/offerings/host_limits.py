"""Slots: rules over hosts turned into things the packer can count.

Each rule becomes a pseudo resource `slot/<n>`: a node has a certain number of them and each pod the
rule counts takes some. Slots only guide the packer: the topology constraints decide for every pod.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.scheduling.topology.constraints import Spread
from shared.scheduling.topology.counts import DomainCounter

# A pod that wants a host for itself takes all slots of its rule, a pod it avoids takes one.
_WHOLE: Final = 1_000_000
# Of many classes, spreads that need at most this share of the nodes that others need anyway are
# left to the topology constraints.
_SLACK: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class HostLimit:
    """One rule over hosts.

    Attributes:
        capacity: Slots of an empty node.
        takes: Slots that one pod takes, by pending group.
        spread: The rule when it is a spread, else None.
    """

    name: str
    capacity: int
    takes: Mapping[int, int]
    spread: Spread | None = None

    def left(self, spot: TargetNode) -> int:
        """Return the slots a node has left."""
        if self.spread is None:
            return self.capacity
        there = self.spread.counter.most(spot.labels.get(keys.HOSTNAME, ""))
        return self.capacity + self.spread.floor() - there


class HostLimits:
    """The slots of the rules of some pending groups."""

    def __init__(self, pod_groups: Sequence[PendingGroup], *, spreads: bool = True) -> None:
        """Args: spreads: Whether to count spreads, too, which let more pods in as nodes fill up."""
        self._slots: list[HostLimit] = []
        if spreads:
            self._spreads(pod_groups)
        self._apart(pod_groups)
        self._ports(pod_groups)
        self._taken: dict[int, dict[str, int]] = {}
        self._fill()

    def __bool__(self) -> bool:
        return bool(self._slots)

    def without_slack(self, pod_groups: Iterable[PendingGroup]) -> None:
        """Leave out the spreads that far fewer nodes can keep than other rules need anyway."""
        counts = {pod_group.index: len(pod_group.waiting) for pod_group in pod_groups}
        needs = [
            sum(counts[index] * take for index, take in slot.takes.items()) / slot.capacity
            for slot in self._slots
        ]
        most = max(needs, default=0)
        self._slots = [
            slot
            for slot, need in zip(self._slots, needs, strict=True)
            if slot.spread is None or need > _SLACK * most
        ]
        self._taken.clear()
        self._fill()

    def taken(self, other_pod_group: PendingGroup) -> Resources:
        """Return the slots one pod takes."""
        return Resources.from_mapping(self._taken.get(other_pod_group.index, {}))

    def of_new_node(self) -> Resources:
        """Return the slots a new node has."""
        return Resources.from_mapping({slot.name: slot.capacity for slot in self._slots})

    def left(self, spot: TargetNode) -> Resources:
        """Return the slots a node has left; amounts may be negative."""
        return Resources.from_mapping({slot.name: slot.left(spot) for slot in self._slots})

    def _fill(self) -> None:
        for slot in self._slots:
            for index, take in slot.takes.items():
                self._taken.setdefault(index, {})[slot.name] = take

    def _add(self, capacity: int, takes: Mapping[int, int], spread: Spread | None = None) -> None:
        name = f"slot/{len(self._slots)}"
        self._slots.append(HostLimit(name=name, capacity=capacity, takes=takes, spread=spread))

    def _spreads(self, pod_groups: Sequence[PendingGroup]) -> None:
        found: dict[tuple[DomainCounter, int], Spread] = {}
        holders: dict[DomainCounter, dict[int, int]] = {}
        for pod_group in pod_groups:
            adds = pod_group.kind.profile.adds
            for spread in pod_group.kind.spreads:
                if spread.counter.key == keys.HOSTNAME and spread.counter in adds:
                    found.setdefault((spread.counter, spread.max_skew), spread)
                    holders.setdefault(spread.counter, {})[pod_group.index] = 1
        for (counter, max_skew), spread in found.items():
            self._add(max_skew, holders[counter], spread)

    def _apart(self, pod_groups: Sequence[PendingGroup]) -> None:
        """Add rules between pods of one group; topology constraints cover different groups."""
        found: dict[DomainCounter, list[int]] = {}
        counted: dict[DomainCounter, list[int]] = {}
        for pod_group in pod_groups:
            adds = frozenset(pod_group.kind.profile.adds)
            for counter in adds:
                if counter.key == keys.HOSTNAME:
                    counted.setdefault(counter, []).append(pod_group.index)
            for counter in pod_group.kind.avoids:
                if counter.key == keys.HOSTNAME and counter in adds:
                    found.setdefault(counter, []).append(pod_group.index)
        for counter, holders in found.items():
            own = frozenset(holders)
            others = [index for index in counted[counter] if index not in own]
            whole = _WHOLE if others else 1
            self._add(whole, {**dict.fromkeys(others, 1), **dict.fromkeys(holders, whole)})

    def _ports(self, pod_groups: Sequence[PendingGroup]) -> None:
        """One of a port's slots for each address that is asked for; any address takes them all."""
        wanted: dict[tuple[str, int], dict[str, dict[int, int]]] = {}
        for pod_group in pod_groups:
            for address, protocol, number in pod_group.ports:
                by_address = wanted.setdefault((protocol, number), {})
                by_address.setdefault(_named(address), {})[pod_group.index] = 1
        for by_address in wanted.values():
            everywhere = by_address.get("", {})
            for address in sorted({"", *by_address}):
                self._add(1, {**by_address.get(address, {}), **everywhere})


def closed_hosts(other_pod_group: PendingGroup) -> frozenset[str]:
    """Return the hosts whose present pods exclude the pending group permanently."""
    kind = other_pod_group.kind
    closed = {
        host
        for counter in (*kind.avoids, *kind.shunned)
        if counter.key == keys.HOSTNAME
        for host in (*counter.counts, *counter.ghosts)
        if counter.most(host) > 0
    }
    for spread in kind.spreads:
        if spread.counter.key == keys.HOSTNAME:
            most = spread.max_skew + spread.floor() - spread.own
            counter = spread.counter
            hosts = (*counter.counts, *counter.ghosts)
            closed.update(host for host in hosts if counter.most(host) > most)
    return frozenset(closed)


def _named(address: str) -> str:
    return "" if address in ("", "0.0.0.0", "::") else address  # noqa: S104 - as written

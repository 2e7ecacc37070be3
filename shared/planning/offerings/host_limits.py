"""Slots: rules over hosts turned into things the packer can count.

Each rule becomes a pseudo resource `slot/<n>`: a node has a certain number of them and each pod the
rule counts takes some. Slots only guide the packer: the topology constraints decide for every pod.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_Rule = tuple[int, Mapping[int, int], Spread | None]  # fields of a `HostLimit`


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

    def left(self, spot: TargetNode, floors: Mapping["HostLimit", int]) -> int:
        """Return the slots a node has left, by the least that spreads count on any host."""
        if self.spread is None:
            return self.capacity
        host = spot.labels.get(keys.HOSTNAME, "")
        floor = 0 if self.spread.is_beside_empty(host) else floors[self]
        return self.capacity + floor - self.spread.counter.most(host)


def host_limits(
    pod_groups: Sequence[PendingGroup], *, spreads: bool = True
) -> tuple[HostLimit, ...]:
    """Return the slots of the rules of some pending groups.

    Args:
        spreads: Whether to count spreads, too, which let more pods in as nodes fill up.
    """
    rules = [*(_spreads(pod_groups) if spreads else ()), *_apart(pod_groups), *_ports(pod_groups)]
    return tuple(
        HostLimit(name=f"slot/{number}", capacity=capacity, takes=takes, spread=spread)
        for number, (capacity, takes, spread) in enumerate(rules)
    )


def without_slack(
    slots: Iterable[HostLimit], pod_groups: Iterable[PendingGroup]
) -> tuple[HostLimit, ...]:
    """Return the slots without spreads that far fewer nodes can keep than other rules need."""
    counts = {pod_group.index: len(pod_group.waiting) for pod_group in pod_groups}
    needs = {
        slot: sum(counts[index] * take for index, take in slot.takes.items()) / slot.capacity
        for slot in slots
    }
    most = max(needs.values(), default=0)
    return tuple(
        slot for slot, need in needs.items() if slot.spread is None or need > _SLACK * most
    )


def slots_taken(slots: Iterable[HostLimit]) -> dict[int, Resources]:
    """Return the slots one pod takes, by pending group; groups that take none are absent."""
    taken: dict[int, dict[str, int]] = {}
    for slot in slots:
        for index, take in slot.takes.items():
            taken.setdefault(index, {})[slot.name] = take
    return {index: Resources.from_mapping(amounts) for index, amounts in taken.items()}


def slots_of_new_node(slots: Iterable[HostLimit]) -> Resources:
    """Return the slots a new node has."""
    return Resources.from_mapping({slot.name: slot.capacity for slot in slots})


def slots_left(
    slots: Sequence[HostLimit], spots: Sequence[TargetNode], waiting: Mapping[int, int]
) -> Iterator[Resources]:
    """Yield the slots that each node has left; amounts may be negative.

    Args:
        slots: Of some pending groups.
        spots: The nodes.
        waiting: How many pods, by pending group.
    """
    hosts = {spot.labels.get(keys.HOSTNAME, "") for spot in spots}
    floors = {
        slot: slot.spread.highest_floor(
            sum(waiting.get(index, 0) * take for index, take in slot.takes.items()), hosts
        )
        for slot in slots
        if slot.spread is not None
    }
    for spot in spots:
        yield Resources.from_mapping({slot.name: slot.left(spot, floors) for slot in slots})


def _spreads(pod_groups: Iterable[PendingGroup]) -> Iterator[_Rule]:
    found: dict[tuple[DomainCounter, int], Spread] = {}
    holders: dict[DomainCounter, dict[int, int]] = {}
    for pod_group in pod_groups:
        adds = pod_group.kind.profile
        for spread in pod_group.kind.spreads:
            if spread.counter.key == keys.HOSTNAME and spread.counter in adds and spread.own:
                found.setdefault((spread.counter, spread.max_skew), spread)
                holders.setdefault(spread.counter, {})[pod_group.index] = spread.own
    for (counter, max_skew), spread in found.items():
        yield max_skew, holders[counter], spread


def _apart(pod_groups: Iterable[PendingGroup]) -> Iterator[_Rule]:
    """Yield rules between pods of one group; topology constraints cover different groups."""
    found: dict[DomainCounter, list[int]] = {}
    counted: dict[DomainCounter, list[int]] = {}
    for pod_group in pod_groups:
        adds = frozenset(pod_group.kind.profile)
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
        yield whole, {**dict.fromkeys(others, 1), **dict.fromkeys(holders, whole)}, None


def _ports(pod_groups: Iterable[PendingGroup]) -> Iterator[_Rule]:
    """Yield one of a port's slots for each address asked for; any address takes them all."""
    wanted: dict[tuple[str, int], dict[str, dict[int, int]]] = {}
    for pod_group in pod_groups:
        for address, protocol, number in pod_group.ports:
            by_address = wanted.setdefault((protocol, number), {})
            by_address.setdefault(_named(address), {})[pod_group.index] = 1
    for by_address in wanted.values():
        everywhere = by_address.get("", {})
        for address in sorted({"", *by_address}):
            yield 1, {**by_address.get(address, {}), **everywhere}, None


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
            counter, floor = spread.counter, spread.highest_floor(len(other_pod_group.waiting))
            for host in (*counter.counts, *counter.ghosts):
                least = 0 if spread.is_beside_empty(host) else floor
                if counter.most(host) > spread.max_skew + least - spread.own:
                    closed.add(host)
    return frozenset(closed)


def _named(address: str) -> str:
    return "" if address in ("", "0.0.0.0", "::") else address  # noqa: S104 - as written

"""Host limits: rules over hosts as pseudo resources, which the packer can count.

Each rule becomes a pseudo resource `slot/<n>`: a node has a certain amount of it, and each pod that
the rule counts takes some. Host limits only guide the packer: the topology constraints decide for
every pod.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.offerings.target_node import TargetNode
from shared.planning.rules.topology.constraints import Spread
from shared.planning.rules.topology.counts import DomainCounter

# A pod with anti-affinity takes the whole amount of its host, a pod that it avoids takes one.
_WHOLE: Final = 1_000_000
# With many classes, spreads that need at most half of the nodes that other rules need get no pseudo
# resource: they are left to the topology constraints.
_SLACK: Final = 0.5
_Rule = tuple[int, Mapping[int, int], Spread | None]  # fields of a `HostLimit`


class HostLimit(Struct, frozen=True, eq=False):
    """One rule over hosts.

    Attributes:
        capacity: Amount of the pseudo resource on an empty node.
        takes: Amount that one pod takes, by pending group.
        spread: The rule when it is a spread, else None.
    """

    name: str
    capacity: int
    takes: Mapping[int, int]
    spread: Spread | None = None

    def available_on(self, target: TargetNode, minimums: Mapping["HostLimit", int]) -> int:
        """Return the amount left on a node, given the global minimums of the spreads."""
        if self.spread is None:
            return self.capacity
        host = target.labels.get(keys.HOSTNAME, "")
        minimum = 0 if self.spread.compares_with_empty(host) else minimums[self]
        return self.capacity + minimum - self.spread.counter.highest_count(host)


def find_host_limits(
    pod_groups: Sequence[PendingGroup], *, spreads: bool = True
) -> tuple[HostLimit, ...]:
    """Return the host limits of some pending groups.

    Args:
        spreads: Whether to include spreads, which let in more pods as nodes fill up.
    """
    rules = [
        *(_spreads(pod_groups) if spreads else ()),
        *_anti_affinities(pod_groups),
        *_ports(pod_groups),
    ]
    return tuple(
        HostLimit(name=f"slot/{number}", capacity=capacity, takes=takes, spread=spread)
        for number, (capacity, takes, spread) in enumerate(rules)
    )


def without_slack(
    host_limits: Iterable[HostLimit], pod_groups: Iterable[PendingGroup]
) -> tuple[HostLimit, ...]:
    """Return the host limits without spreads that need far fewer nodes than other rules."""
    counts = {pod_group.index: len(pod_group.waiting) for pod_group in pod_groups}
    needs = {
        host_limit: sum(counts[index] * take for index, take in host_limit.takes.items())
        / host_limit.capacity
        for host_limit in host_limits
    }
    most = max(needs.values(), default=0)
    return tuple(
        host_limit
        for host_limit, need in needs.items()
        if host_limit.spread is None or need > _SLACK * most
    )


def pseudo_requests(host_limits: Iterable[HostLimit]) -> dict[int, Resources]:
    """Return the pseudo resources that one pod takes, by pending group; absent if none."""
    taken: dict[int, dict[str, int]] = {}
    for host_limit in host_limits:
        for index, take in host_limit.takes.items():
            taken.setdefault(index, {})[host_limit.name] = take
    return {index: Resources.from_mapping(amounts) for index, amounts in taken.items()}


def pseudo_capacity_of_new_node(host_limits: Iterable[HostLimit]) -> Resources:
    """Return the pseudo resources of a new node."""
    return Resources.from_mapping(
        {host_limit.name: host_limit.capacity for host_limit in host_limits}
    )


def pseudo_available(
    host_limits: Sequence[HostLimit], targets: Sequence[TargetNode], waiting: Mapping[int, int]
) -> Iterator[Resources]:
    """Yield the pseudo resources that each node has left; amounts may be negative.

    Args:
        host_limits: Of some pending groups.
        targets: The nodes.
        waiting: Number of pods, by pending group.
    """
    hosts = {target.labels.get(keys.HOSTNAME, "") for target in targets}
    minimums = {
        host_limit: host_limit.spread.highest_minimum(
            sum(waiting.get(index, 0) * take for index, take in host_limit.takes.items()), hosts
        )
        for host_limit in host_limits
        if host_limit.spread is not None
    }
    for target in targets:
        yield Resources.from_mapping(
            {
                host_limit.name: host_limit.available_on(target, minimums)
                for host_limit in host_limits
            }
        )


def _spreads(pod_groups: Iterable[PendingGroup]) -> Iterator[_Rule]:
    found: dict[tuple[DomainCounter, int], Spread] = {}
    holders: dict[DomainCounter, dict[int, int]] = {}
    for pod_group in pod_groups:
        adds = pod_group.topology.profile
        for spread in pod_group.topology.spreads:
            if spread.counter.key == keys.HOSTNAME and spread.counter in adds and spread.self_match:
                found.setdefault((spread.counter, spread.max_skew), spread)
                holders.setdefault(spread.counter, {})[pod_group.index] = spread.self_match
    for (counter, max_skew), spread in found.items():
        yield max_skew, holders[counter], spread


def _anti_affinities(pod_groups: Iterable[PendingGroup]) -> Iterator[_Rule]:
    """Yield anti-affinity of pods to their own group; topology constraints check the rest."""
    found: dict[DomainCounter, list[int]] = {}
    counted: dict[DomainCounter, list[int]] = {}
    for pod_group in pod_groups:
        adds = frozenset(pod_group.topology.profile)
        for counter in adds:
            if counter.key == keys.HOSTNAME:
                counted.setdefault(counter, []).append(pod_group.index)
        for counter in pod_group.topology.avoids:
            if counter.key == keys.HOSTNAME and counter in adds:
                found.setdefault(counter, []).append(pod_group.index)
    for counter, holders in found.items():
        own = frozenset(holders)
        others = [index for index in counted[counter] if index not in own]
        whole = _WHOLE if others else 1
        yield whole, {**dict.fromkeys(others, 1), **dict.fromkeys(holders, whole)}, None


def _ports(pod_groups: Iterable[PendingGroup]) -> Iterator[_Rule]:
    """Yield a rule for each host port and address; a pod that asks for any address takes all."""
    wanted: dict[tuple[str, int], dict[str, dict[int, int]]] = {}
    for pod_group in pod_groups:
        for address, protocol, number in pod_group.ports:
            by_address = wanted.setdefault((protocol, number), {})
            by_address.setdefault(_named(address), {})[pod_group.index] = 1
    for by_address in wanted.values():
        everywhere = by_address.get("", {})
        for address in sorted({"", *by_address}):
            yield 1, {**by_address.get(address, {}), **everywhere}, None


def closed_hosts(pod_group: PendingGroup) -> frozenset[str]:
    """Return the hosts whose present pods exclude the pending group permanently."""
    topology = pod_group.topology
    closed = {
        host
        for counter in (*topology.avoids, *topology.avoided_by)
        if counter.key == keys.HOSTNAME
        for host in (*counter.counts, *counter.uncertain)
        if counter.highest_count(host) > 0
    }
    for spread in topology.spreads:
        if spread.counter.key == keys.HOSTNAME:
            counter, minimum = spread.counter, spread.highest_minimum(len(pod_group.waiting))
            for host in (*counter.counts, *counter.uncertain):
                least = 0 if spread.compares_with_empty(host) else minimum
                if counter.highest_count(host) > spread.max_skew + least - spread.self_match:
                    closed.add(host)
    return frozenset(closed)


def _named(address: str) -> str:
    return "" if address in ("", "0.0.0.0", "::") else address  # noqa: S104 - as written

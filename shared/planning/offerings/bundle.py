"""Bundles: equal parts of several pending groups, packed like the pods of one."""

from collections.abc import Sequence
from dataclasses import replace

from shared.model.resources import Resources
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.rules.node_constraints import NodeConstraints
from shared.planning.rules.topology.constraints import Spread, TopologyConstraints

# Groups, each with its number of pods in one part.
Members = Sequence[tuple[PendingGroup, int]]


class Bundle(PendingGroup):
    """Equal parts of several pending groups, which are packed like the pods of one.

    Attributes:
        members: The groups, each with its number of pods in one part; those that others follow come
            first.
        parts: How many parts there are.
    """

    __slots__ = ("members", "parts")

    def __init__(
        self,
        index: int,
        members: Members,
        parts: int,
        node_constraints: NodeConstraints,
    ) -> None:
        first = members[0][0]
        self.index = index
        self.members = tuple(members)
        self.parts = parts
        self.pod_class = first.pod_class
        self.priority = max(member.priority for member, _ in members)
        self.waiting = first.waiting[:parts]
        self.ports = tuple(port for member, count in members for port in member.ports * count)
        self.shared_volumes = tuple(
            dict.fromkeys(pair for member, _ in members for pair in member.shared_volumes)
        )
        self.requests = Resources.total(member.requests.times(count) for member, count in members)
        self.limited_provisioners = set[str]().union(
            *(member.limited_provisioners for member, _ in members)
        )
        self._active = (_topology_of(members), node_constraints)


def _topology_of(members: Members) -> TopologyConstraints:
    """Return the rules of a bundle: those of its pods that no pod of the bundle fulfils."""
    topologies = [(member.topology, count) for member, count in members]
    inside = {counter for topology, _ in topologies for counter in topology.profile}
    profile = tuple(
        counter
        for topology, count in topologies
        for counter in topology.profile
        for _ in range(count)
    )
    spreads: dict[tuple[object, int], Spread] = {}
    for topology, _ in topologies:
        for spread in topology.spreads:
            # A part adds this many pods to a domain at once: no smaller skew can be kept.
            own = sum(counter is spread.counter for counter in profile)
            skew = max(spread.max_skew, own)
            spreads[spread.counter, skew] = replace(spread, self_match=own, max_skew=skew)
    return TopologyConstraints(
        profile=profile,
        spreads=tuple(spreads.values()),
        affinities=tuple(
            rule
            for topology, _ in topologies
            for rule in topology.affinities
            if not inside.issuperset(rule.counters)
        ),
        avoids=tuple(
            dict.fromkeys(counter for topology, _ in topologies for counter in topology.avoids)
        ),
        avoided_by=tuple(
            dict.fromkeys(counter for topology, _ in topologies for counter in topology.avoided_by)
        ),
        keys=tuple(sorted({key for topology, _ in topologies for key in topology.keys})),
        has_host_rules=any(topology.has_host_rules for topology, _ in topologies),
    )

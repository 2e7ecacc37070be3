"""Bundles: equal parts of several pending groups, packed like the pods of one."""

from collections.abc import Sequence
from dataclasses import replace

from shared.model.resources import Resources
from shared.planning.offerings.pending_group import PendingGroup
from shared.scheduling.node_constraints import NodeConstraints
from shared.scheduling.topology.constraints import ConstraintKind, Spread

# Groups with the pods that a part has of each.
Members = Sequence[tuple[PendingGroup, int]]


class Bundle(PendingGroup):
    """Equal parts of several pending groups, which are packed like the pods of one.

    Attributes:
        members: The groups, those that others follow first, with the pods of each in one part.
        parts: How many parts there are.
    """

    __slots__ = ("members", "parts")

    def __init__(
        self,
        index: int,
        members: Members,
        parts: int,
        signature: NodeConstraints,
    ) -> None:
        first = members[0][0]
        self.index = index
        self.members = tuple(members)
        self.parts = parts
        self.one = first.one
        self.priority = max(member.priority for member, _ in members)
        self.waiting = first.waiting[:parts]
        self.ports = tuple(port for member, count in members for port in member.ports * count)
        self.shared = tuple(dict.fromkeys(pair for member, _ in members for pair in member.shared))
        self.requests = Resources.total(member.requests.times(count) for member, count in members)
        self.turned_away = set[str]().union(*(member.turned_away for member, _ in members))
        self._active = (_kind(members), signature)


def _kind(members: Members) -> ConstraintKind:
    """Return the rules of a bundle: those of its pods that no pod of it fulfils."""
    kinds = [(member.kind, count) for member, count in members]
    inside = {counter for kind, _ in kinds for counter in kind.profile}
    profile = tuple(
        counter for kind, count in kinds for counter in kind.profile for _ in range(count)
    )
    spreads: dict[tuple[object, int], Spread] = {}
    for kind, _ in kinds:
        for spread in kind.spreads:
            # As even as parts of this size can be.
            own = sum(counter is spread.counter for counter in profile)
            skew = max(spread.max_skew, own)
            spreads[spread.counter, skew] = replace(spread, own=own, max_skew=skew)
    return ConstraintKind(
        profile=profile,
        spreads=tuple(spreads.values()),
        affinities=tuple(
            rule
            for kind, _ in kinds
            for rule in kind.affinities
            if not inside.issuperset(rule.counters)
        ),
        avoids=tuple(dict.fromkeys(counter for kind, _ in kinds for counter in kind.avoids)),
        shunned=tuple(dict.fromkeys(counter for kind, _ in kinds for counter in kind.shunned)),
        keys=tuple(sorted({key for kind, _ in kinds for key in kind.keys})),
        by_host=any(kind.by_host for kind, _ in kinds),
    )

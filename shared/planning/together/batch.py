"""A batch as count vectors: how many pods of each group are meant, as one number.

Every part of a vector is a smaller number, and parts are subtracted like numbers.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Final

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.scheduling.binding import left_to_scheduler
from shared.scheduling.topology.constraints import Affinity, ConstraintKind, Spread
from shared.scheduling.topology.counts import DomainCounter

# Ways in which spreads over hosts may end that are looked at.
_MOST_FLOORS: Final = 24
# By counter of a spread over hosts, how many pods the least crowded host ends with.
Floors = Mapping[DomainCounter, int]


class Batch:
    """Pending groups that are decided together, and what their rules say of count vectors.

    Attributes:
        pod_groups: In the order of the places of a vector.
        whole: The vector of all waiting pods.
        counts: By vector, how many pods of each group.
        parts: By vector, its parts, from the empty one to itself.
    """

    def __init__(self, pod_groups: Sequence[PendingGroup]) -> None:
        self.pod_groups = tuple(pod_groups)
        waiting = [len(pod_group.waiting) for pod_group in self.pod_groups]
        self.counts = list(product(*[range(count + 1) for count in waiting]))
        self.whole = len(self.counts) - 1
        self._steps = [prod(n + 1 for n in waiting[place + 1 :]) for place in range(len(waiting))]
        self.parts = [self._parts(counts) for counts in self.counts]
        self._counting: dict[DomainCounter, tuple[int, ...]] = {}

    def _parts(self, counts: Sequence[int]) -> list[int]:
        found = [0]
        for count, step in zip(counts, self._steps, strict=True):
            found = [part + step * number for part in found for number in range(count + 1)]
        return found

    def one(self, place: int) -> int:
        """Return the vector of one pod of a group."""
        return self._steps[place]

    def present(self, vector: int) -> list[PendingGroup]:
        """Return the groups that a vector has pods of."""
        return [self.pod_groups[place] for place in self._places(vector)]

    def first(self, vector: int) -> int:
        """Return the place of the first group that a vector, not empty, has pods of."""
        return self._places(vector)[0]

    def _counted(self, counter: DomainCounter, vector: int) -> int:
        """Return how many pods of a vector a counter counts."""
        if counter not in self._counting:
            self._counting[counter] = tuple(
                int(counter in pod_group.kind.profile) for pod_group in self.pod_groups
            )
        pairs = zip(self._counting[counter], self.counts[vector], strict=True)
        return sum(own * count for own, count in pairs)

    def gathered(self, vector: int) -> tuple[int, ...]:
        """Return how many pods there are of those that must all be on one host, by their rule."""
        return tuple(
            self._counted(counter, vector)
            for pod_group in self.pod_groups
            for rule in pod_group.kind.affinities
            if rule.own
            for counter in rule.counters
            if counter.key == keys.HOSTNAME
        )

    def may_share(self, key: str, value: str | None, vector: int, whole: int) -> bool:
        """Return whether affinity and anti-affinity over a key let a vector be in one domain.

        Args:
            key: A topology key.
            value: The domain, in which other pods may be; None for a node without the label.
            vector: All pods of the batch that would be there.
            whole: All that are placed anywhere.
        """
        for place, count in enumerate(self.counts[vector]):
            if not count:
                continue
            kind = self.pod_groups[place].kind
            if self._is_apart(kind, key, value, vector):
                return False
            if any(self._is_lonely(rule, key, value, vector, whole) for rule in kind.affinities):
                return False
        return True

    def _is_apart(self, kind: ConstraintKind, key: str, value: str | None, vector: int) -> bool:
        return any(
            counter.key == key
            and counter.most(value or "") + self._counted(counter, vector)
            > int(counter in kind.profile)
            for counter in (*kind.avoids, *kind.shunned)
        )

    def _asking(self, counter: DomainCounter, vector: int) -> int:
        """Return how many pods of a vector ask for pods of a counter that counts them as well."""
        return sum(
            self.counts[vector][place]
            for place in self._places(vector)
            if any(
                rule.own and counter in rule.counters
                for rule in self.pod_groups[place].kind.affinities
            )
        )

    def _is_lonely(
        self,
        rule: Affinity,
        key: str,
        value: str | None,
        vector: int,
        whole: int,
    ) -> bool:
        for counter in rule.counters:
            if counter.key != key:
                continue
            if value is None:
                return True
            here = self._counted(counter, vector)
            # Those that ask for each other cannot begin where none of the others is.
            asking = self._asking(counter, vector) if rule.own else 0
            if counter.counts.get(value, 0) + here - asking > 0:
                continue
            # The first of those that ask for each other may be anywhere, with all others.
            if not rule.own or not rule.is_first() or here < self._counted(counter, whole):
                return True
        return False

    def floors(self, hosts: Collection[str]) -> list[Floors]:
        """Return what the least crowded host of each spread may end with, as far as it may differ.

        Args:
            hosts: Those that may get pods of the batch.
        """
        spreads = {
            spread.counter: spread
            for place in range(len(self.pod_groups))
            for spread in self._spreads_of(place)
        }
        levels = [self._levels(spread, hosts) for spread in spreads.values()]
        return [
            dict(zip(spreads, floors, strict=True))
            for floors in islice(product(*levels), _MOST_FLOORS)
        ]

    def _levels(self, spread: Spread, hosts: Collection[str]) -> list[int]:
        """Return what the least crowded host may end with.

        That is as much as now or more, or less where a new node has fewer, down to nothing.
        """
        if not spread.counter.eligible:
            return [0]
        now = spread.floor()
        most = spread.highest_floor(self._counted(spread.counter, self.whole), hosts)
        return [*range(now, most + 1), *range(min(now, spread.max_skew + 1))]

    def keeps_even(
        self, host: str | None, vector: int, floors: Floors, looking: Collection[DomainCounter]
    ) -> bool:
        """Return whether spreads over hosts let a host end with a vector.

        Args:
            host: Its name.
            vector: What pods of the batch it would get.
            floors: What the least crowded host of each spread ends with.
            looking: The counters of spreads that look at this host.
        """
        for counter in looking:
            there = counter.counts.get(host or "", 0) + self._counted(counter, vector)
            if there < floors[counter]:
                return False
        # Pods without such rules may come after all others; of these, one group is the last.
        before = [place for place in self._places(vector) if self._spreads_of(place)]
        there = sum(self._steps[place] * self.counts[vector][place] for place in before)
        while before:
            last = [place for place in before if self._is_within(place, host, there, floors)]
            if not last:
                return False
            there -= sum(self._steps[place] * self.counts[vector][place] for place in last)
            before = [place for place in before if place not in last]
        return True

    def _places(self, vector: int) -> list[int]:
        """Return the places of the groups that a vector has pods of."""
        return [place for place, count in enumerate(self.counts[vector]) if count]

    def _spreads_of(self, place: int) -> list[Spread]:
        """Return the spreads over hosts of a group."""
        spreads = self.pod_groups[place].kind.spreads
        return [spread for spread in spreads if spread.counter.key == keys.HOSTNAME]

    def _is_within(self, place: int, host: str | None, vector: int, floors: Floors) -> bool:
        """Return whether a pod of a group may be the last of a vector on a host."""
        return host is not None and all(
            spread.counter.most(host) + self._counted(spread.counter, vector)
            <= spread.max_skew + (0 if spread.is_beside_empty(host) else floors[spread.counter])
            for spread in self._spreads_of(place)
        )

    def ends_even(self, key: str, by_value: dict[str, int]) -> bool:
        """Return whether pods that are spread over the domains of a key can have come there.

        Args:
            by_value: The vector of each domain that gets pods.
        """
        for place, pod_group in enumerate(self.pod_groups):
            for spread in pod_group.kind.spreads:
                if (
                    spread.counter.key == key
                    and spread.own
                    and not self._ends_even(spread, place, by_value)
                ):
                    return False
        return True

    def _ends_even(self, spread: Spread, place: int, by_value: dict[str, int]) -> bool:
        counter = spread.counter
        if len(counter.eligible) < spread.min_domains:
            # Domains may become enough with the nodes that are bought.
            return True
        domains = counter.eligible.keys() | (spread.reach or frozenset())
        floor = min(
            (
                counter.counts.get(domain, 0) + self._counted(counter, by_value.get(domain, 0))
                for domain in domains
            ),
            default=0,
        )
        return all(
            counter.most(value) + self.counts[vector][place] <= spread.max_skew + floor
            for value, vector in by_value.items()
            if self.counts[vector][place]
        )


def is_tied(pod_groups: Sequence[PendingGroup]) -> bool:
    """Return whether rules between pods make the place of some pods a matter of others' places.

    Pods of one group, but for those that must be near each other, are alike to the packer. Where
    kube-scheduler binds pods that are spread, those that they count may come in any order.
    """
    if any(entry.kind.spreads and left_to_scheduler(entry.one.scheduling) for entry in pod_groups):
        return False
    if len(pod_groups) > 1:
        return any(pod_group.kind.is_ruled for pod_group in pod_groups)
    return any(pod_group.kind.affinities for pod_group in pod_groups)

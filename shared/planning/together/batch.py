"""A batch as count vectors: the number of pods of each group, encoded as one number.

Every part of a vector is a smaller number, and parts are subtracted like numbers.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Final

from shared.model import labels as keys
from shared.planning.offerings.pending_group import PendingGroup
from shared.planning.rules.binding import left_to_scheduler
from shared.planning.rules.topology.constraints import Affinity, Spread, TopologyConstraints
from shared.planning.rules.topology.counts import DomainCounter

# Most combinations of final minimums of spreads over hosts that are tried.
_MOST_MINIMUMS: Final = 24
# By counter of a spread over hosts, how many pods the least crowded host ends with.
Minimums = Mapping[DomainCounter, int]


class Batch:
    """Pending groups that are placed together, and what their rules say of count vectors.

    Attributes:
        pod_groups: In the order of the positions of a vector.
        all_pods: The vector of all waiting pods.
        counts: By vector, how many pods of each group.
        parts: By vector, its parts, from the empty one to itself.
    """

    def __init__(self, pod_groups: Sequence[PendingGroup]) -> None:
        self.pod_groups = tuple(pod_groups)
        waiting = [len(pod_group.waiting) for pod_group in self.pod_groups]
        self.counts = list(product(*[range(count + 1) for count in waiting]))
        self.all_pods = len(self.counts) - 1
        self._steps = [
            prod(n + 1 for n in waiting[position + 1 :]) for position in range(len(waiting))
        ]
        self.parts = [self._parts(counts) for counts in self.counts]
        self._counting: dict[DomainCounter, tuple[int, ...]] = {}

    def _parts(self, counts: Sequence[int]) -> list[int]:
        found = [0]
        for count, step in zip(counts, self._steps, strict=True):
            found = [part + step * number for part in found for number in range(count + 1)]
        return found

    def one_pod(self, position: int) -> int:
        """Return the vector of one pod of a group."""
        return self._steps[position]

    def present(self, vector: int) -> list[PendingGroup]:
        """Return the groups that a vector has pods of."""
        return [self.pod_groups[position] for position in self._positions(vector)]

    def first(self, vector: int) -> int:
        """Return the position of the first group that a vector, not empty, has pods of."""
        return self._positions(vector)[0]

    def _counted(self, counter: DomainCounter, vector: int) -> int:
        """Return how many pods of a vector a counter counts."""
        if counter not in self._counting:
            self._counting[counter] = tuple(
                int(counter in pod_group.topology.profile) for pod_group in self.pod_groups
            )
        pairs = zip(self._counting[counter], self.counts[vector], strict=True)
        return sum(own * count for own, count in pairs)

    def co_located(self, vector: int) -> tuple[int, ...]:
        """Return how many pods of a vector must all be on one host, by rule."""
        return tuple(
            self._counted(counter, vector)
            for pod_group in self.pod_groups
            for rule in pod_group.topology.affinities
            if rule.self_match
            for counter in rule.counters
            if counter.key == keys.HOSTNAME
        )

    def may_share(self, key: str, value: str | None, vector: int, all_placed: int) -> bool:
        """Return whether affinity and anti-affinity over a key let a vector share one domain.

        Args:
            key: A topology key.
            value: The domain, in which other pods may be; None for a node without the label.
            vector: All pods of the batch that would be there.
            all_placed: All pods of the batch that are placed anywhere.
        """
        for position, count in enumerate(self.counts[vector]):
            if not count:
                continue
            topology = self.pod_groups[position].topology
            if self._violates_anti_affinity(topology, key, value, vector):
                return False
            if any(
                self._lacks_affinity(rule, key, value, vector, all_placed)
                for rule in topology.affinities
            ):
                return False
        return True

    def _violates_anti_affinity(
        self, topology: TopologyConstraints, key: str, value: str | None, vector: int
    ) -> bool:
        return any(
            counter.key == key
            and counter.highest_count(value or "") + self._counted(counter, vector)
            > int(counter in topology.profile)
            for counter in (*topology.avoids, *topology.avoided_by)
        )

    def _asking(self, counter: DomainCounter, vector: int) -> int:
        """Return how many pods of a vector have affinity to a counter that counts them, too."""
        return sum(
            self.counts[vector][position]
            for position in self._positions(vector)
            if any(
                rule.self_match and counter in rule.counters
                for rule in self.pod_groups[position].topology.affinities
            )
        )

    def _lacks_affinity(
        self,
        rule: Affinity,
        key: str,
        value: str | None,
        vector: int,
        all_placed: int,
    ) -> bool:
        for counter in rule.counters:
            if counter.key != key:
                continue
            if value is None:
                return True
            here = self._counted(counter, vector)
            # Pods with affinity to each other cannot start where none of the others is.
            asking = self._asking(counter, vector) if rule.self_match else 0
            if counter.counts.get(value, 0) + here - asking > 0:
                continue
            # The first of pods with affinity to each other may be anywhere, with all others.
            if (
                not rule.self_match
                or not rule.is_first()
                or here < self._counted(counter, all_placed)
            ):
                return True
        return False

    def minimums(self, hosts: Collection[str]) -> list[Minimums]:
        """Return combinations of what the least crowded host of each spread may end with.

        Args:
            hosts: Hosts that may get pods of the batch.
        """
        spreads = {
            spread.counter: spread
            for position in range(len(self.pod_groups))
            for spread in self._spreads_of(position)
        }
        levels = [self._levels(spread, hosts) for spread in spreads.values()]
        return [
            dict(zip(spreads, minimums, strict=True))
            for minimums in islice(product(*levels), _MOST_MINIMUMS)
        ]

    def _levels(self, spread: Spread, hosts: Collection[str]) -> list[int]:
        """Return what the least crowded host may end with.

        That is as many as now or more, or fewer, down to 0, if a new node has fewer.
        """
        if not spread.counter.eligible:
            return [0]
        now = spread.global_minimum()
        most = spread.highest_minimum(self._counted(spread.counter, self.all_pods), hosts)
        return [*range(now, most + 1), *range(min(now, spread.max_skew + 1))]

    def keeps_within_skew(
        self, host: str | None, vector: int, minimums: Minimums, counters: Collection[DomainCounter]
    ) -> bool:
        """Return whether spreads over hosts allow a host to end with a vector.

        Args:
            host: Its name; None for a node without the label.
            vector: The pods of the batch that it would get.
            minimums: What the least crowded host of each spread ends with.
            counters: The counters of spreads that count this host.
        """
        for counter in counters:
            there = counter.counts.get(host or "", 0) + self._counted(counter, vector)
            if there < minimums[counter]:
                return False
        # Pods without such rules may be bound after all others; of the others, one group is the
        # last.
        before = [position for position in self._positions(vector) if self._spreads_of(position)]
        there = sum(self._steps[position] * self.counts[vector][position] for position in before)
        while before:
            last = [
                position for position in before if self._is_within(position, host, there, minimums)
            ]
            if not last:
                return False
            there -= sum(self._steps[position] * self.counts[vector][position] for position in last)
            before = [position for position in before if position not in last]
        return True

    def _positions(self, vector: int) -> list[int]:
        """Return the positions of the groups that a vector has pods of."""
        return [position for position, count in enumerate(self.counts[vector]) if count]

    def _spreads_of(self, position: int) -> list[Spread]:
        """Return the spreads over hosts of a group."""
        spreads = self.pod_groups[position].topology.spreads
        return [spread for spread in spreads if spread.counter.key == keys.HOSTNAME]

    def _is_within(self, position: int, host: str | None, vector: int, minimums: Minimums) -> bool:
        """Return whether a pod of a group may be bound last of a vector on a host."""
        return host is not None and all(
            spread.counter.highest_count(host) + self._counted(spread.counter, vector)
            <= spread.max_skew
            + (0 if spread.compares_with_empty(host) else minimums[spread.counter])
            for spread in self._spreads_of(position)
        )

    def ends_within_skew(self, key: str, by_value: dict[str, int]) -> bool:
        """Return whether spreads over a key allow its domains to end with these vectors.

        Args:
            by_value: The vector of each domain that gets pods.
        """
        for position, pod_group in enumerate(self.pod_groups):
            for spread in pod_group.topology.spreads:
                if (
                    spread.counter.key == key
                    and spread.self_match
                    and not self._ends_within_skew(spread, position, by_value)
                ):
                    return False
        return True

    def _ends_within_skew(self, spread: Spread, position: int, by_value: dict[str, int]) -> bool:
        counter = spread.counter
        if len(counter.eligible) < spread.min_domains:
            # New nodes may bring the domains up to minDomains.
            return True
        domains = counter.eligible.keys() | (spread.reachable or frozenset())
        minimum = min(
            (
                counter.counts.get(domain, 0) + self._counted(counter, by_value.get(domain, 0))
                for domain in domains
            ),
            default=0,
        )
        return all(
            counter.highest_count(value) + self.counts[vector][position]
            <= spread.max_skew + minimum
            for value, vector in by_value.items()
            if self.counts[vector][position]
        )


def are_interdependent(pod_groups: Sequence[PendingGroup]) -> bool:
    """Return whether the pods' rules refer to each other, so that they must be placed together.

    Pods of one group are alike to the packer, unless they must be near each other. If
    kube-scheduler binds pods with spreads, the pods that these count may be bound in any order:
    then the result is False.
    """
    if any(
        entry.topology.spreads and left_to_scheduler(entry.pod_class.scheduling)
        for entry in pod_groups
    ):
        return False
    if len(pod_groups) > 1:
        return any(pod_group.topology.has_rules for pod_group in pod_groups)
    return any(pod_group.topology.affinities for pod_group in pod_groups)

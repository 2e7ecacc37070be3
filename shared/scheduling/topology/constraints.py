"""Topology constraints: kube-scheduler's rules between pods, each written once, over the counts.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ (2026-08), and the plugins
PodTopologySpread and InterPodAffinity of kube-scheduler 1.34.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shared.model import labels as keys
from shared.scheduling.topology.counts import DomainCounter, Profile

_SHOWN: Final = 3  # domains named in a text


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A topology spread as one pod is judged by it.

    Attributes:
        own: 1 when the pod counts itself, else 0.
        reach: Domains that new nodes of the pod could be in; None when a new node is always a
            new domain.
        standing: Of hosts those that stand. Others let in as many pods as the skew allows beside
            an empty host: which hosts there will be is for the planner to decide, and one for all
            pods would be even, too.
    """

    counter: DomainCounter
    max_skew: int
    own: int
    min_domains: int
    reach: frozenset[str] | None
    standing: frozenset[str] = frozenset()

    def floor(self) -> int:
        """Return the smallest count of any domain that the pod's nodes are or could be in."""
        counter = self.counter
        if len(counter.eligible) < self.min_domains:
            return 0
        counts = counter.counts
        domains = counter.eligible.keys() | (self.reach or frozenset())
        return min((counts.get(domain, 0) for domain in domains), default=0)

    def highest_floor(self, pods: int, growing: Collection[str] | None = None) -> int:
        """Return what the smallest count of any domain with nodes may come to with so many pods.

        Args:
            pods: How many come, one after the other.
            growing: The domains that they can go to; None for all.
        """
        counter, floor = self.counter, self.floor()
        if not self.own or len(counter.eligible) < self.min_domains:
            return floor
        counts = {domain: counter.counts.get(domain, 0) for domain in counter.eligible}
        fixed = [n for domain, n in counts.items() if growing is not None and domain not in growing]
        most = min(fixed, default=floor + pods)
        while floor < most and sum(max(floor + 1 - n, 0) for n in counts.values()) <= pods:
            floor += 1
        return floor

    def is_beside_empty(self, domain: str) -> bool:
        """Return whether a domain is compared with an empty one, whatever the others have."""
        return self.reach is None and domain not in self.standing

    def emptiest(self) -> tuple[str, ...]:
        """Return the domains with the smallest count, sorted; none where new nodes are domains."""
        if self.reach is None:
            return ()
        counts, floor = self.counter.counts, self.floor()
        domains = sorted(self.counter.eligible.keys() | self.reach)
        return tuple(domain for domain in domains if counts.get(domain, 0) == floor)

    def refuses(self, labels: Mapping[str, str]) -> bool:
        """Return whether one more pod in that domain would be too many."""
        domain = labels.get(self.counter.key)
        if domain is None:
            return True
        there = self.counter.most(domain) + self.own
        if there <= self.max_skew:
            return False
        return self.is_beside_empty(domain) or there - self.floor() > self.max_skew

    def forced(self, pods: int) -> Mapping[str, int]:
        """Return how many of so many pods must go to each domain, where this rule counts no others.

        Each domain may end at most maxSkew above the least crowded one, which therefore ends at
        least so high that there is room for all pods. Empty where that is not known.
        """
        if self.reach is None or not self.own or self.counter.ghosts:
            return {}
        counts = {
            domain: self.counter.counts.get(domain, 0)
            for domain in sorted(self.counter.eligible.keys() | self.reach)
        }
        floor = min(counts.values(), default=0)
        while counts and self._most(counts.values(), floor) < pods:
            floor += 1
        return {domain: floor - there for domain, there in counts.items() if there < floor}

    def _most(self, counts: Collection[int], floor: int) -> int:
        """Return how many more pods fit if the least crowded domain ends with so many."""
        top = floor + self.max_skew
        return sum(max(top - there, 0) for there in counts) - self.max_skew


@dataclass(frozen=True, slots=True, eq=False)
class Affinity:
    """Terms of pod affinity that must hold together; each counts pods that all of them count.

    Attributes:
        own: Whether the pod is one of those it asks for: then the first of them may go anywhere.
    """

    counters: tuple[DomainCounter, ...]
    own: bool

    def refuses(self, labels: Mapping[str, str]) -> bool:
        """Return whether a domain lacks the pods that are asked for."""
        missing = False
        for counter in self.counters:
            domain = labels.get(counter.key)
            if domain is None:
                return True
            missing = missing or counter.counts.get(domain, 0) <= 0
        return missing and not (self.own and self.is_first() and self._is_expected(labels))

    def _is_expected(self, labels: Mapping[str, str]) -> bool:
        """Return whether selected pods that may still be placed would be placed in this domain."""
        return all(
            not counter.ghosts or labels[counter.key] in counter.ghosts for counter in self.counters
        )

    def is_first(self) -> bool:
        """Return whether no domain has a pod that the affinity selects."""
        return not any(any(counter.counts.values()) for counter in self.counters)


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintKind:
    """The topology constraints of a pod.

    Attributes:
        avoids: Counts of pods that its anti-affinity selects.
        shunned: Counts of pods whose anti-affinity selects it.
        keys: Topology keys but the host's that any of its rules, or rules that count it, are over.
        by_host: Whether any rule that may refuse it is over hosts.
    """

    profile: Profile
    spreads: tuple[Spread, ...]
    affinities: tuple[Affinity, ...]
    avoids: tuple[DomainCounter, ...]
    shunned: tuple[DomainCounter, ...]
    keys: tuple[str, ...]
    by_host: bool

    @property
    def is_ruled(self) -> bool:
        """Whether anything about other pods may keep it away."""
        return bool(self.spreads or self.affinities or self.avoids or self.shunned)

    @property
    def rules(self) -> int:
        """How many rules it is judged by; a spread, which looks at all domains, counts as four."""
        return 4 * len(self.spreads) + len(self.affinities) + len(self.avoids) + len(self.shunned)

    def counts_hosts(self, host: str) -> bool:
        """Return whether a further host, empty as yet, could make its place on a host wrong."""
        return any(
            spread.counter.key == keys.HOSTNAME and not spread.is_beside_empty(host)
            for spread in self.spreads
        )

    @property
    def with_host(self) -> bool:
        """Whether it must share its host with others."""
        return any(
            counter.key == keys.HOSTNAME for rule in self.affinities for counter in rule.counters
        )


def accepts(kind: ConstraintKind, labels: Mapping[str, str]) -> bool:
    """Return whether kube-scheduler would now accept such a pod on a node with these labels."""
    for counter in kind.avoids:
        if counter.most(labels.get(counter.key, "")) > 0:
            return False
    for counter in kind.shunned:
        if counter.most(labels.get(counter.key, "")) > 0:
            return False
    for rule in kind.affinities:
        if rule.refuses(labels):
            return False
    return all(not spread.refuses(labels) for spread in kind.spreads)


def obstacles(kind: ConstraintKind) -> Iterator[str]:
    """Yield what the rules of a pod that found no place are about, for people."""
    for rule in kind.affinities:
        counter = rule.counters[0]
        yield f"pod affinity over {counter.key} to {counter.selection.describe()}"
    for counter in kind.avoids:
        yield f"pod anti-affinity over {counter.key} to {counter.selection.describe()}"
    for spread in kind.spreads:
        counter, emptiest = spread.counter, spread.emptiest()
        named = ", ".join(emptiest[:_SHOWN]) + (" and others" if len(emptiest) > _SHOWN else "")
        yield (
            f"topology spread over {counter.key} with maxSkew {spread.max_skew} "
            f"of {counter.selection.describe()}"
            + (f", of which there are {spread.floor()} in {named}" if named else "")
        )
    for counter in kind.shunned:
        if any(counter.counts.values()):
            yield f"the anti-affinity over {counter.key} of other pods"

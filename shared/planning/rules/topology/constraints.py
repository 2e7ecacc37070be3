"""Topology constraints: kube-scheduler's rules between pods, each written once, over the counts.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ (2026-08), and the plugins
PodTopologySpread and InterPodAffinity of kube-scheduler 1.34.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.planning.rules.topology.counts import DomainCounter, Profile

_SHOWN: Final = 3  # domains named in a text


class Spread(Struct, frozen=True, eq=False):
    """A topology spread as it applies to one pod.

    Attributes:
        self_match: 1 when the pod counts itself, else 0.
        reachable: Domains that new nodes of the pod could be in; None when a new node is always a
            new domain.
        existing_hosts: Names of existing hosts. A new host is compared with an empty one, since the
            planner may add hosts: one host for all pods would be even, too.
    """

    counter: DomainCounter
    max_skew: int
    self_match: int
    min_domains: int
    reachable: frozenset[str] | None
    existing_hosts: frozenset[str] = frozenset()

    def global_minimum(self) -> int:
        """Return the smallest count of any domain that the pod's nodes are or could be in."""
        counter = self.counter
        if len(counter.eligible) < self.min_domains:
            return 0
        counts = counter.counts
        domains = counter.eligible.keys() | (self.reachable or frozenset())
        return min((counts.get(domain, 0) for domain in domains), default=0)

    def highest_minimum(self, pods: int, growing: Collection[str] | None = None) -> int:
        """Return the highest minimum over domains with nodes that `pods` more pods can reach.

        Args:
            pods: How many are placed, one after the other.
            growing: The domains that they can go to; None for all.
        """
        counter, minimum = self.counter, self.global_minimum()
        if not self.self_match or len(counter.eligible) < self.min_domains:
            return minimum
        counts = {domain: counter.counts.get(domain, 0) for domain in counter.eligible}
        fixed = [n for domain, n in counts.items() if growing is not None and domain not in growing]
        most = min(fixed, default=minimum + pods)
        while minimum < most and sum(max(minimum + 1 - n, 0) for n in counts.values()) <= pods:
            minimum += 1
        return minimum

    def compares_with_empty(self, domain: str) -> bool:
        """Return whether a domain is compared with an empty one, whatever the others have."""
        return self.reachable is None and domain not in self.existing_hosts

    def emptiest(self) -> tuple[str, ...]:
        """Return the domains with the smallest count, sorted; none where new nodes are domains."""
        if self.reachable is None:
            return ()
        counts, minimum = self.counter.counts, self.global_minimum()
        domains = sorted(self.counter.eligible.keys() | self.reachable)
        return tuple(domain for domain in domains if counts.get(domain, 0) == minimum)

    def refuses(self, labels: Mapping[str, str]) -> bool:
        """Return whether one more pod in that domain would be too many."""
        domain = labels.get(self.counter.key)
        if domain is None:
            return True
        count = self.counter.highest_count(domain) + self.self_match
        if count <= self.max_skew:
            return False
        return self.compares_with_empty(domain) or count - self.global_minimum() > self.max_skew

    def least_by_domain(self, pods: int) -> Mapping[str, int]:
        """Return how many of `pods` pods must go to each domain, if this rule counts no others.

        Each domain may end at most maxSkew above the least crowded one, which therefore ends high
        enough for all pods to fit. Empty if that is not known.
        """
        if self.reachable is None or not self.self_match or self.counter.uncertain:
            return {}
        counts = {
            domain: self.counter.counts.get(domain, 0)
            for domain in sorted(self.counter.eligible.keys() | self.reachable)
        }
        minimum = min(counts.values(), default=0)
        while counts and self._most_more(counts.values(), minimum) < pods:
            minimum += 1
        return {domain: minimum - count for domain, count in counts.items() if count < minimum}

    def _most_more(self, counts: Collection[int], minimum: int) -> int:
        """Return how many more pods fit if the least crowded domain ends with `minimum`."""
        top = minimum + self.max_skew
        return sum(max(top - count, 0) for count in counts) - self.max_skew


class Affinity(Struct, frozen=True, eq=False):
    """Terms of pod affinity that must hold together; each counts the pods that all of them select.

    Attributes:
        self_match: Whether the pod is one of those it asks for: then the first of them may go
            anywhere.
    """

    counters: tuple[DomainCounter, ...]
    self_match: bool

    def refuses(self, labels: Mapping[str, str]) -> bool:
        """Return whether a domain lacks the pods that are asked for."""
        missing = False
        for counter in self.counters:
            domain = labels.get(counter.key)
            if domain is None:
                return True
            missing = missing or counter.counts.get(domain, 0) <= 0
        return missing and not (self.self_match and self.is_first() and self._is_expected(labels))

    def _is_expected(self, labels: Mapping[str, str]) -> bool:
        """Return whether selected pods that may still be placed would be placed in this domain."""
        return all(
            not counter.uncertain or labels[counter.key] in counter.uncertain
            for counter in self.counters
        )

    def is_first(self) -> bool:
        """Return whether no domain has a pod that the affinity selects."""
        return not any(any(counter.counts.values()) for counter in self.counters)


class TopologyConstraints(Struct, frozen=True, eq=False):
    """The topology constraints of a pod.

    Attributes:
        avoids: Counts of pods that its anti-affinity selects.
        avoided_by: Counts of pods whose anti-affinity selects it.
        keys: Topology keys, without the host's, of its rules and of rules that count it.
        has_host_rules: Whether any rule that may refuse it is over hosts.
    """

    profile: Profile
    spreads: tuple[Spread, ...]
    affinities: tuple[Affinity, ...]
    avoids: tuple[DomainCounter, ...]
    avoided_by: tuple[DomainCounter, ...]
    keys: tuple[str, ...]
    has_host_rules: bool

    @property
    def has_rules(self) -> bool:
        """Whether anything about other pods may keep it away."""
        return bool(self.spreads or self.affinities or self.avoids or self.avoided_by)

    @property
    def rule_weight(self) -> int:
        """How many rules it must satisfy; a spread, which checks all domains, counts as four."""
        return (
            4 * len(self.spreads) + len(self.affinities) + len(self.avoids) + len(self.avoided_by)
        )

    def depends_on_new_hosts(self, host: str) -> bool:
        """Return whether a further, empty host could violate its spread over hosts."""
        return any(
            spread.counter.key == keys.HOSTNAME and not spread.compares_with_empty(host)
            for spread in self.spreads
        )

    @property
    def must_share_host(self) -> bool:
        """Whether it must share its host with others."""
        return any(
            counter.key == keys.HOSTNAME for rule in self.affinities for counter in rule.counters
        )


def accepts(topology: TopologyConstraints, labels: Mapping[str, str]) -> bool:
    """Return whether kube-scheduler would now accept such a pod on a node with these labels."""
    for counter in topology.avoids:
        if counter.highest_count(labels.get(counter.key, "")) > 0:
            return False
    for counter in topology.avoided_by:
        if counter.highest_count(labels.get(counter.key, "")) > 0:
            return False
    for rule in topology.affinities:
        if rule.refuses(labels):
            return False
    return all(not spread.refuses(labels) for spread in topology.spreads)


def obstacles(topology: TopologyConstraints) -> Iterator[str]:
    """Yield descriptions of the rules of a pod that found no place."""
    for rule in topology.affinities:
        counter = rule.counters[0]
        yield f"pod affinity over {counter.key} to {counter.selection.describe()}"
    for counter in topology.avoids:
        yield f"pod anti-affinity over {counter.key} to {counter.selection.describe()}"
    for spread in topology.spreads:
        counter, emptiest = spread.counter, spread.emptiest()
        named = ", ".join(emptiest[:_SHOWN]) + (" and others" if len(emptiest) > _SHOWN else "")
        yield (
            f"topology spread over {counter.key} with maxSkew {spread.max_skew} "
            f"of {counter.selection.describe()}"
            + (f", of which there are {spread.global_minimum()} in {named}" if named else "")
        )
    for counter in topology.avoided_by:
        if any(counter.counts.values()):
            yield f"the anti-affinity over {counter.key} of other pods"

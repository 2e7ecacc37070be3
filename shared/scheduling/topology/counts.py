"""Topology counts: how many pods each rule counts in each domain, updated pod by pod."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.kubernetes.pods import AffinityTerm, Scheduling
from shared.model.kubernetes.taints import Taint, Toleration, first_untolerated
from shared.model.requirements import Requirements
from shared.scheduling.topology.selector import Selection


@dataclass(frozen=True, slots=True)
class Scope:
    """Nodes whose pods a spread counts: those with all its keys that its policies let in.

    Attributes:
        terms: OR-ed label terms of the pod, None where affinity is ignored.
        tolerations: Of the pod, None where taints are ignored.
        keys: Topology keys of the pod's spreads; a node needs them all.
    """

    terms: tuple[Requirements, ...] | None
    tolerations: tuple[Toleration, ...] | None
    keys: frozenset[str]

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Return whether the pod's own node affinity lets a node with these labels in."""
        return self.terms is None or any(term.allow_labels(labels) for term in self.terms)

    def includes(self, place: "Place") -> bool:
        """Return whether pods on the place are counted."""
        labels = place.labels
        if place.partial:
            # Only the domain is known: the rest is taken to be in favour.
            return self.terms is None or any(
                all(
                    requirement.allows(labels[requirement.key])
                    for requirement in term
                    if requirement.key in labels
                )
                for term in self.terms
            )
        labels = place.full
        if not all(key in labels for key in self.keys):
            return False
        if self.tolerations is not None and first_untolerated(place.taints, self.tolerations):
            return False
        return self.allows(labels)


class Place:
    """A node or domain that pods are placed on, with the labels that are settled.

    Attributes:
        labels: Those that are settled.
        full: All labels it has at present, settled or not.
        partial: Whether it is only a domain: nothing but the labels of topology keys is known.
        unsettled: Keys of labels whose values are made up: pods count, but there is no such domain.
        maybe: What it may turn out to be: what is not true of each of them is not settled.
    """

    __slots__ = ("_scopes", "full", "labels", "maybe", "name", "partial", "taints", "unsettled")

    def __init__(
        self,
        name: str,
        labels: Mapping[str, str],
        taints: tuple[Taint, ...] = (),
        *,
        partial: bool = False,
        unsettled: frozenset[str] = frozenset(),
        maybe: Sequence["Place"] = (),
    ) -> None:
        self.name = name
        self.labels = labels
        self.full = labels
        self.taints = taints
        self.partial = partial
        self.unsettled = unsettled
        self.maybe = maybe
        self._scopes: dict[Scope, bool] = {}

    def within(self, scope: Scope) -> bool:
        """Return whether a scope includes the place."""
        known = self._scopes.get(scope)
        if known is None:
            known = scope.includes(self) and all(place.within(scope) for place in self.maybe)
            self._scopes[scope] = known
        return known

    def settle(self, labels: Mapping[str, str]) -> None:
        """Take further labels as settled."""
        self.labels = {**self.labels, **labels}

    def become(self, full: Mapping[str, str]) -> bool:
        """Take all labels as they stand now; return whether that changed who counts it."""
        self.full = full
        before = self._scopes
        self._scopes = {scope: scope.includes(self) for scope in before}
        return self._scopes != before


class DomainCounter:
    """Pods by domain of one key: those a selection counts, or those that own a term.

    Attributes:
        living: Whether pods that are being deleted are left out.
        counts: By domain; domains without any may be missing.
        ghosts: Pods that kube-scheduler keeps room for and has not bound, by domain: each rule
            must hold with them and without.
        eligible: Number of nodes in scope, by domain.
    """

    __slots__ = ("counts", "eligible", "ghosts", "key", "living", "scope", "selection")

    def __init__(
        self, key: str, selection: Selection, scope: Scope | None, *, living: bool
    ) -> None:
        self.key = key
        self.selection = selection
        self.scope = scope
        self.living = living
        self.counts: dict[str, int] = {}
        self.ghosts: dict[str, int] = {}
        self.eligible: dict[str, int] = {}

    def most(self, domain: str) -> int:
        """Return how many pods there may be in a domain."""
        there = self.counts.get(domain, 0)
        return there + self.ghosts.get(domain, 0) if self.ghosts else there


# The counters to which a pod adds itself on any node.
Profile = tuple[DomainCounter, ...]


class _Counters:
    """Counters, each made once, and which of them count a pod."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Selection, Scope | None, bool], DomainCounter] = {}
        # By a label that the counted pods must have, in the order they were made.
        self._by_label: dict[tuple[str, str] | None, list[tuple[int, DomainCounter]]] = {}
        self._counting: dict[tuple[str, frozenset[tuple[str, str]]], Profile] = {}

    def __iter__(self) -> Iterator[DomainCounter]:
        return iter(self._made.values())

    def of(
        self, key: str, selection: Selection, scope: Scope | None, *, living: bool
    ) -> DomainCounter:
        identity = (key, selection, scope, living)
        if identity not in self._made:
            labels = [pair for _, selector in selection.parts for pair in selector.match_labels]
            made = DomainCounter(key, selection, scope, living=living)
            found = self._by_label.setdefault(labels[0] if labels else None, [])
            found.append((len(self._made), made))
            self._made[identity] = made
        return self._made[identity]

    def counting(self, namespace: str, labels: Mapping[str, str]) -> tuple[DomainCounter, ...]:
        """Return the counters that count such a pod."""
        question = (namespace, frozenset(labels.items()))
        if question not in self._counting:
            near = list(self._by_label.get(None, ()))
            for pair in labels.items():
                near += self._by_label.get(pair, ())
            near.sort(key=lambda entry: entry[0])
            self._counting[question] = tuple(
                counter for _, counter in near if counter.selection.counts(namespace, labels)
            )
        return self._counting[question]


class TopologyCounts:
    """All counters, and the places they look at.

    Counters are made first, then places are opened, then pods added.

    Args:
        known: Keys of labels that any node has or will have; None for any. A term of
            anti-affinity over another one keeps nobody away, and no node is in a domain of it.
    """

    def __init__(self, known: frozenset[str] | None = None) -> None:
        self._known = known
        self._counted = _Counters()
        self._owners = _Counters()
        self._growing: set[DomainCounter] = set()
        self._joined: dict[tuple[DomainCounter, ...], DomainCounter] = {}
        self._unused: frozenset[DomainCounter] = frozenset()
        self._before: dict[DomainCounter, tuple[dict[str, int], dict[str, int]]] = {}

    def is_known(self, key: str) -> bool:
        """Return whether any node has, or will have, a label with this key."""
        return self._known is None or key in self._known

    def keeps_away(self, term: AffinityTerm) -> bool:
        """Return whether anti-affinity may keep any pod from any node."""
        return term.selector is not None and self.is_known(term.key)

    def required_apart(self, scheduling: Scheduling) -> tuple[AffinityTerm, ...]:
        """Return the required terms of anti-affinity that may keep any pod away, each once."""
        required = [term for term in scheduling.anti_affinity if term.weight is None]
        return tuple(dict.fromkeys(filter(self.keeps_away, required)))

    def counted(
        self, key: str, selection: Selection, scope: Scope | None = None, *, living: bool = False
    ) -> DomainCounter:
        """Return the one counter of pods that a selection counts."""
        return self._counted.of(key, selection, scope, living=living)

    def owners(self, key: str, selection: Selection) -> DomainCounter:
        """Return the one counter of pods with a required anti-affinity to these pods."""
        return self._owners.of(key, selection, None, living=False)

    def grow(self, owned: Iterable[DomainCounter]) -> None:
        """Take it that pods with these anti-affinities are placed in this decision."""
        self._growing.update(owned)

    def shunning(self, namespace: str, labels: Mapping[str, str]) -> tuple[DomainCounter, ...]:
        """Return the counters of owners whose anti-affinity counts such a pod.

        Those of pods on nodes alone, which stay as they are, are one counter for each key: however
        many terms keep such a pod away, it is asked once where it may not be. To be asked when all
        pods on nodes are counted.
        """
        found = self._owners.counting(namespace, labels)
        fixed: dict[str, list[DomainCounter]] = {}
        for counter in found:
            if counter not in self._growing:
                fixed.setdefault(counter.key, []).append(counter)
        return (
            *(counter for counter in found if counter in self._growing),
            *(self._join(tuple(alike)) for alike in fixed.values()),
        )

    def _join(self, alike: tuple[DomainCounter, ...]) -> DomainCounter:
        """Return one counter in place of some over the same key that stay as they are."""
        first = alike[0]
        if len(alike) == 1:
            return first
        if alike not in self._joined:
            joined = DomainCounter(first.key, first.selection, None, living=False)
            for counter in alike:
                for total, part in (
                    (joined.counts, counter.counts),
                    (joined.ghosts, counter.ghosts),
                ):
                    for domain, pods in part.items():
                        total[domain] = total.get(domain, 0) + pods
            self._joined[alike] = joined
        return self._joined[alike]

    def profile(
        self,
        namespace: str,
        labels: Mapping[str, str],
        owned: Iterable[DomainCounter],
        *,
        terminating: bool = False,
    ) -> Profile:
        """Return what a pod adds to.

        Args:
            owned: Counters of owners of its own required anti-affinity terms.
        """
        counting = self._counted.counting(namespace, labels)
        if terminating:
            counting = tuple(counter for counter in counting if not counter.living)
        return (*counting, *owned)

    def open(self, place: Place) -> None:
        """Record a node: its domains count even while no pod runs there."""
        for counter in self._counted:
            self._open(counter, place)

    @staticmethod
    def _open(counter: DomainCounter, place: Place) -> None:
        if counter.scope is not None and place.within(counter.scope):
            domain = place.labels.get(counter.key)
            if domain is not None and counter.key not in place.unsettled:
                counter.eligible[domain] = counter.eligible.get(domain, 0) + 1

    def close(self, place: Place) -> None:
        """Take a node back that was opened, and has the same labels still."""
        for counter in self._counted:
            if counter.scope is not None and place.within(counter.scope):
                domain = place.labels.get(counter.key)
                if domain is not None:
                    counter.eligible[domain] -= 1
                    if not counter.eligible[domain]:
                        del counter.eligible[domain]

    def mark(self) -> None:
        """Remember the counts as they are: who stands before anything is decided."""
        self._before = {
            counter: (dict(counter.counts), dict(counter.eligible))
            for counter in (*self._counted, *self._owners)
        }

    def standing(self, counter: DomainCounter) -> Mapping[str, int]:
        """Return the counts, by domain, that were remembered."""
        return self._before[counter][0]

    def leave_out(self, unused: frozenset[DomainCounter]) -> None:
        """Take it that nothing in this decision is judged by some counters."""
        self._unused = unused

    def used(self, profile: Profile) -> Profile:
        """Return those of some counters that something is judged by."""
        if not self._unused:
            return profile
        return tuple(counter for counter in profile if counter not in self._unused)

    def reset(self) -> None:
        """Return to the counts that were remembered."""
        for counter, (counts, eligible) in self._before.items():
            counter.counts = dict(counts)
            counter.eligible = dict(eligible)

    def __bool__(self) -> bool:
        return bool((*self._counted, *self._owners))

    def keys(self) -> tuple[str, ...]:
        """Return the topology keys of all rules but the host's, sorted."""
        counters = (*self.used(tuple(self._counted)), *self._owners)
        over = {counter.key for counter in counters} - {keys.HOSTNAME}
        return tuple(sorted(filter(self.is_known, over)))

    def eligible_domains(self) -> int:
        """Return how many domains the spreads look at, hosts left out, all spreads together."""
        return sum(
            len(counter.eligible)
            for counter in self.used(tuple(self._counted))
            if counter.key != keys.HOSTNAME
        )

    def known_domains(self, key: str, place: Place) -> frozenset[str] | None:
        """Return the domains that all spreads over a key that count a place know; None for none."""
        listed = [
            frozenset(counter.eligible)
            for counter in self.used(tuple(self._counted))
            if counter.key == key and counter.scope is not None and place.within(counter.scope)
        ]
        return frozenset.intersection(*listed) if listed else None

    def settle(self, place: Place, labels: Mapping[str, str]) -> None:
        """Settle further labels of an open place on which no pod counts by their keys yet."""
        before = [
            counter
            for counter in self._counted
            if counter.scope is not None
            and counter.key in place.labels
            and place.within(counter.scope)
        ]
        place.settle(labels)
        for counter in self._counted:
            if counter not in before:
                self._open(counter, place)


def expect(profile: Profile, places: Sequence[Place], sure: Place | None = None) -> None:
    """Count a pod that may or may not come, to one of some places.

    Args:
        sure: Where it is counted in any case: what it adds there is not expected once more.
    """
    for counter in profile:
        counted = None if sure is None else _domain(counter, sure)
        domains = dict.fromkeys(_domain(counter, place) for place in places)
        for domain in domains:
            if domain is not None and domain != counted:
                counter.ghosts[domain] = counter.ghosts.get(domain, 0) + 1


def _domain(counter: DomainCounter, place: Place) -> str | None:
    """Return the domain in which a counter counts the pods of a place, None for none."""
    inside = counter.scope is None or place.within(counter.scope)
    return place.labels.get(counter.key) if inside else None


def add(profile: Profile, place: Place, pods: int = 1) -> None:
    """Count pods of a profile on a place; a negative number subtracts them."""
    labels = place.labels
    for counter in profile:
        domain = labels.get(counter.key)
        if domain is not None and (counter.scope is None or place.within(counter.scope)):
            counter.counts[domain] = counter.counts.get(domain, 0) + pods

"""Topology counts: how many pods each rule counts in each domain, updated pod by pod."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from shared.model import labels as keys
from shared.model.kubernetes.pods import AffinityTerm, Scheduling
from shared.model.kubernetes.taints import Taint, Toleration, first_untolerated
from shared.model.requirements import Requirements
from shared.planning.rules.topology.selector import Selection


class Scope(Struct, frozen=True):
    """Nodes whose pods a spread counts: those with all its keys that its policies include.

    Attributes:
        terms: OR-ed label terms of the pod, None where affinity is ignored.
        tolerations: Of the pod, None where taints are ignored.
        keys: Topology keys of the pod's spreads; a node needs them all.
    """

    terms: tuple[Requirements, ...] | None
    tolerations: tuple[Toleration, ...] | None
    keys: frozenset[str]

    def allows(self, labels: Mapping[str, str]) -> bool:
        """Return whether the pod's own node affinity accepts a node with these labels."""
        return self.terms is None or any(term.allow_labels(labels) for term in self.terms)

    def includes(self, place: "Place") -> bool:
        """Return whether pods on the place are counted."""
        labels = place.labels
        if place.is_domain:
            # Only the domain is known: all other labels are assumed to match.
            return self.terms is None or any(
                all(
                    requirement.allows(labels[requirement.key])
                    for requirement in term
                    if requirement.key in labels
                )
                for term in self.terms
            )
        labels = place.all_labels
        if not all(key in labels for key in self.keys):
            return False
        if self.tolerations is not None and first_untolerated(place.taints, self.tolerations):
            return False
        return self.allows(labels)


class Place:
    """A node or domain that pods are placed on, with the labels that are settled.

    Attributes:
        labels: Those that are settled.
        all_labels: All labels it has at present, settled or not.
        is_domain: Whether it is only a domain: nothing but the labels of topology keys is known.
        placeholder_keys: Keys of labels with placeholder values, which are no domains; pods count.
        possible_places: What it may turn out to be; only what is true of each of them is settled.
    """

    __slots__ = (
        "_scopes",
        "all_labels",
        "is_domain",
        "labels",
        "name",
        "placeholder_keys",
        "possible_places",
        "taints",
    )

    def __init__(
        self,
        name: str,
        labels: Mapping[str, str],
        taints: tuple[Taint, ...] = (),
        *,
        is_domain: bool = False,
        placeholder_keys: frozenset[str] = frozenset(),
        possible_places: Sequence["Place"] = (),
    ) -> None:
        self.name = name
        self.labels = labels
        self.all_labels = labels
        self.taints = taints
        self.is_domain = is_domain
        self.placeholder_keys = placeholder_keys
        self.possible_places = possible_places
        self._scopes: dict[Scope, bool] = {}

    def within(self, scope: Scope) -> bool:
        """Return whether a scope includes the place."""
        known = self._scopes.get(scope)
        if known is None:
            known = scope.includes(self) and all(
                place.within(scope) for place in self.possible_places
            )
            self._scopes[scope] = known
        return known

    def add_labels(self, labels: Mapping[str, str]) -> None:
        """Settle further labels."""
        self.labels = {**self.labels, **labels}

    def update_labels(self, all_labels: Mapping[str, str]) -> bool:
        """Replace all labels; return whether that changed which scopes include the place."""
        self.all_labels = all_labels
        before = self._scopes
        self._scopes = {scope: scope.includes(self) for scope in before}
        return self._scopes != before


class DomainCounter:
    """Number of pods by domain of one key: those a selection counts, or those that own a term.

    Attributes:
        ignores_terminating: Whether pods that are being deleted are left out.
        counts: By domain; domains without any may be missing.
        uncertain: By domain, pods that may not end up there, as nominated ones: rules must hold
            with and without them.
        eligible: Number of nodes in scope, by domain.
    """

    __slots__ = (
        "counts",
        "eligible",
        "ignores_terminating",
        "key",
        "scope",
        "selection",
        "uncertain",
    )

    def __init__(
        self, key: str, selection: Selection, scope: Scope | None, *, ignores_terminating: bool
    ) -> None:
        self.key = key
        self.selection = selection
        self.scope = scope
        self.ignores_terminating = ignores_terminating
        self.counts: dict[str, int] = {}
        self.uncertain: dict[str, int] = {}
        self.eligible: dict[str, int] = {}

    def highest_count(self, domain: str) -> int:
        """Return how many pods there may be in a domain, uncertain ones included."""
        there = self.counts.get(domain, 0)
        return there + self.uncertain.get(domain, 0) if self.uncertain else there


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
        self, key: str, selection: Selection, scope: Scope | None, *, ignores_terminating: bool
    ) -> DomainCounter:
        identity = (key, selection, scope, ignores_terminating)
        if identity not in self._made:
            labels = [pair for _, selector in selection.parts for pair in selector.match_labels]
            made = DomainCounter(key, selection, scope, ignores_terminating=ignores_terminating)
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
    """All counters of a decision.

    Counters are made first, then places are opened, then pods added.

    Args:
        known: Keys of labels that any node has or will have; None for any. A term of anti-affinity
            over another key keeps no pod away, and no node is in a domain of it.
    """

    def __init__(self, known: frozenset[str] | None = None) -> None:
        self._known = known
        self._counted = _Counters()
        self._owners = _Counters()
        self._growing: set[DomainCounter] = set()
        self._joined: dict[tuple[DomainCounter, ...], DomainCounter] = {}
        self._unused: frozenset[DomainCounter] = frozenset()
        self._saved: dict[DomainCounter, tuple[dict[str, int], dict[str, int]]] = {}

    def is_known(self, key: str) -> bool:
        """Return whether any node has, or will have, a label with this key."""
        return self._known is None or key in self._known

    def may_repel(self, term: AffinityTerm) -> bool:
        """Return whether anti-affinity may keep any pod from any node."""
        return term.selector is not None and self.is_known(term.key)

    def required_anti_affinity(self, scheduling: Scheduling) -> tuple[AffinityTerm, ...]:
        """Return the required terms of anti-affinity that may keep any pod away, each once."""
        required = [term for term in scheduling.anti_affinity if term.weight is None]
        return tuple(dict.fromkeys(filter(self.may_repel, required)))

    def counter_of_selected(
        self,
        key: str,
        selection: Selection,
        scope: Scope | None = None,
        *,
        ignores_terminating: bool = False,
    ) -> DomainCounter:
        """Return the one counter of pods that a selection counts."""
        return self._counted.of(key, selection, scope, ignores_terminating=ignores_terminating)

    def counter_of_owners(self, key: str, selection: Selection) -> DomainCounter:
        """Return the one counter of pods with a required anti-affinity to these pods."""
        return self._owners.of(key, selection, None, ignores_terminating=False)

    def mark_growing(self, owned: Iterable[DomainCounter]) -> None:
        """Mark these counters as ones that pods of this decision may add to."""
        self._growing.update(owned)

    def counters_that_repel(
        self, namespace: str, labels: Mapping[str, str]
    ) -> tuple[DomainCounter, ...]:
        """Return the counters of owners whose anti-affinity counts such a pod.

        Counters that only pods on nodes add to do not change: they are joined into one for each
        key, so that however many terms repel such a pod, each key is checked once. Call it when all
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
        """Return one counter in place of several over the same key that do not change."""
        first = alike[0]
        if len(alike) == 1:
            return first
        if alike not in self._joined:
            joined = DomainCounter(first.key, first.selection, None, ignores_terminating=False)
            for counter in alike:
                for total, part in (
                    (joined.counts, counter.counts),
                    (joined.uncertain, counter.uncertain),
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
        """Return the counters that a pod adds to.

        Args:
            owned: Counters of owners of its own required anti-affinity terms.
        """
        counting = self._counted.counting(namespace, labels)
        if terminating:
            counting = tuple(counter for counter in counting if not counter.ignores_terminating)
        return (*counting, *owned)

    def open(self, place: Place) -> None:
        """Record a node: its domains count even while no pod runs there."""
        for counter in self._counted:
            self._open(counter, place)

    @staticmethod
    def _open(counter: DomainCounter, place: Place) -> None:
        if counter.scope is not None and place.within(counter.scope):
            domain = place.labels.get(counter.key)
            if domain is not None and counter.key not in place.placeholder_keys:
                counter.eligible[domain] = counter.eligible.get(domain, 0) + 1

    def close(self, place: Place) -> None:
        """Undo `open` for a node, which must still have the same labels."""
        for counter in self._counted:
            if counter.scope is not None and place.within(counter.scope):
                domain = place.labels.get(counter.key)
                if domain is not None:
                    counter.eligible[domain] -= 1
                    if not counter.eligible[domain]:
                        del counter.eligible[domain]

    def save(self) -> None:
        """Save the counts before planning starts."""
        self._saved = {
            counter: (dict(counter.counts), dict(counter.eligible))
            for counter in (*self._counted, *self._owners)
        }

    def saved_counts(self, counter: DomainCounter) -> Mapping[str, int]:
        """Return the saved counts, by domain."""
        return self._saved[counter][0]

    def ignore(self, unused: frozenset[DomainCounter]) -> None:
        """Ignore these counters in this decision."""
        self._unused = unused

    def used(self, profile: Profile) -> Profile:
        """Return a profile without the ignored counters."""
        if not self._unused:
            return profile
        return tuple(counter for counter in profile if counter not in self._unused)

    def restore(self) -> None:
        """Return to the saved counts."""
        for counter, (counts, eligible) in self._saved.items():
            counter.counts = dict(counts)
            counter.eligible = dict(eligible)

    def __bool__(self) -> bool:
        return bool((*self._counted, *self._owners))

    def keys(self) -> tuple[str, ...]:
        """Return the topology keys of all rules but the host's, sorted."""
        counters = (*self.used(tuple(self._counted)), *self._owners)
        rule_keys = {counter.key for counter in counters} - {keys.HOSTNAME}
        return tuple(sorted(filter(self.is_known, rule_keys)))

    def eligible_domains(self) -> int:
        """Return how many domains the spreads compare, hosts left out, all spreads together."""
        return sum(
            len(counter.eligible)
            for counter in self.used(tuple(self._counted))
            if counter.key != keys.HOSTNAME
        )

    def known_domains(self, key: str, place: Place) -> frozenset[str] | None:
        """Return the domains that all spreads over a key that count the place know, else None."""
        listed = [
            frozenset(counter.eligible)
            for counter in self.used(tuple(self._counted))
            if counter.key == key and counter.scope is not None and place.within(counter.scope)
        ]
        return frozenset.intersection(*listed) if listed else None

    def add_labels(self, place: Place, labels: Mapping[str, str]) -> None:
        """Settle further labels of an open place on which no pod counts by their keys yet."""
        before = [
            counter
            for counter in self._counted
            if counter.scope is not None
            and counter.key in place.labels
            and place.within(counter.scope)
        ]
        place.add_labels(labels)
        for counter in self._counted:
            if counter not in before:
                self._open(counter, place)


def add_uncertain(profile: Profile, places: Sequence[Place], certain: Place | None = None) -> None:
    """Count as uncertain a pod that may be placed on one of these places.

    Args:
        certain: Where it is counted in any case: that domain does not count as uncertain.
    """
    for counter in profile:
        counted = None if certain is None else _domain(counter, certain)
        domains = dict.fromkeys(_domain(counter, place) for place in places)
        for domain in domains:
            if domain is not None and domain != counted:
                counter.uncertain[domain] = counter.uncertain.get(domain, 0) + 1


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

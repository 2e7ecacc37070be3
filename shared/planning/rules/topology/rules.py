"""Rules of pods, compiled into topology constraints."""

from collections.abc import Callable, Iterable, Mapping

from shared.model import labels as keys
from shared.model.kubernetes.pods import (
    AffinityTerm,
    LabelSelector,
    Scheduling,
    SpreadPolicy,
    TopologySpread,
)
from shared.planning.rules.labels_and_taints import node_terms
from shared.planning.rules.preferences import Preference, PreferenceKind, stated_preferences
from shared.planning.rules.topology.constraints import Affinity, Spread, TopologyConstraints
from shared.planning.rules.topology.counts import DomainCounter, Profile, Scope, TopologyCounts
from shared.planning.rules.topology.selector import NOBODY, Selection, own_selection

ReachableDomains = Callable[[str], frozenset[str] | None]


class TopologyRules:
    """Compiles rules; the same rule is always the same counter.

    Register all rules before the first profile or constraints are asked for.

    Args:
        topology_counts: Where the counters are.
        namespaces: Labels of all namespaces, by name.
        existing_hosts: Names of existing hosts.
    """

    def __init__(
        self,
        topology_counts: TopologyCounts,
        namespaces: Mapping[str, Mapping[str, str]],
        existing_hosts: frozenset[str] = frozenset(),
    ) -> None:
        self._topology_counts = topology_counts
        self._namespaces = namespaces
        self._existing_hosts = existing_hosts
        self._selected: dict[LabelSelector, frozenset[str]] = {}
        self._owned: dict[tuple[str, int, bool], tuple[Scheduling, tuple[DomainCounter, ...]]] = {}
        self._wider: Mapping[str, Mapping[str, AffinityTerm]] = {}
        self._of_rules: set[DomainCounter] = set()
        self._of_preferences: set[DomainCounter] = set()

    def register(self, namespace: str, scheduling: Scheduling) -> None:
        """Make the counters of all rules and preferences of a pending pod."""
        for rule in scheduling.spreads:
            counter = self._spread_counter(namespace, scheduling, rule)
            if rule.policy == SpreadPolicy.DO_NOT_SCHEDULE:
                self._of_rules.add(counter)
        required = tuple(term for term in scheduling.affinity if term.weight is None)
        if required:
            self._of_rules.update(self._affinity_counters(namespace, required))
        for term in scheduling.ties:
            self._of_rules.update(self._affinity_counters(namespace, (term,)))
        for term in self._topology_counts.required_anti_affinity(scheduling):
            self._of_rules.add(self._anti_affinity_counter(namespace, term))
        for preference in stated_preferences(scheduling):
            if preference[0] != PreferenceKind.NODES:
                self._of_preferences.add(self.counter(namespace, scheduling, preference))
        self._topology_counts.mark_growing(self.owned(namespace, scheduling))

    def allow_preferences(
        self, namespace: str, scheduling: Scheduling, wanted: Iterable[Preference]
    ) -> None:
        """Use the counters of these preferences: they may become rules in this decision."""
        for preference in wanted:
            if preference[0] not in (PreferenceKind.NODES, PreferenceKind.TAINTS):
                self._of_rules.add(self.counter(namespace, scheduling, preference))

    def counter(
        self, namespace: str, scheduling: Scheduling, preference: Preference
    ) -> DomainCounter:
        """Return the counter that a preference about other pods is checked against."""
        kind, index = preference
        if kind == PreferenceKind.SPREAD:
            return self._spread_counter(namespace, scheduling, scheduling.spreads[index])
        if kind == PreferenceKind.AFFINITY:
            return self._affinity_counters(namespace, (scheduling.affinity[index],))[0]
        return self._anti_affinity_counter(namespace, scheduling.anti_affinity[index])

    def unused(self) -> frozenset[DomainCounter]:
        """Return the counters of preferences that are no rule of any pod in this decision."""
        return frozenset(self._of_preferences - self._of_rules)

    def widen(self, wider: Mapping[str, Mapping[str, AffinityTerm]]) -> None:
        """Replace the anti-affinity terms of pods on nodes, by namespace and topology key."""
        self._wider = wider

    def owned(
        self, namespace: str, scheduling: Scheduling, *, existing: bool = False
    ) -> tuple[DomainCounter, ...]:
        """Return the counters of owners of a pod's required anti-affinity terms.

        Args:
            existing: Whether it is on a node, or comes with one: then the wider terms of its
                namespace, if any, replace its own.
        """
        wider = self._wider.get(namespace, {}) if existing else {}
        if not scheduling.anti_affinity:
            return ()
        # The scheduling is kept, too, so that no other object gets its identity.
        identity = (namespace, id(scheduling), bool(wider))
        if identity not in self._owned:
            terms = self._topology_counts.required_anti_affinity(scheduling)
            owned = tuple(
                self._topology_counts.counter_of_owners(
                    term.key, self._selection(namespace, (term,))
                )
                for term in dict.fromkeys(wider.get(term.key, term) for term in terms)
            )
            self._owned[identity] = (scheduling, owned)
        return self._owned[identity][1]

    def profile(
        self,
        namespace: str,
        labels: Mapping[str, str],
        scheduling: Scheduling,
        *,
        existing: bool = False,
        terminating: bool = False,
    ) -> Profile:
        """Return the counters that such a pod adds to, ignored ones included.

        Args:
            existing: As in `owned`.
        """
        owned = self.owned(namespace, scheduling, existing=existing)
        return self._topology_counts.profile(namespace, labels, owned, terminating=terminating)

    def constraints(
        self,
        namespace: str,
        labels: Mapping[str, str],
        scheduling: Scheduling,
        kept: Iterable[Preference],
        reach: ReachableDomains,
    ) -> TopologyConstraints:
        """Return the topology constraints of a pod while it keeps these preferences."""
        kept_preferences = set(kept)
        spreads = tuple(
            self._spread(namespace, labels, scheduling, rule, reach)
            for index, rule in enumerate(scheduling.spreads)
            if rule.policy == SpreadPolicy.DO_NOT_SCHEDULE
            or (PreferenceKind.SPREAD, index) in kept_preferences
        )
        affinities = tuple(self._affinities(namespace, labels, scheduling, kept_preferences))
        avoids = tuple(
            dict.fromkeys(
                self._anti_affinity_counter(namespace, term)
                for index, term in enumerate(scheduling.anti_affinity)
                if self._topology_counts.may_repel(term)
                and (
                    term.weight is None or (PreferenceKind.ANTI_AFFINITY, index) in kept_preferences
                )
            )
        )
        avoided_by = self._topology_counts.counters_that_repel(namespace, labels)
        profile = self._topology_counts.used(self.profile(namespace, labels, scheduling))
        judging = [spread.counter for spread in spreads]
        judging += [counter for affinity in affinities for counter in affinity.counters]
        judging += [*avoids, *avoided_by]
        rule_keys = {add.key for add in (*judging, *profile)}
        concerned = set(filter(self._topology_counts.is_known, rule_keys))
        return TopologyConstraints(
            profile=profile,
            spreads=spreads,
            affinities=affinities,
            avoids=avoids,
            avoided_by=avoided_by,
            keys=tuple(sorted(concerned - {keys.HOSTNAME})),
            has_host_rules=any(counter.key == keys.HOSTNAME for counter in judging),
        )

    def _affinities(
        self,
        namespace: str,
        labels: Mapping[str, str],
        scheduling: Scheduling,
        preference_kinds: set[Preference],
    ) -> Iterable[Affinity]:
        groups = [tuple(term for term in scheduling.affinity if term.weight is None)]
        groups += [
            (term,)
            for index, term in enumerate(scheduling.affinity)
            if (PreferenceKind.AFFINITY, index) in preference_kinds
        ]
        groups += [(term,) for term in scheduling.ties]
        for terms in groups:
            if terms:
                counters = self._affinity_counters(namespace, terms)
                own = counters[0].selection.counts(namespace, labels)
                yield Affinity(counters=counters, self_match=own)

    def _spread(
        self,
        namespace: str,
        labels: Mapping[str, str],
        scheduling: Scheduling,
        rule: TopologySpread,
        reach: ReachableDomains,
    ) -> Spread:
        counter = self._spread_counter(namespace, scheduling, rule)
        return Spread(
            counter=counter,
            max_skew=rule.max_skew,
            self_match=int(
                rule.selector == LabelSelector() or counter.selection.counts(namespace, labels)
            ),
            min_domains=rule.min_domains or 0,
            reachable=reach(rule.key),
            existing_hosts=self._existing_hosts,
        )

    def _spread_counter(
        self, namespace: str, scheduling: Scheduling, rule: TopologySpread
    ) -> DomainCounter:
        hard = {
            spread.key
            for spread in scheduling.spreads
            if spread.policy == SpreadPolicy.DO_NOT_SCHEDULE
        }
        scope = Scope(
            terms=node_terms(scheduling) if rule.honor_affinity else None,
            tolerations=scheduling.tolerations if rule.honor_taints else None,
            keys=frozenset(hard | {rule.key}),
        )
        selection = own_selection(namespace, rule.selector)
        return self._topology_counts.counter_of_selected(
            rule.key, selection, scope, ignores_terminating=True
        )

    def _affinity_counters(
        self, namespace: str, terms: tuple[AffinityTerm, ...]
    ) -> tuple[DomainCounter, ...]:
        selection = self._selection(namespace, terms)
        return tuple(
            self._topology_counts.counter_of_selected(term.key, selection) for term in terms
        )

    def _anti_affinity_counter(self, namespace: str, term: AffinityTerm) -> DomainCounter:
        selection = self._selection(namespace, (term,))
        return self._topology_counts.counter_of_selected(term.key, selection)

    def _selection(self, namespace: str, terms: Iterable[AffinityTerm]) -> Selection:
        """Return the pods that all terms of a pod in this namespace count."""
        return Selection(
            tuple(
                (self._namespaces_meant(term, namespace), term.selector or NOBODY) for term in terms
            )
        )

    def _namespaces_meant(self, term: AffinityTerm, namespace: str) -> frozenset[str] | None:
        """Return the namespaces that a term selects, None for all."""
        selector = term.namespace_selector
        if selector is None:
            return frozenset(term.namespaces or (namespace,))
        if selector == LabelSelector():
            return None
        if selector not in self._selected:
            self._selected[selector] = frozenset(
                name for name, labels in self._namespaces.items() if selector.selects(labels)
            )
        return self._selected[selector].union(term.namespaces)

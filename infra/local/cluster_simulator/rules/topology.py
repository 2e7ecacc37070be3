"""Topology spread and inter-pod (anti-)affinity as running counts (standard library only).

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ (2026-08).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from infra.local.cluster_simulator.rules.matching import (
    ClusterView,
    Object,
    is_finished,
    labels_of,
    matches_node_affinity,
    matches_selector,
    taints_of,
    untolerated,
)

SPREAD: Final = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL: Final = f"{SPREAD} (missing required label)"
AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

Matches = Callable[[Object], bool]
_EVERYTHING: Final[Object] = {"matchLabels": {}, "matchExpressions": []}


@dataclass(slots=True, kw_only=True)
class _Count:
    """How many matching pods each domain of one key holds."""

    key: str
    matches: Matches
    weight: int = 1
    by_value: dict[str, int] = field(default_factory=dict)

    def place(self, pod: Object, node: Object) -> None:
        value = labels_of(node).get(self.key)
        if value is not None and self.matches(pod):
            self.by_value[value] = self.by_value.get(value, 0) + 1

    def at(self, node: Object) -> int:
        return self.by_value.get(labels_of(node).get(self.key, ""), 0)


@dataclass(slots=True, kw_only=True)
class _Spread(_Count):
    """One spread constraint: counts of the nodes that its policies include."""

    max_skew: int
    min_domains: int
    adds: int
    included: frozenset[str]

    def place(self, pod: Object, node: Object) -> None:
        if node["metadata"]["name"] in self.included and not _is_terminating(pod):
            _Count.place(self, pod, node)

    def allows(self, node: Object) -> bool:
        fewest = min(self.by_value.values(), default=0)
        if len(self.by_value) < self.min_domains:
            fewest = 0
        return self.at(node) + self.adds - fewest <= self.max_skew


class PodTopology:
    """What the pods already placed mean for one pod."""

    def __init__(self, pod: Object, view: ClusterView) -> None:
        self._pod = pod
        self._namespaces = view.namespaces
        nodes = {node["metadata"]["name"]: node for node in view.nodes}
        self._spread = list(_spread_counts(pod, view, "DoNotSchedule"))
        self._soft_spread = list(_spread_counts(pod, view, "ScheduleAnyway"))
        self._anti = [self._count(term) for term in _terms(pod, "podAntiAffinity")]
        own = _terms(pod, "podAffinity")
        matchers = [self._matcher(pod, term) for term in own]
        self._is_first_of_its_kind = all(matches(pod) for matches in matchers)
        # Only pods that match every term count for any of them.
        self._affinity = [
            _Count(key=term["topologyKey"], matches=lambda other: all(m(other) for m in matchers))
            for term in own
        ]
        self._preferred = list(self._preferences())
        self._repelled: dict[tuple[str, str], int] = {}
        self.is_free = not (self._spread or self._soft_spread or self._anti or own)
        self.is_free = self.is_free and not self._preferred
        for other in view.pods:
            if is_finished(other):
                continue
            node = nodes.get(other["spec"].get("nodeName") or "")
            if node is not None:
                self.place(other, node)

    def place(self, other: Object, node: Object) -> None:
        """Count one more pod on a node."""
        if not self.is_free:
            for count in (*self._spread, *self._soft_spread, *self._anti, *self._affinity):
                count.place(other, node)
            for count in self._preferred:
                count.place(other, node)
        for term in _terms(other, "podAntiAffinity"):
            value = labels_of(node).get(term["topologyKey"])
            if value is not None and self._matcher(other, term)(self._pod):
                pair = (term["topologyKey"], value)
                self._repelled[pair] = self._repelled.get(pair, 0) + 1

    def reasons(self, node: Object) -> list[str]:
        """Return why the pod may not go to a node, empty when it may."""
        if self.is_free and not self._repelled:
            return []
        labels, found = labels_of(node), []
        if any(spread.key not in labels for spread in self._spread):
            found.append(SPREAD_LABEL)
        elif not all(spread.allows(node) for spread in self._spread):
            found.append(SPREAD)
        if not self._affinity_holds(node):
            found.append(AFFINITY)
        if any(count.at(node) for count in self._anti):
            found.append(ANTI_AFFINITY)
        if any(labels.get(key) == value for key, value in self._repelled):
            found.append(EXISTING_ANTI_AFFINITY)
        return found

    def penalty(self, node: Object) -> int:
        """Return how badly a node suits the preferences; less is better."""
        crowd = sum(count.at(node) for count in self._soft_spread)
        return crowd - sum(count.weight * bool(count.at(node)) for count in self._preferred)

    def _affinity_holds(self, node: Object) -> bool:
        labels = labels_of(node)
        if any(count.key not in labels for count in self._affinity):
            return False
        if all(count.at(node) for count in self._affinity):
            return True
        nobody = not any(count.by_value for count in self._affinity)
        return nobody and self._is_first_of_its_kind

    def _count(self, term: Object) -> _Count:
        return _Count(key=term["topologyKey"], matches=self._matcher(self._pod, term))

    def _preferences(self) -> Iterator[_Count]:
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            rules = (self._pod["spec"].get("affinity") or {}).get(kind) or {}
            for rule in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
                count = self._count(rule["podAffinityTerm"])
                count.weight = sign * rule["weight"]
                yield count

    def _matcher(self, owner: Object, term: Object) -> Matches:
        selector = _merged_selector(owner, term)
        names = frozenset(term.get("namespaces") or ())
        chosen = term.get("namespaceSelector")
        if not names and chosen is None:
            names = frozenset({owner["metadata"]["namespace"]})

        def matches(other: Object) -> bool:
            space = other["metadata"]["namespace"]
            if space not in names and not matches_selector(chosen, self._namespaces.get(space, {})):
                return False
            return matches_selector(selector, labels_of(other))

        return matches


def _spread_counts(pod: Object, view: ClusterView, when: str) -> Iterator[_Spread]:
    constraints = [
        constraint
        for constraint in pod["spec"].get("topologySpreadConstraints") or ()
        if constraint["whenUnsatisfiable"] == when
    ]
    keys = {constraint["topologyKey"] for constraint in constraints}
    namespace = pod["metadata"]["namespace"]
    for constraint in constraints:
        selector = _merged_selector(pod, constraint)
        spread = _Spread(
            key=constraint["topologyKey"],
            # A selector of everything counts no other pods; the pod itself still counts.
            matches=_in_namespace(selector if selector != _EVERYTHING else None, namespace),
            max_skew=constraint["maxSkew"],
            min_domains=constraint.get("minDomains") or 1,
            adds=int(matches_selector(selector, labels_of(pod))),
            included=frozenset(
                node["metadata"]["name"]
                for node in view.nodes
                if keys <= labels_of(node).keys() and _is_included(pod, node, constraint)
            ),
        )
        for node in view.nodes:
            if node["metadata"]["name"] in spread.included:
                spread.by_value.setdefault(labels_of(node)[spread.key], 0)
        yield spread


def _is_included(pod: Object, node: Object, constraint: Object) -> bool:
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node_affinity(
        pod, node
    ):
        return False
    honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    return not honors_taints or untolerated(taints_of(node), pod) is None


def _in_namespace(selector: Object | None, namespace: str) -> Matches:
    def matches(other: Object) -> bool:
        return other["metadata"]["namespace"] == namespace and matches_selector(
            selector, labels_of(other)
        )

    return matches


def _merged_selector(pod: Object, rule: Object) -> Object | None:
    """Return a rule's selector with the values its matchLabelKeys take from the pod."""
    selector: Mapping[str, Any] | None = rule.get("labelSelector")
    if selector is None:
        return None
    labels = labels_of(pod)
    extra = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field_name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in rule.get(field_name) or ()
        if key in labels
    ]
    return {
        "matchLabels": selector.get("matchLabels") or {},
        "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra],
    }


def _terms(pod: Object, kind: str) -> list[Object]:
    rules = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _is_terminating(pod: Object) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None

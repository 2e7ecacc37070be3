"""Anti-affinity of existing pods to pending pods, within a part of the decision's budget.

The plan does not move a pod on a node, but its required anti-affinity keeps pods away: each term is
one more rule to check for pending pods. Terms over labels that no node has keep no pod away and are
left out. If the others cost more than the budget allows, the terms of the most expensive namespace
are replaced by one wider term per topology key, which counts any pod of the namespaces that they
name; then those of the next namespace. So no pod is planned onto a node where kube-scheduler would
refuse it, and pods of namespaces that the terms do not name are planned as before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Scheduling
from shared.planning.rules.pod_classes import PodClass
from shared.planning.rules.topology.counts import TopologyCounts
from shared.planning.work import COMPILE, WIDE

# By namespace, then topology key: the term that replaces those of all its pods on nodes.
WiderTerms = Mapping[str, Mapping[str, AffinityTerm]]
_ANY: Final = LabelSelector()
# Pods on nodes that are counted for one term in a step.
_COUNTED: Final = 4


class ExistingPodRules(NamedTuple):
    """The widened terms of existing pods, and what all terms cost.

    Attributes:
        wider: By namespace, then topology key: the wider terms that replace its own.
        steps: What checking all terms costs.
    """

    wider: WiderTerms
    steps: int


def existing_pod_rules(
    owners: Iterable[tuple[str, Scheduling, int]],
    classes: Sequence[PodClass],
    topology_counts: TopologyCounts,
    namespaces: int,
    most: int,
) -> ExistingPodRules:
    """Return the rules of existing pods, widened namespace by namespace until they fit the budget.

    Equal pods cost the same, whether they share Python objects or not.

    Args:
        owners: Namespaces, the scheduling demands of pods there, and the number of these pods.
        classes: Classes of pending pods.
        topology_counts: Knows which topology keys nodes have.
        namespaces: Number of namespaces whose labels are known.
        most: Most steps that the rules may take.
    """
    stated: dict[str, Counter[tuple[AffinityTerm, ...]]] = {}
    for namespace, scheduling, pods in owners:
        terms = topology_counts.required_anti_affinity(scheduling)
        if terms:
            stated.setdefault(namespace, Counter())[terms] += pods
    alike = Counter(pair for pod_class in classes for pair in pod_class.labels.items())
    steps = {
        namespace: _steps(terms, alike, len(classes), namespaces)
        for namespace, terms in stated.items()
    }
    total, wider = sum(steps.values()), {}
    for namespace in sorted(steps, key=lambda name: (-steps[name], name)):
        if total <= most:
            break
        wider[namespace] = _wider(stated[namespace])
        total += len(wider[namespace]) * (COMPILE + WIDE * len(classes)) - steps[namespace]
    return ExistingPodRules(wider, total)


def _steps(
    stated: Counter[tuple[AffinityTerm, ...]],
    alike: Counter[tuple[str, str]],
    classes: int,
    namespaces: int,
) -> int:
    """Return the steps a namespace's terms take: to compile, to check against classes, to count."""
    found = sum(len(terms) * (COMPILE + pods // _COUNTED) for terms, pods in stated.items())
    distinct = {term for terms in stated for term in terms}
    found += namespaces * len({term.namespace_selector for term in distinct} - {None, _ANY})
    for term in distinct:
        labels = term.selector.match_labels if term.selector else ()
        # A term that requires a label is indexed by it: only classes with that label are checked.
        found += WIDE * (alike[labels[0]] if labels else classes)
    return found


def _wider(stated: Iterable[tuple[AffinityTerm, ...]]) -> dict[str, AffinityTerm]:
    """Return one term per topology key, which repels every pod that any of the terms repels."""
    named: dict[str, set[str]] = {}
    everywhere: set[str] = set()
    for term in {term for terms in stated for term in terms}:
        named.setdefault(term.key, set()).update(term.namespaces)
        if term.namespace_selector is not None:
            everywhere.add(term.key)
    return {
        key: AffinityTerm(
            key=key,
            selector=_ANY,
            namespaces=tuple(sorted(namespaces)),
            namespace_selector=_ANY if key in everywhere else None,
        )
        for key, namespaces in named.items()
    }

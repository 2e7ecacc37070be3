"""What pods on nodes keep others away from, within a part of the work of a decision.

A pod on a node is not decided for, but required anti-affinity of its own keeps pods off: each term
is a rule that every pod which waits may be judged by. Terms over labels that no node has keep
nobody away and are left out. Where the rest is more than a decision weighs, the namespace whose
terms cost most has one wider term in their place for each topology key, then the next: it counts
any pod of the namespaces that they name. So no pod is taken to have a place that kube-scheduler
would refuse it, and pods of namespaces that they do not name are planned for as before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from shared.model.kubernetes.pods import AffinityTerm, LabelSelector, Scheduling
from shared.planning.work import COMPILE, WIDE
from shared.scheduling.pod_classes import PodClass
from shared.scheduling.topology.counts import TopologyCounts

# By namespace, the terms that stand for all of its pods on nodes, by topology key.
Wider = Mapping[str, Mapping[str, AffinityTerm]]
_ANY: Final = LabelSelector()
# Counting the pods of a node for four of their terms takes a step.
_COUNTED: Final = 4


class StandingRules(NamedTuple):
    """What is made of them.

    Attributes:
        wider: Terms by topology key, for the namespaces whose own are not weighed one by one.
        steps: What all of them cost.
    """

    wider: Wider
    steps: int


def standing_rules(
    owners: Iterable[tuple[str, Scheduling, int]],
    classes: Sequence[PodClass],
    topology_counts: TopologyCounts,
    namespaces: int,
    most: int,
) -> StandingRules:
    """Return the rules of pods on nodes, widened namespace by namespace until they fit.

    The same pods cost the same, whether they share their objects or not.

    Args:
        owners: Namespaces, what pods there ask for, and how many do.
        classes: Those that wait.
        topology_counts: Knows which topology keys nodes have.
        namespaces: Of how many the labels are known.
        most: How many steps they may take.
    """
    stated: dict[str, Counter[tuple[AffinityTerm, ...]]] = {}
    for namespace, scheduling, pods in owners:
        terms = topology_counts.required_apart(scheduling)
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
    return StandingRules(wider, total)


def _steps(
    stated: Counter[tuple[AffinityTerm, ...]],
    alike: Counter[tuple[str, str]],
    classes: int,
    namespaces: int,
) -> int:
    """Return what the terms of a namespace cost: to compile, to ask for classes, to count."""
    found = sum(len(terms) * (COMPILE + pods // _COUNTED) for terms, pods in stated.items())
    distinct = {term for terms in stated for term in terms}
    found += namespaces * len({term.namespace_selector for term in distinct} - {None, _ANY})
    for term in distinct:
        labels = term.selector.match_labels if term.selector else ()
        # Rules with a label that all must have are found by it.
        found += WIDE * (alike[labels[0]] if labels else classes)
    return found


def _wider(stated: Iterable[tuple[AffinityTerm, ...]]) -> dict[str, AffinityTerm]:
    """Return one term for each topology key that keeps all away whom any of the terms does."""
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

"""Work: what a decision costs, counted in steps, and how much it may cost.

Steps and not seconds: the same snapshot gives the same count, and so the same plan. A step checks
one rule, domain, node or class; it takes about a microsecond.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.model.kubernetes.pods import (
    AffinityTerm,
    LabelSelector,
    SpreadPolicy,
    TopologySpread,
)
from shared.planning.rules.pod_classes import PodClass

_Rule = AffinityTerm | TopologySpread
# Steps per term, per merge of two terms, per rule and class, per compiled rule, and per preference
# dropped.
_TERM: Final = 40
_MERGE: Final = 20
WIDE: Final = 4
COMPILE: Final = 10
_DROPPED_PREFERENCE: Final = 500
# Pods on nodes may take at most a quarter of the budget.
_EXISTING: Final = 4
# Nodes that a spread checks in a step.
_NODES: Final = 8


class OverBudgetError(Exception):
    """A decision took more steps than its budget allows."""


class Work:
    """Counts the steps of one decision, and the pending groups for which they were taken.

    Attributes:
        budget: How many steps the decision may take.
        steps: Steps counted so far.
        begun: Whether any step was counted besides the estimates.
        classes: The classes of the pending groups, by index; none until they are known.
        steps_by_group: Steps by the index of the pending group they were taken for.
    """

    __slots__ = ("begun", "budget", "classes", "steps", "steps_by_group")

    def __init__(self, budget: int) -> None:
        """Allow `budget` steps."""
        self.begun = False
        self.steps = 0
        self.classes: tuple[PodClass, ...] = ()
        self.steps_by_group: dict[int, int] = {}
        self.budget = budget

    @property
    def budget_for_existing(self) -> int:
        """How many steps the rules of pods on nodes may take."""
        return self.budget // _EXISTING

    def expect(self, steps: Mapping[int, int]) -> None:
        """Count estimated steps, by pending group, before any of them is taken.

        Raises:
            OverBudgetError: If all steps so far are more than the budget.
        """
        for index, many in steps.items():
            self.steps_by_group[index] = self.steps_by_group.get(index, 0) + many
            self.steps += many
        if self.steps > self.budget:
            raise OverBudgetError

    def spend_on_existing(self, steps: int) -> None:
        """Count steps of pods on nodes, for no pending group and without checking the budget."""
        self.steps += steps

    def spend(self, steps: int, index: int) -> None:
        """Count steps taken for one pending group.

        Raises:
            OverBudgetError: If all steps so far are more than the budget.
        """
        self.spend_each({index: steps})

    def spend_each(self, steps: Mapping[int, int]) -> None:
        """Count steps, by the pending group they are taken for.

        Raises:
            OverBudgetError: If all steps so far are more than the budget.
        """
        self.begun = True
        self.expect(steps)


def estimates(
    classes: Sequence[PodClass], nodes: int, existing: int = 0, namespaces: int = 0
) -> dict[int, int]:
    """Return, by index of a class, the steps to expect from its terms, rules and preferences.

    Each rule may count the pods of every class, and those on nodes; a spread checks every node, and
    a term may select among all namespaces. The first class with a rule pays for that. Each
    preference may cost a round of its own, in which the rules that are left are compiled again.

    Args:
        classes: Classes of pending pods.
        nodes: Number of nodes.
        existing: Number of pods on nodes that differ in what rules see of them.
        namespaces: Number of namespaces whose labels are known.
    """
    known: set[tuple[str, _Rule]] = set()
    selected: set[LabelSelector] = set()
    found = {}
    for index, pod_class in enumerate(classes):
        asked = pod_class.scheduling
        terms = len(asked.required_terms) + sum(len(some) for some in asked.volume_terms)
        rules: tuple[_Rule, ...] = (*asked.affinity, *asked.anti_affinity, *asked.spreads)
        new = {(pod_class.namespace, rule) for rule in rules}
        new -= known
        known |= new
        # Rules that require a label are indexed by it; the others are checked against all classes.
        wide = sum(rule.selector is None or not rule.selector.match_labels for _, rule in new)
        spreads = sum(isinstance(rule, TopologySpread) for _, rule in new)
        others = {
            rule.namespace_selector
            for _, rule in new
            if isinstance(rule, AffinityTerm) and rule.namespace_selector is not None
        }
        others -= selected
        selected |= others
        preference_count = (
            sum(term.weight is not None for term in (*asked.affinity, *asked.anti_affinity))
            + sum(rule.policy == SpreadPolicy.SCHEDULE_ANYWAY for rule in asked.spreads)
            + len(asked.preferred_nodes)
        )
        found[index] = (
            _TERM * terms
            + wide * (WIDE * len(classes) + existing)
            + spreads * nodes // _NODES
            + len(others) * namespaces
            + COMPILE * len(rules)
            + preference_count * (_DROPPED_PREFERENCE + nodes + COMPILE * len(rules))
            + _MERGE * terms * len(asked.preferred_nodes)
        )
    return found

"""Work: what a decision costs, counted in steps, and how much it may cost.

Steps and not seconds: the same snapshot gives the same count, and so the same plan. A step is a
look at one rule, domain, node or class; it takes about a microsecond.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.model.kubernetes.pods import (
    AffinityTerm,
    LabelSelector,
    SpreadPolicy,
    TopologySpread,
)
from shared.scheduling.pod_classes import PodClass

_Rule = AffinityTerm | TopologySpread
# Steps of asking what a term accepts, of merging two terms, of asking a rule whether it counts the
# pods of a class, of compiling a rule, and of what is done anew when one preference less is kept.
_TERM: Final = 40
_MERGE: Final = 20
WIDE: Final = 4
COMPILE: Final = 10
_RUNG: Final = 500
# Of the budget: what pods on nodes may take at most.
_STANDING: Final = 4
# A spread looks at eight nodes in a step.
_NODES: Final = 8


class OverBudgetError(Exception):
    """A decision that took more steps than it was given."""


class Work:
    """Counts the steps of one decision, and the pending groups for which they were taken.

    Attributes:
        most: How many steps the decision may take.
        steps: So far.
        begun: Whether any step was counted besides the estimates.
        classes: The classes of the pending groups, by index; none until they are known.
        of: Steps by the index of the pending group they were taken for.
    """

    __slots__ = ("begun", "classes", "most", "of", "steps")

    def __init__(self, most: int) -> None:
        """Allow so many steps."""
        self.begun = False
        self.steps = 0
        self.classes: tuple[PodClass, ...] = ()
        self.of: dict[int, int] = {}
        self.most = most

    @property
    def of_standing(self) -> int:
        """How many steps the rules of pods on nodes may take."""
        return self.most // _STANDING

    def expect(self, steps: Mapping[int, int]) -> None:
        """Count estimated steps, by pending group, before any of them is taken.

        Raises:
            OverBudgetError: If these are more than the decision may take.
        """
        for index, many in steps.items():
            self.of[index] = self.of.get(index, 0) + many
            self.steps += many
        if self.steps > self.most:
            raise OverBudgetError

    def stand(self, steps: int) -> None:
        """Count what pods on nodes cost, whichever pods are decided for."""
        self.steps += steps

    def spend(self, steps: int, index: int) -> None:
        """Count steps taken for one pending group.

        Raises:
            OverBudgetError: If these are more than the decision may take.
        """
        self.spend_each({index: steps})

    def spend_each(self, steps: Mapping[int, int]) -> None:
        """Count steps, by the pending group they are taken for.

        Raises:
            OverBudgetError: If all of them are more than the decision may take.
        """
        self.begun = True
        self.expect(steps)


def estimates(
    classes: Sequence[PodClass], nodes: int, standing: int = 0, namespaces: int = 0
) -> dict[int, int]:
    """Return, by class, the steps that follow from how much it asks for, whatever comes of it.

    Each rule may count the pods of every class, and those on nodes; a spread looks at every node,
    and a term may select among all namespaces. Who has it first pays for that. Each preference may
    cost a round of its own, in which what is left of the rules is compiled again.

    Args:
        classes: Those that wait.
        nodes: How many there are.
        standing: How many pods on nodes differ in what rules see of them.
        namespaces: Of how many the labels are known.
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
        # Rules with a label that all must have are found by it.
        wide = sum(rule.selector is None or not rule.selector.match_labels for _, rule in new)
        spreads = sum(isinstance(rule, TopologySpread) for _, rule in new)
        others = {
            rule.namespace_selector
            for _, rule in new
            if isinstance(rule, AffinityTerm) and rule.namespace_selector is not None
        }
        others -= selected
        selected |= others
        preference_kinds = (
            sum(term.weight is not None for term in (*asked.affinity, *asked.anti_affinity))
            + sum(rule.policy == SpreadPolicy.SCHEDULE_ANYWAY for rule in asked.spreads)
            + len(asked.preferred_nodes)
        )
        found[index] = (
            _TERM * terms
            + wide * (WIDE * len(classes) + standing)
            + spreads * nodes // _NODES
            + len(others) * namespaces
            + COMPILE * len(rules)
            + preference_kinds * (_RUNG + nodes + COMPILE * len(rules))
            + _MERGE * terms * len(asked.preferred_nodes)
        )
    return found

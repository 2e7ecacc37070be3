"""Work: what a decision costs, counted in steps, and how much it may cost.

Steps and not seconds: the same snapshot gives the same count, and so the same plan. A step is a
look at one rule, domain, node or class; it takes about a microsecond.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from shared.model.kubernetes.pods import AffinityTerm, SpreadPolicy, TopologySpread
from shared.scheduling.pod_classes import PodClass

_Rule = AffinityTerm | TopologySpread
# Steps of asking what a term accepts, of merging two terms, of asking a rule whether it counts the
# pods of a class, of compiling a rule, and of what is done anew when one preference less is kept.
_TERM: Final = 40
_MERGE: Final = 20
_WIDE: Final = 4
_COMPILE: Final = 10
_RUNG: Final = 500


class OverBudgetError(Exception):
    """A decision that took more steps than it was given."""


class Work:
    """Counts the steps of one decision, and the pending groups for which they were taken.

    Attributes:
        steps: So far.
        begun: Whether any step was counted besides the estimates.
        classes: The classes of the pending groups, by index; none until they are known.
        of: Steps by the index of the pending group they were taken for.
    """

    __slots__ = ("_most", "begun", "classes", "of", "steps")

    def __init__(self, most: int) -> None:
        """Allow so many steps."""
        self.begun = False
        self.steps = 0
        self.classes: tuple[PodClass, ...] = ()
        self.of: dict[int, int] = {}
        self._most = most

    def expect(self, steps: Mapping[int, int]) -> None:
        """Count estimated steps, by pending group, before any of them is taken.

        Raises:
            OverBudgetError: If these are more than the decision may take.
        """
        for index, many in steps.items():
            self.of[index] = self.of.get(index, 0) + many
            self.steps += many
        if self.steps > self._most:
            raise OverBudgetError

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


def estimates(classes: Sequence[PodClass], nodes: int) -> dict[int, int]:
    """Return, by class, the steps that follow from how much it asks for, whatever comes of it.

    Each rule may count the pods of every class; who has it first pays for that. Each preference may
    cost a round of its own, in which what is left of the rules is compiled again.
    """
    known: set[tuple[str, _Rule]] = set()
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
        preference_kinds = (
            sum(term.weight is not None for term in (*asked.affinity, *asked.anti_affinity))
            + sum(rule.policy == SpreadPolicy.SCHEDULE_ANYWAY for rule in asked.spreads)
            + len(asked.preferred_nodes)
        )
        found[index] = (
            _TERM * terms
            + _WIDE * wide * len(classes)
            + _COMPILE * len(rules)
            + preference_kinds * (_RUNG + nodes + _COMPILE * len(rules))
            + _MERGE * terms * len(asked.preferred_nodes)
        )
    return found

"""Weighing: which preferences of pods are kept, by what that costs.

The plan without any of them comes first. Then all are tried together. If that costs too much, those
of pods that then pay little more are tried, then the others, and so on.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Protocol

from shared.model.plan import KeptPreferences
from shared.model.policy import PreferencePolicy
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.offerings.pending_group import WeighedPreference
from shared.planning.offerings.target_node import TargetNode
from shared.planning.preferences.kept import KeptCounter
from shared.planning.rules.preferences import weight_of
from shared.planning.state import PlanState
from shared.planning.work import OverBudgetError, Work

# Each try is a plan of its own.
_MOST_TRIES: Final = 4
_MILLION: Final = 1_000_000


class Solve(Protocol):
    """Makes the plan in which some of the weighed preferences are hard rules."""

    def __call__(self, work: Work, *, as_rules: AbstractSet[WeighedPreference]) -> PlanState:
        """Return the state after placing as many pods as possible.

        Raises:
            OverBudgetError: If this takes more steps than the budget allows.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedPlan:
    """The plan that was chosen, and how far it keeps what pods prefer."""

    plan_state: PlanState
    preferences: KeptPreferences


def weigh(
    baseline: PlanState, solve: Solve, settings: PackingSettings, budget_steps: int
) -> WeighedPlan:
    """Return the plan that keeps the preferences that cost little.

    Args:
        baseline: The plan in which no weighed preference is a rule.
        solve: Makes another plan.
        settings: How much more preferences may cost.
        budget_steps: Most steps of all further tries together.
    """
    weighing = _Weighing(baseline, solve, settings.preference_price_percent, budget_steps)
    weighed_preferences = _weighed_preferences(baseline)
    todo: list[Sequence[WeighedPreference]] = [weighed_preferences] if weighed_preferences else []
    for _ in range(_MOST_TRIES):
        if not todo:
            break
        some = todo.pop()
        tried = weighing.try_with(some)
        if tried is None:
            break
        if not weighing.accept_if_cheap(tried, some) and len(some) > 1:
            todo += reversed(weighing.split(tried, some))
    kept, there = KeptCounter(weighing.best).count()
    rest = weighing.highest - weighing.best.cost() if kept < there else 0
    preferences = KeptPreferences(stated=there, kept=kept, rest_micros_per_hour=max(rest, 0))
    return WeighedPlan(plan_state=weighing.best, preferences=preferences)


def _weighed_preferences(baseline: PlanState) -> list[WeighedPreference]:
    """Return the preferences to weigh, heaviest first.

    Of equal weights, those likely to cost least come first: zones before hosts, then few pods.
    """
    found = [
        (
            -weight_of(pod_group.pod_class.scheduling, preference),
            pod_group.is_about_hosts(preference),
            len(pod_group.pod_class.pods),
            pod_group.index,
            preference,
        )
        for pod_group in baseline.pod_groups
        if pod_group.policy == PreferencePolicy.WEIGH
        for preference in pod_group.preferences
    ]
    found.sort()
    return [(index, preference) for *_, index, preference in found]


class _Weighing:
    """The search for the preferences to keep.

    Attributes:
        best: The best plan so far; it keeps all preferences that were accepted.
        highest: Highest cost of any plan tried: all preferences kept as far as possible.
    """

    def __init__(self, baseline: PlanState, solve: Solve, percent: int, budget_steps: int) -> None:
        self.best = baseline
        self.highest = 0
        self._solve = solve
        self._accepted: AbstractSet[WeighedPreference] = frozenset()
        self._left_steps = budget_steps
        self._percent = percent
        self._prices_before = self._prices = costs_by_group(baseline)

    def try_with(self, some: Sequence[WeighedPreference]) -> PlanState | None:
        """Return the plan that also keeps these; None if it takes more steps than are left."""
        work = Work(self._left_steps)
        try:
            tried = self._solve(work, as_rules=self._accepted | set(some))
        except OverBudgetError:
            return None
        self._left_steps -= work.steps
        self.highest = max(self.highest, tried.cost())
        return tried

    def accept_if_cheap(self, tried: PlanState, some: Sequence[WeighedPreference]) -> bool:
        """Keep these preferences, too, if that costs little enough; return whether it does."""
        price = sum(self._prices_before[index] for index, _ in some)
        more = tried.cost() - self.best.cost()
        if (
            tried.unplaced_by_priority() > self.best.unplaced_by_priority()
            or 100 * more > self._percent * price
        ):
            return False
        self.best, self._prices = tried, costs_by_group(tried)
        self._accepted |= set(some)
        return True

    def split(
        self, tried: PlanState, some: Sequence[WeighedPreference]
    ) -> tuple[Sequence[WeighedPreference], Sequence[WeighedPreference]]:
        """Split these into two parts, to be tried one after the other.

        First the heaviest preference of each group. If there is one per group, first those whose
        groups pay little more in the refused plan; if these are none or all, the heavier half.
        """
        heaviest = dict(reversed(some))
        if len(heaviest) < len(some):
            first = [
                weighed_preference
                for weighed_preference in some
                if heaviest[weighed_preference[0]] == weighed_preference[1]
            ]
        else:
            prices = costs_by_group(tried)
            first = [
                (index, preference)
                for index, preference in some
                if 100 * (prices[index] - self._prices[index])
                <= self._percent * self._prices_before[index]
            ]
        if not 0 < len(first) < len(some):
            first = list(some[: (len(some) + 1) // 2])
        chosen = set(first)
        return first, [
            weighed_preference for weighed_preference in some if weighed_preference not in chosen
        ]


def costs_by_group(plan_state: PlanState) -> list[int]:
    """Return what each pending group pays of the nodes to be launched, in micro-dollars per hour.

    Pods share the price of their node by the resource of which they take the largest part.
    """
    found = [0] * len(plan_state.pod_groups)
    for target in plan_state.targets:
        if not target.options:
            continue
        shares = {
            index: len(pods) * _largest_share(target, plan_state.pod_groups[index].requests)
            for index, pods in target.contents.items()
        }
        price = target.options[0].offering.price_micros_per_hour
        for index, share in shares.items():
            found[index] += round(price * share / sum(shares.values()))
    return found


def _largest_share(target: TargetNode, requests: Resources) -> int:
    """Return the largest part of any resource of a node that a pod takes, in millionths."""
    shares = [
        _MILLION
        * amount
        // max(target.used.get(name, 0) + target.available.get(name, 0), amount, 1)
        for name, amount in requests.items
    ]
    return max([1, *shares])

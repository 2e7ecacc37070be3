"""Weighing: which preferences of pods are kept, by what that costs.

The plan without any of them comes first. Then all are tried together. Where that costs too much,
those of pods whose share of the bill stays low are tried, then the others, and so on.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Protocol

from shared.model.plan import KeptPreferences
from shared.model.policy import PreferencePolicy
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.offerings.pending_group import Wish
from shared.planning.offerings.target_node import TargetNode
from shared.planning.preferences.kept import KeptCounter
from shared.planning.state import PlanState
from shared.planning.work import OverBudgetError, Work
from shared.scheduling.preferences import weight_of

# Each try is a plan of its own.
_MOST_TRIES: Final = 4
_MILLION: Final = 1_000_000


class Solve(Protocol):
    """Makes the plan in which some of the preferences that are weighed are rules."""

    def __call__(self, work: Work, *, weighed: AbstractSet[Wish]) -> PlanState:
        """Return the state with all pods placed that can be.

        Raises:
            OverBudgetError: If that takes more steps than it may.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The plan that was chosen, and how far it keeps what pods prefer."""

    plan_state: PlanState
    preferences: KeptPreferences


def weigh(plain: PlanState, solve: Solve, settings: PackingSettings, budget_steps: int) -> Weighed:
    """Return the plan that keeps those preferences which cost little.

    Args:
        plain: The plan in which no preference that is weighed is a rule.
        solve: Makes another plan.
        settings: How much more preferences may cost.
        budget_steps: What all further tries together may cost.
    """
    weighing = _Weighing(plain, solve, settings.preference_price_percent, budget_steps)
    wishes = _wishes(plain)
    todo: list[Sequence[Wish]] = [wishes] if wishes else []
    for _ in range(_MOST_TRIES):
        if not todo:
            break
        some = todo.pop()
        tried = weighing.try_with(some)
        if tried is None:
            break
        if not weighing.accepts(tried, some) and len(some) > 1:
            todo += reversed(weighing.parted(tried, some))
    kept, there = KeptCounter(weighing.best).count()
    rest = weighing.highest - weighing.best.cost() if kept < there else 0
    preferences = KeptPreferences(stated=there, kept=kept, rest_micros_per_hour=max(rest, 0))
    return Weighed(plan_state=weighing.best, preferences=preferences)


def _wishes(plain: PlanState) -> list[Wish]:
    """Return the preferences that are weighed, heaviest first.

    Of equal weight, what is likely to cost least comes first: zones before hosts, then few pods.
    """
    found = [
        (
            -weight_of(pod_group.one.scheduling, preference),
            pod_group.is_about_hosts(preference),
            len(pod_group.one.pods),
            pod_group.index,
            preference,
        )
        for pod_group in plain.pod_groups
        if pod_group.policy == PreferencePolicy.WEIGH
        for preference in pod_group.stated
    ]
    found.sort()
    return [(index, preference) for *_, index, preference in found]


class _Weighing:
    """The best plan so far.

    Attributes:
        best: It keeps all preferences that were accepted.
        highest: Price of the plan that keeps all preferences as far as possible.
    """

    def __init__(self, plain: PlanState, solve: Solve, percent: int, budget_steps: int) -> None:
        self.best = plain
        self.highest = 0
        self._solve = solve
        self._accepted: AbstractSet[Wish] = frozenset()
        self._left_steps = budget_steps
        self._percent = percent
        self._worth = self._prices = prices_of(plain)

    def try_with(self, some: Sequence[Wish]) -> PlanState | None:
        """Return the plan that keeps these, too; None if that takes more steps than are left."""
        work = Work(self._left_steps)
        try:
            tried = self._solve(work, weighed=self._accepted | set(some))
        except OverBudgetError:
            return None
        self._left_steps -= work.steps
        self.highest = max(self.highest, tried.cost())
        return tried

    def accepts(self, tried: PlanState, some: Sequence[Wish]) -> bool:
        """Return whether keeping these, too, costs little enough; if so, they are kept."""
        worth = sum(self._worth[index] for index, _ in some)
        more = tried.cost() - self.best.cost()
        if tried.left_over() > self.best.left_over() or 100 * more > self._percent * worth:
            return False
        self.best, self._prices = tried, prices_of(tried)
        self._accepted |= set(some)
        return True

    def parted(
        self, tried: PlanState, some: Sequence[Wish]
    ) -> tuple[Sequence[Wish], Sequence[Wish]]:
        """Return these in two parts, to be tried one after the other.

        First the heaviest of each group. Of one for each group, first those of the groups that pay
        little more in a plan that was refused; where that tells none apart, the heavier half.
        """
        heaviest = dict(reversed(some))
        if len(heaviest) < len(some):
            first = [wish for wish in some if heaviest[wish[0]] == wish[1]]
        else:
            prices = prices_of(tried)
            first = [
                (index, preference)
                for index, preference in some
                if 100 * (prices[index] - self._prices[index]) <= self._percent * self._worth[index]
            ]
        if not 0 < len(first) < len(some):
            first = list(some[: (len(some) + 1) // 2])
        chosen = set(first)
        return first, [wish for wish in some if wish not in chosen]


def prices_of(plan_state: PlanState) -> list[int]:
    """Return what each pending group pays of the nodes to be bought, in micro-dollars an hour.

    Pods share the price of their node by what they take most of.
    """
    found = [0] * len(plan_state.pod_groups)
    for spot in plan_state.spots:
        if not spot.ways:
            continue
        shares = {
            index: len(pods) * _largest_share(spot, plan_state.pod_groups[index].requests)
            for index, pods in spot.contents.items()
        }
        price = spot.ways[0].offering.price_micros_per_hour
        for index, share in shares.items():
            found[index] += round(price * share / sum(shares.values()))
    return found


def _largest_share(spot: TargetNode, requests: Resources) -> int:
    """Return how much of a node a pod takes, of the resource it takes most of, in millionths."""
    shares = [
        _MILLION * amount // max(spot.used.get(name, 0) + spot.free.get(name, 0), amount, 1)
        for name, amount in requests.items
    ]
    return max([1, *shares])

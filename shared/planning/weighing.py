"""Weighing: which preferences of pods are kept, by what that costs.

The plan without any of them comes first. Then all are tried together. If that costs too much, those
of pods that then pay little more are tried, then the others, and so on.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from shared.model import labels as keys
from shared.model.plan import KeptPreferences
from shared.model.policy import PreferencePolicy
from shared.model.resources import Resources
from shared.packing.problem import PackingSettings
from shared.planning.offerings.pending_group import PendingGroup, WeighedPreference
from shared.planning.offerings.target_node import TargetNode
from shared.planning.rules.preferences import Preference, PreferenceKind, weight_of
from shared.planning.rules.topology.counts import DomainCounter
from shared.planning.state import PlanState
from shared.planning.work import OverBudgetError, Work

# Each try is a plan of its own.
_MOST_TRIES: Final = 4
_MILLION: Final = 1_000_000


# Makes the plan in which some of the weighed preferences are hard rules.
Solve = Callable[[Work, AbstractSet[WeighedPreference]], PlanState]


def weigh(
    baseline: PlanState, solve: Solve, settings: PackingSettings, budget_steps: int
) -> tuple[PlanState, KeptPreferences]:
    """Return the plan that keeps the preferences that cost little, and how many it keeps.

    Args:
        baseline: The plan in which no weighed preference is a rule.
        solve: Makes another plan, or raises an OverBudgetError.
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
    kept, there = _KeptCounter(weighing.best).count()
    rest = weighing.highest - weighing.best.cost() if kept < there else 0
    preferences = KeptPreferences(stated=there, kept=kept, rest_micros_per_hour=max(rest, 0))
    return weighing.best, preferences


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
        self._accepted: frozenset[WeighedPreference] = frozenset()
        self._tried: dict[frozenset[WeighedPreference], PlanState] = {}
        self._left_steps = budget_steps
        self._percent = percent
        self._prices_before = self._prices = costs_by_group(baseline)

    def try_with(self, some: Sequence[WeighedPreference]) -> PlanState | None:
        """Return the plan that also keeps these; None if it takes more steps than are left."""
        wanted = self._accepted.union(some)
        # The rest of a refused try is that try once more, if its first part was accepted.
        if wanted not in self._tried:
            work = Work(self._left_steps)
            try:
                self._tried[wanted] = self._solve(work, wanted)
            except OverBudgetError:
                return None
            self._left_steps -= work.steps
        tried = self._tried[wanted]
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
        self._accepted = self._accepted.union(some)
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
    for target in plan_state.new_nodes:
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


class _KeptCounter:
    """Counts which preferences of the pods of a plan are kept, once all pods have their places.

    A preference for a zone is not kept if the node could still be launched in another one.
    """

    def __init__(self, plan_state: PlanState) -> None:
        self._plan_state = plan_state
        self._counts: dict[DomainCounter, Mapping[str, int]] = {}
        self._placed = [
            (plan_state.pod_groups[index], target, len(pods))
            for target in plan_state.targets
            for index, pods in target.contents.items()
        ]

    def count(self) -> tuple[int, int]:
        """Return how many preferences are kept, and how many are stated, each once per pod."""
        kept = there = 0
        for pod_group, target, pods in self._placed:
            for preference in pod_group.preferences:
                there += pods
                if self._is_kept(pod_group, preference, target):
                    kept += pods
        return kept, there

    def _is_kept(self, pod_group: PendingGroup, preference: Preference, target: TargetNode) -> bool:
        about, position = preference
        if about == PreferenceKind.NODES:
            return self._meets(pod_group, preference, target)
        counter = pod_group.counter(preference)
        domain = self._domain(counter, target)
        if domain is None:
            return False
        counts = self._counted(counter)
        there = counts.get(domain, 0)
        if about == PreferenceKind.SPREAD:
            least = min(counts[known] for known in {*counts, domain})
            return there - least <= pod_group.pod_class.scheduling.spreads[position].max_skew
        itself = int(
            counter.selection.counts(pod_group.pod_class.namespace, pod_group.pod_class.labels)
        )
        return (there > itself) == (about == PreferenceKind.AFFINITY)

    def _meets(self, pod_group: PendingGroup, preference: Preference, target: TargetNode) -> bool:
        wanted = pod_group.nodes_meeting(preference)
        if target.existing is not None:
            return wanted.accepts(target.labels, target.taints)
        return not target.options_mask & ~self._plan_state.offerings.accepting(wanted)

    def _domain(self, counter: DomainCounter, target: TargetNode) -> str | None:
        """Return the domain that a node will be in, None if that is open or there is none."""
        table = self._plan_state.table
        own = target.all_labels.get(counter.key)
        if counter.key in target.labels or target.existing is not None:
            return own
        values = {
            table.label(option, counter.key) for option in (*target.options, *target.fallback)
        }
        return own if len(values) == 1 else None

    def _counted(self, counter: DomainCounter) -> Mapping[str, int]:
        """Return how many pods a preference counts, by domain: existing pods and the plan's."""
        if counter not in self._counts:
            found = Counter(self._empty(counter))
            found.update(self._plan_state.topology_counts.saved_counts(counter))
            for pod_group, target, pods in self._placed:
                domain = target.all_labels.get(counter.key)
                pod_class = pod_group.pod_class
                if domain is None or (counter.scope and not target.within(counter.scope)):
                    continue
                found[domain] += pods * counter.selection.counts(
                    pod_class.namespace, pod_class.labels
                )
            self._counts[counter] = found
        return self._counts[counter]

    def _empty(self, counter: DomainCounter) -> dict[str, int]:
        """Return a count of 0 for each domain that pods could be in."""
        if counter.key != keys.HOSTNAME:
            return dict.fromkeys(counter.eligible, 0)
        return {
            target.all_labels.get(counter.key, target.name): 0
            for target in self._plan_state.targets
            if counter.scope is None or target.within(counter.scope)
        }

"""Consolidation: fewer or cheaper nodes for the same pods."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from shared.disruption.allowances import NO_BUDGETS, Allowances
from shared.disruption.candidates import Candidate, find_candidates
from shared.disruption.option_prices import within_price
from shared.disruption.payback import pays_back
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulate import launched_again, simulate, with_drained
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.node_budgets import DisruptionReason
from shared.model.plan import Plan
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide

# A node that is used in full, in thousandths.
_WHOLE: Final = 1000


class DisruptionMethod(StrEnum):
    """How nodes are removed."""

    EMPTY = "empty"  # no pod has to move
    DELETE = "delete"  # the other nodes hold the pods
    REPLACE = "replace"  # cheaper nodes are launched first


class ConsolidationCommand(Struct, frozen=True, kw_only=True):
    """Nodes to remove, and the nodes that must be ready before they are removed.

    Attributes:
        remove: Names of the nodes, sorted.
        plan: Where their pods would go: new nodes to launch first, and placements on others. Every
            option of every new node keeps the saving.
        saving_micros_per_hour: At least this much less is paid afterwards.
    """

    method: DisruptionMethod
    remove: tuple[str, ...]
    plan: Plan
    saving_micros_per_hour: int


class ConsolidationResult(Struct, frozen=True, kw_only=True):
    """The result of an evaluation of the cluster.

    Attributes:
        best: What to do, None when no change saves enough.
        reason: Why nothing is done, for people; empty otherwise.
        skipped: Why each Dovetail node was left out, by name.
        unchanged: Names of the candidates of which no change saves enough, sorted.
        simulations: Plans tried.
    """

    best: ConsolidationCommand | None = None
    reason: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
    unchanged: tuple[str, ...] = ()
    simulations: int = 0


def consolidate(  # noqa: PLR0913 -- five of them by keyword
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    settings: DisruptionSettings,
    packing: PackingSettings,
    *,
    most_nodes: int,
    allowances: Allowances = NO_BUDGETS,
    resting: Collection[str] = (),
    recently_changed: Collection[str] = (),
    may_continue: Callable[[], bool] = lambda: True,
) -> ConsolidationResult:
    """Return the change of nodes that saves most, if any saves enough.

    All empty nodes are removed first, in a change of their own. Otherwise candidates are tried in
    groups: the most wasteful node, growing groups of the least used and of the cheapest nodes to
    disrupt, up to all, and each node alone. A group as a whole must save enough; nodes that add
    less than the minimum saving are dropped from the best group. As each accepted change makes the
    cluster strictly cheaper, no later change can undo it.

    The same snapshot always gives the same result.

    Args:
        most_nodes: Nodes that may be disrupted now, by the settings, of owners without a budget.
        allowances: Nodes that may be disrupted now of the owners with one.
        resting: Uids of nodes that are left alone for now.
        recently_changed: Uids of nodes whose pods changed less than consolidateAfter ago.
        may_continue: Called before each simulation; returns whether it may run. If not, the best so
            far counts.
    """
    found, refused = find_candidates(
        snapshot,
        budgets,
        snapshot.taken_at,
        resting=resting,
        recently_changed=recently_changed,
        minimum_pod_age=settings.minimum_pod_age,
    )
    skipped = tuple(sorted(refused.items()))
    if not found:
        return ConsolidationResult(reason="no node may be disrupted", skipped=skipped)
    empty = allowances.within(
        (candidate for candidate in found if candidate.is_empty), DisruptionReason.EMPTY, most_nodes
    )[: settings.most_at_once]
    used = [candidate for candidate in found if not candidate.is_empty]

    def within(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        allowed = allowances.within(candidates, DisruptionReason.UNDERUTILIZED, most_nodes)
        return allowed[: settings.most_at_once]

    if not (empty or within(used)):
        return ConsolidationResult(reason="the budget of disruptions is used up", skipped=skipped)
    waiting = decide(snapshot, packing)
    if waiting.nodes or waiting.placements:
        return ConsolidationResult(reason="pods wait for capacity", skipped=skipped)
    if empty:
        return ConsolidationResult(best=_emptied(empty), skipped=skipped)
    search = _CandidateSearch(snapshot, budgets, settings, packing, may_continue)
    best = search.best(_groups(used, within))
    if best is not None:
        best = search.smallest(best)
    return ConsolidationResult(
        best=None if best is None else best.change,
        reason="" if best is not None else "nothing saves enough",
        skipped=skipped,
        unchanged=search.unchanged(best.change.remove if best is not None else ()),
        simulations=search.tried,
    )


def _emptied(empty: Sequence[Candidate]) -> ConsolidationCommand:
    return ConsolidationCommand(
        method=DisruptionMethod.EMPTY,
        remove=tuple(sorted(candidate.node.name for candidate in empty)),
        plan=Plan(),
        saving_micros_per_hour=sum(candidate.price_micros_per_hour for candidate in empty),
    )


class _Change(Struct, frozen=True, kw_only=True):
    group: tuple[Candidate, ...]
    change: ConsolidationCommand
    expected_micros_per_hour: int  # Saved when each new node is its cheapest option.

    @property
    def rank(self) -> tuple[int, int, tuple[str, ...]]:
        """More is better: saving, then fewer nodes, then names for a total order."""
        return (self.expected_micros_per_hour, -len(self.group), self.change.remove)


class _CandidateSearch:
    """Tries groups of candidates, each at most once, until the tries are used up."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        budgets: Sequence[PodDisruptionBudget],
        settings: DisruptionSettings,
        packing: PackingSettings,
        may_continue: Callable[[], bool],
    ) -> None:
        self._snapshot = with_drained(snapshot)
        self._budgets = budgets
        self._settings = settings
        self._packing = packing
        self._may_continue = may_continue
        self._known: dict[frozenset[str], _Change | None] = {}

    @property
    def tried(self) -> int:
        return len(self._known)

    def best(self, groups: Iterator[tuple[Candidate, ...]]) -> _Change | None:
        found = [change for group in groups if (change := self._try(group)) is not None]
        return max(found, key=lambda entry: entry.rank, default=None)

    def unchanged(self, removed: Collection[str]) -> tuple[str, ...]:
        """Return the nodes of which a change alone was tried and saves too little, sorted."""
        alone = (
            (*names,)[0] for names, change in self._known.items() if len(names) == 1 and not change
        )
        return tuple(sorted(name for name in alone if name not in removed))

    def smallest(self, best: _Change) -> _Change:
        """Return the change without the nodes that add hardly any saving to it.

        The nodes that are most expensive to disrupt are tried first.
        """
        minimum_saving = self._settings.minimum_saving_micros_per_hour
        for candidate in sorted(
            best.group, key=lambda entry: (-entry.disruption_cost, entry.node.name)
        ):
            if len(best.group) == 1:
                break
            fewer = self._try(
                tuple(
                    other_candidate
                    for other_candidate in best.group
                    if other_candidate is not candidate
                )
            )
            if fewer is not None and _loses_less_than(best, fewer, minimum_saving):
                best = fewer
        return best

    def _try(self, group: tuple[Candidate, ...]) -> _Change | None:
        names = frozenset(candidate.node.name for candidate in group)
        if names not in self._known:
            if len(self._known) >= self._settings.max_simulations or not self._may_continue():
                return None
            self._known[names] = self._simulated(group, names)
        return self._known[names]

    def _simulated(self, group: tuple[Candidate, ...], names: frozenset[str]) -> _Change | None:
        price = sum(candidate.price_micros_per_hour for candidate in group)
        most = price - self._settings.required_saving(price)
        if most < 0 or not self._pays_back(group, 0):
            return None
        plan = simulate(self._snapshot, names, self._packing)
        if plan is None or not self._pays_back(group, plan.cost_micros_per_hour):
            return None
        again = self._launched_again(names, plan)
        if again is None or not self._pays_back(group, plan.cost_micros_per_hour + again):
            return None
        kept = within_price(plan, most - again, self._settings, self._snapshot)
        if kept is None or not self._spot_is_wide_enough(group, kept):
            return None
        change = ConsolidationCommand(
            method=DisruptionMethod.REPLACE if plan.nodes else DisruptionMethod.DELETE,
            remove=tuple(sorted(names)),
            plan=kept,
            saving_micros_per_hour=price
            - sum(node.highest_price_micros_per_hour for node in kept.nodes)
            - again,
        )
        expected = price - plan.cost_micros_per_hour - again
        return _Change(group=group, change=change, expected_micros_per_hour=expected)

    def _launched_again(self, names: Collection[str], plan: Plan) -> int | None:
        """Return the price of what would be launched for pods that find no room.

        None when one fits nowhere.
        """
        if not self._settings.eviction_cost_micros:
            return 0
        again = launched_again(self._snapshot, names, plan, self._budgets, self._packing)
        return None if again is None else again.cost_micros_per_hour

    def _pays_back(self, group: Sequence[Candidate], cost_micros_per_hour: int) -> bool:
        now = self._snapshot.taken_at
        return pays_back(group, cost_micros_per_hour, self._settings, now)

    def _spot_is_wide_enough(self, group: Sequence[Candidate], plan: Plan) -> bool:
        """Return whether spot nodes, if any, are replaced by fewer nodes or by many cheaper types.

        One for one, EC2 has little choice left after a few replacements and takes a pool that it
        soon needs itself. Where nodes become fewer, there are fewer to replace again.
        """
        if not any(_capacity_type(candidate) == CapacityType.SPOT for candidate in group):
            return True
        return len(plan.nodes) < len(group) or all(
            len({option.offering.instance_type for option in node.options})
            >= self._settings.spot_types
            for node in plan.nodes
            if node.options[0].offering.capacity_type == CapacityType.SPOT
        )


def _loses_less_than(best: _Change, fewer: _Change, minimum_saving: int) -> bool:
    return best.expected_micros_per_hour - fewer.expected_micros_per_hour < minimum_saving


def _groups(
    found: Sequence[Candidate], within: Callable[[Iterable[Candidate]], tuple[Candidate, ...]]
) -> Iterator[tuple[Candidate, ...]]:
    """Yield the groups of candidates in the order in which they are tried.

    First the most wasteful node, then growing groups (by disruption cost, by use), then each node
    alone. The large groups come early, so that they are tried even when simulations run out. They
    grow by use, not by waste: over a day of small batches that was 5 % cheaper, as removing small
    nodes that are almost empty costs nothing (tests/benchmarks/planning/days.py).

    Args:
        within: Returns those of some candidates that may be disrupted together.
    """
    by_waste = sorted(found, key=lambda entry: (-_waste(entry), entry.node.name))
    by_use = sorted(found, key=lambda entry: (_used_share(entry), entry.node.name))
    rows = (within(found), within(by_use))
    yield within(by_waste)[:1]
    most = len(rows[0])
    sizes = sorted({min(size, most) for size in _growing(most)}, reverse=True)
    for size in sizes:
        if size > 1:
            for row in rows:
                yield row[:size]
    for candidate in by_use:
        if within((candidate,)):
            yield (candidate,)


def _growing(last: int) -> Iterator[int]:
    """Yield 2, 3, 4, 6, 9, 13 … and the last."""
    size = 2
    while size < last:
        yield size
        size += max(1, size // 2)
    yield last


def _waste(candidate: Candidate) -> int:
    """Return what is paid for capacity that its pods do not use, in micro-dollars per hour."""
    return candidate.price_micros_per_hour * max(0, _WHOLE - _used_share(candidate)) // _WHOLE


def _used_share(candidate: Candidate) -> int:
    """Return the higher use of cpu and memory, in thousandths of the allocatable."""
    shares = [0]
    for name in ("cpu", "memory"):
        allocatable = candidate.node.allocatable[name]
        if allocatable > 0:
            used = sum(pod.scheduling.requests[name] for pod in candidate.pods)
            shares.append(_WHOLE * used // allocatable)
    return max(shares)


def _capacity_type(candidate: Candidate) -> str:
    return candidate.node.labels.get(keys.CAPACITY_TYPE, "")

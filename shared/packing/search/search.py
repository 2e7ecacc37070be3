"""The search for a cheap plan: portfolio, then few kinds, then improvement."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from shared.packing.bound.per_kind import tighter_bound
from shared.packing.bound.resource_prices import find_prices
from shared.packing.priced_problem import Found, Planned, PricedProblem, make_ground
from shared.packing.problem import PackingProblem
from shared.packing.purchase.launch_groups import choose_kinds, merge_kinds
from shared.packing.search.aggregate import AggregatedProblem, coarsen
from shared.packing.search.budget import SearchBudget
from shared.packing.search.completion import build_ending
from shared.packing.search.disaggregate import seat
from shared.packing.search.fill_node import Rules
from shared.packing.search.first_fit import pack_simply
from shared.packing.search.greedy import build
from shared.packing.search.local_search import gather, improve
from shared.packing.search.portfolio import best_plan
from shared.packing.search.relocate import relocate

_WORK_PER_TRY: Final = 25
_FEW_PODS: Final = 300
# Plans this close to the bound are not worth more search; coarse pods cannot come as close.
_CLOSE: Final = 1.006
_CLOSE_SMALL: Final = 1.008
_SMALL_PODS: Final = 2_000
_CLOSE_MANY: Final = 1.009
_FEW_CLASSES: Final = 80
_CLOSE_COARSE: Final = 1.012
_THOUSAND: Final = 1000
# Classes times kinds up to which the simple packer takes some milliseconds at most.
_FEW_PAIRS: Final = 3_000
_DEAR: Final = 1.03  # cost of few launch groups beyond which other sizes are looked for


def search(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> Found:
    """Return a cheap plan.

    Args:
        problem: Its settings say how many launch groups and how much improvement; its seed settles
            what improvement tries.
        priced: Classes, kinds and what they are worth.
        counts: Pods per class; each class counted fits some kind.
        search_budget: When to stop.
    """
    settings = problem.settings
    aggregated = tight = None
    if sum(counts) > _FEW_PODS:
        aggregated = coarsen(priced, counts, problem.limits)
    asked, some = (aggregated.priced, aggregated.counts) if aggregated else (priced, counts)
    if sum(counts) > _FEW_PODS:
        mix = asked.worth.mix
        tight = tighter_bound(asked.demand, some, asked.kinds, asked.prices, mix=mix)
    target = max(priced.worth_of(counts) * _close(counts), (tight or 0) * _CLOSE_COARSE)
    plan, name = best_plan(asked, some, search_budget, target=target, thorough=settings.thorough)
    if aggregated is not None:
        plan, name = _seated(priced, aggregated, plan, counts), f"{name}, seated"
    if sum(counts) <= _FEW_PODS or priced.cost(plan) > target:
        simple = _first_fit(problem, priced, counts)
        if simple and priced.cost(simple) < priced.cost(plan):
            plan, name = simple, "first fit"
    if priced.cost(plan) > target:
        plan = relocate(priced, plan)
    most = settings.max_launch_groups
    if most and len({entry.kind for entry in plan}) > most:
        priced, plan = _few_kinds(problem, priced, counts, plan, again=aggregated is None)
    work = settings.improve_iterations * _WORK_PER_TRY * (10 if settings.thorough else 1)
    close_enough = priced.cost(plan) <= target
    if work and (settings.thorough or not close_enough):
        improved = improve(priced, plan, work, problem.seed, search_budget)
        if priced.cost(improved) < priced.cost(plan):
            plan, name = improved, f"{name}, improved"
    return Found(priced=priced, plan=plan, name=name, tight=tight)


def _close(counts: Sequence[int]) -> float:
    """Return how many times the worth of the pods is cheap enough."""
    present = sum([1 for count in counts if count])
    close = _CLOSE if present <= _FEW_CLASSES else _CLOSE_MANY
    return max(close, _CLOSE_SMALL) if sum(counts) <= _SMALL_PODS else close


def _first_fit(
    problem: PackingProblem, priced: PricedProblem, counts: Sequence[int]
) -> list[Planned]:
    """Return the simple packer's plan, each node of the cheapest kind that holds its pods.

    Nothing where that takes long, or where limits cut plans off: what is cheapest without them may
    hold fewer pods within them.

    It wins where few pods differ in what they may run on and in what they ask for beside cpu and
    memory: the others fill nodes by what is scarce in the mean.
    """
    present = sum([1 for count in counts if count])
    many = sum(counts) > _SMALL_PODS or present * len(priced.kinds) > _FEW_PAIRS
    if many or problem.limits:
        return []
    classes = zip(problem.classes, counts, strict=True)
    alone = replace(
        problem,
        classes=tuple([replace(pod_class, count=count) for pod_class, count in classes]),
        bins=(),
        compatible_bins=(0,) * len(counts),
    )
    shapes = frozenset([kind.shapes[0] for kind in priced.kinds])
    found = Counter([node.contents for node in pack_simply(alone, shapes).nodes])
    return [
        Planned(kind=priced.cheapest(*priced.needs(contents)), contents=contents, copies=copies)
        for contents, copies in sorted(found.items())
    ]


def _seated(
    priced: PricedProblem,
    aggregated: AggregatedProblem,
    rough: Sequence[Planned],
    counts: Sequence[int],
) -> list[Planned]:
    """Return a plan of the coarse problem with its pods seated."""
    plan, left = seat(priced, aggregated, rough, counts)
    if any(left):
        rest = build_ending(priced, left, Rules(), 0)
        assert rest is not None
        plan = gather([*plan, *rest])
    return plan


def _few_kinds(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    plan: list[Planned],
    *,
    again: bool,
) -> tuple[PricedProblem, list[Planned]]:
    """Return a plan of few kinds where that costs little, and a ground of these alone."""
    settings = problem.settings
    most = settings.max_launch_groups
    more = priced.cost(plan) * settings.fewer_groups_permille // _THOUSAND
    fewest = _fewest_kinds(problem, priced, counts, plan, most, again=again)
    if fewest[0].cost(fewest[1]) <= priced.cost(plan) + more:
        return fewest
    return _on_kinds(priced, counts, merge_kinds(priced, plan, most, more))


def _fewest_kinds(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    plan: list[Planned],
    most: int,
    *,
    again: bool,
) -> tuple[PricedProblem, list[Planned]]:
    """Return a plan of so many kinds at most where that is possible, whatever it costs."""
    merged = merge_kinds(priced, plan, most)
    smaller, moved = _on_kinds(priced, counts, merged)
    better = build(smaller, list(counts), Rules(), priced.cost(merged)) if again else None
    found = better or relocate(smaller, moved)
    if smaller.cost(found) > priced.cost(plan) * _DEAR:
        # Nodes filled for many sizes suit few sizes badly: sizes first, then what fills them.
        chosen = choose_kinds(priced, counts, plan, most)
        if chosen:
            other = _with_kinds(priced, counts, chosen)
            refilled = _refilled(problem, other, counts)
            if other.cost(refilled) < smaller.cost(found):
                return other, refilled
    return smaller, found


def _refilled(
    problem: PackingProblem, priced: PricedProblem, counts: Sequence[int]
) -> list[Planned]:
    aggregated = coarsen(priced, counts, problem.limits) if sum(counts) > _FEW_PODS else None
    asked, some = (aggregated.priced, aggregated.counts) if aggregated else (priced, counts)
    plan = build(asked, some, Rules())
    assert plan is not None
    return _seated(priced, aggregated, plan, counts) if aggregated else plan


def _on_kinds(
    priced: PricedProblem, counts: Sequence[int], plan: Sequence[Planned]
) -> tuple[PricedProblem, list[Planned]]:
    """Return the ground of the kinds of a plan alone, and the plan on it."""
    kept = sorted({entry.kind for entry in plan})
    place = {kind: number for number, kind in enumerate(kept)}
    return _with_kinds(priced, counts, kept), [
        Planned(kind=place[entry.kind], contents=entry.contents, copies=entry.copies)
        for entry in plan
    ]


def _with_kinds(priced: PricedProblem, counts: Sequence[int], kept: Sequence[int]) -> PricedProblem:
    """Return the ground of some kinds alone, numbered anew in the order given."""
    kinds = [priced.kinds[kind] for kind in kept]
    prices = [priced.prices[kind] for kind in kept]
    worth = find_prices(priced.demand, counts, kinds, prices)
    return make_ground(priced.demand, kinds, worth, prices)

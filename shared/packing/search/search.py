"""The search for a cheap plan: portfolio, then few bin types, then improvement."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from shared.model.values import replace
from shared.packing.bound.per_bin_type import bound_per_bin_type
from shared.packing.bound.resource_prices import find_prices
from shared.packing.priced_problem import Pattern, PricedProblem, Solution, price_problem
from shared.packing.problem import PackingProblem
from shared.packing.purchase.launch_groups import choose_bin_types, reduce_launch_groups
from shared.packing.search.aggregate import AggregatedProblem, aggregate
from shared.packing.search.budget import SearchBudget
from shared.packing.search.completion import build_completion
from shared.packing.search.disaggregate import disaggregate
from shared.packing.search.fill_node import FillRules
from shared.packing.search.first_fit import pack_first_fit
from shared.packing.search.greedy import build_greedy
from shared.packing.search.local_search import local_search, merge_equal
from shared.packing.search.portfolio import run_portfolio
from shared.packing.search.relocate import relocate

_WORK_PER_TRY: Final = 25
_FEW_PODS: Final = 300
# Plans this close to the bound are not improved further; with few pods per node, plans cannot come
# as close.
_CLOSE: Final = 1.006
_CLOSE_SMALL: Final = 1.008
_SMALL_PODS: Final = 2_000
_CLOSE_MANY: Final = 1.009
_FEW_CLASSES: Final = 80
_CLOSE_COARSE: Final = 1.012
_THOUSAND: Final = 1000
# Classes times bin types up to which the first-fit packer takes a few milliseconds at most.
_FEW_PAIRS: Final = 3_000
_DEAR: Final = 1.03  # cost ratio of few launch groups above which other bin types are tried


def search(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> Solution:
    """Return a cheap plan.

    Args:
        problem: Its settings limit launch groups and improvement; its seed determines what
            improvement tries.
        priced: Classes, bin types and prices.
        counts: Pods per class; each class counted fits some bin type.
        search_budget: When to stop.
    """
    settings = problem.settings
    aggregated = lower_bound = None
    if sum(counts) > _FEW_PODS:
        aggregated = aggregate(priced, counts, problem.limits)
    asked, some = (aggregated.priced, aggregated.counts) if aggregated else (priced, counts)
    if sum(counts) > _FEW_PODS:
        mix = asked.dual_prices.mix
        lower_bound = bound_per_bin_type(asked.demand, some, asked.bin_types, asked.prices, mix=mix)
    target_cost = max(priced.value_of(counts) * _close(counts), (lower_bound or 0) * _CLOSE_COARSE)
    patterns, procedure = run_portfolio(
        asked, some, search_budget, target_cost=target_cost, thorough=settings.thorough
    )
    if aggregated is not None:
        patterns, procedure = (
            _disaggregated(priced, aggregated, patterns, counts),
            f"{procedure}, seated",
        )
    if sum(counts) <= _FEW_PODS or priced.cost(patterns) > target_cost:
        simple = _first_fit(problem, priced, counts)
        if simple and priced.cost(simple) < priced.cost(patterns):
            patterns, procedure = simple, "first fit"
    if priced.cost(patterns) > target_cost:
        patterns = relocate(priced, patterns)
    most = settings.max_launch_groups
    if most and len({entry.bin_type for entry in patterns}) > most:
        priced, patterns = _few_bin_types(
            problem, priced, counts, patterns, again=aggregated is None
        )
    work = settings.improve_iterations * _WORK_PER_TRY * (10 if settings.thorough else 1)
    close_enough = priced.cost(patterns) <= target_cost
    if work and (settings.thorough or not close_enough):
        improved = local_search(priced, patterns, work, problem.seed, search_budget)
        if priced.cost(improved) < priced.cost(patterns):
            patterns, procedure = improved, f"{procedure}, improved"
    return Solution(priced=priced, patterns=patterns, procedure=procedure, lower_bound=lower_bound)


def _close(counts: Sequence[int]) -> float:
    """Return the multiple of the pods' value at which a plan is cheap enough."""
    present = sum([1 for count in counts if count])
    close = _CLOSE if present <= _FEW_CLASSES else _CLOSE_MANY
    return max(close, _CLOSE_SMALL) if sum(counts) <= _SMALL_PODS else close


def _first_fit(
    problem: PackingProblem, priced: PricedProblem, counts: Sequence[int]
) -> list[Pattern]:
    """Return the first-fit packer's plan, each node of the cheapest bin type that holds its pods.

    Return nothing where it would take long, or where limits are set: what is cheapest without them
    may hold fewer pods within them.

    It wins where few pods differ in where they may run and in what they request besides cpu and
    memory: the other procedures fill nodes by what is scarce on average.
    """
    present = sum([1 for count in counts if count])
    many = sum(counts) > _SMALL_PODS or present * len(priced.bin_types) > _FEW_PAIRS
    if many or problem.limits:
        return []
    classes = zip(problem.classes, counts, strict=True)
    alone = replace(
        problem,
        classes=tuple([replace(pod_class, count=count) for pod_class, count in classes]),
        bins=(),
        compatible_bins=(0,) * len(counts),
    )
    node_types = frozenset([bin_type.node_types[0] for bin_type in priced.bin_types])
    found = Counter([node.contents for node in pack_first_fit(alone, node_types).nodes])
    return [
        Pattern(bin_type=priced.cheapest(*priced.needs(contents)), contents=contents, copies=copies)
        for contents, copies in sorted(found.items())
    ]


def _disaggregated(
    priced: PricedProblem,
    aggregated: AggregatedProblem,
    rough: Sequence[Pattern],
    counts: Sequence[int],
) -> list[Pattern]:
    """Return a plan of the aggregated problem with real pods assigned to its nodes."""
    patterns, left = disaggregate(priced, aggregated, rough, counts)
    if any(left):
        rest = build_completion(priced, left, FillRules(), 0)
        assert rest is not None
        patterns = merge_equal([*patterns, *rest])
    return patterns


def _few_bin_types(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    patterns: list[Pattern],
    *,
    again: bool,
) -> tuple[PricedProblem, list[Pattern]]:
    """Return a plan of few bin types where that costs little, and their priced problem."""
    settings = problem.settings
    most = settings.max_launch_groups
    more = priced.cost(patterns) * settings.fewer_groups_permille // _THOUSAND
    fewest = _fewest_bin_types(problem, priced, counts, patterns, most, again=again)
    if fewest[0].cost(fewest[1]) <= priced.cost(patterns) + more:
        return fewest
    return _on_bin_types(priced, counts, reduce_launch_groups(priced, patterns, most, more))


def _fewest_bin_types(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    patterns: list[Pattern],
    most: int,
    *,
    again: bool,
) -> tuple[PricedProblem, list[Pattern]]:
    """Return a plan of at most `most` bin types where that is possible, whatever it costs."""
    merged = reduce_launch_groups(priced, patterns, most)
    smaller, moved = _on_bin_types(priced, counts, merged)
    better = (
        build_greedy(smaller, list(counts), FillRules(), priced.cost(merged)) if again else None
    )
    found = better or relocate(smaller, moved)
    if smaller.cost(found) > priced.cost(patterns) * _DEAR:
        # Nodes filled for many bin types suit few of them badly: choose bin types first, then fill.
        chosen = choose_bin_types(priced, counts, patterns, most)
        if chosen:
            other = _with_bin_types(priced, counts, chosen)
            refilled = _refilled(problem, other, counts)
            if other.cost(refilled) < smaller.cost(found):
                return other, refilled
    return smaller, found


def _refilled(
    problem: PackingProblem, priced: PricedProblem, counts: Sequence[int]
) -> list[Pattern]:
    aggregated = aggregate(priced, counts, problem.limits) if sum(counts) > _FEW_PODS else None
    asked, some = (aggregated.priced, aggregated.counts) if aggregated else (priced, counts)
    patterns = build_greedy(asked, some, FillRules())
    assert patterns is not None
    return _disaggregated(priced, aggregated, patterns, counts) if aggregated else patterns


def _on_bin_types(
    priced: PricedProblem, counts: Sequence[int], patterns: Sequence[Pattern]
) -> tuple[PricedProblem, list[Pattern]]:
    """Return the priced problem of a plan's bin types alone, and the plan in its numbering."""
    kept = sorted({entry.bin_type for entry in patterns})
    place = {bin_type: number for number, bin_type in enumerate(kept)}
    return _with_bin_types(priced, counts, kept), [
        Pattern(bin_type=place[entry.bin_type], contents=entry.contents, copies=entry.copies)
        for entry in patterns
    ]


def _with_bin_types(
    priced: PricedProblem, counts: Sequence[int], kept: Sequence[int]
) -> PricedProblem:
    """Return the priced problem of some bin types alone, renumbered in the given order."""
    bin_types = [priced.bin_types[bin_type] for bin_type in kept]
    prices = [priced.prices[bin_type] for bin_type in kept]
    dual_prices = find_prices(priced.demand, counts, bin_types, prices)
    return price_problem(priced.demand, bin_types, dual_prices, prices)

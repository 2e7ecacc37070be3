"""The packer: from a problem to a checked plan."""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.model.values import replace
from shared.packing.adjusted_prices import (
    fee_for_fewer_nodes,
    has_few_pairs,
    is_better,
    is_quick,
    prices_of_limits,
    unplaced_and_cost,
    unplaced_count,
)
from shared.packing.best_bound import (
    BoundProblem,
    close_bound,
    counts_that_fit,
    is_loose,
    quick_bound,
)
from shared.packing.bin_types import BinType, allowed_node_types, find_bin_types, undominated
from shared.packing.bound.free_capacity import find_free_capacities
from shared.packing.bound.resource_prices import ResourcePrices, find_prices
from shared.packing.checker import check
from shared.packing.components import components, joined
from shared.packing.demand import Demand, read_demand
from shared.packing.exact import EXACT, cover_exactly
from shared.packing.fill_bins import fill_bins
from shared.packing.pooling import PSEUDO_RESOURCE
from shared.packing.priced_problem import PricedProblem, Solution, price_problem
from shared.packing.problem import (
    LIMIT,
    NO_NODE_TYPE,
    PackedNode,
    Packing,
    PackingProblem,
    PackingSettings,
    cap_is_too_dear,
)
from shared.packing.purchase.headroom import ROOMY, find_mix, with_headroom
from shared.packing.purchase.launch_options import list_offers
from shared.packing.purchase.purchase import Limits, limits_could_hold, purchase, within_limits
from shared.packing.search.budget import OutOfTime, SearchBudget
from shared.packing.search.first_fit import pack_first_fit
from shared.packing.usable_capacity import amounts_of

_DEFAULTS: Final = PackingSettings()
_Bought = tuple[Packing, PricedProblem | None, int | None]
_MANY_BINS: Final = 10
_THOUSAND: Final = 1000
# Where each node holds many pods, the fractional price (nodes bought in fractions) shows what
# larger nodes save: below this, packing is not tried again with larger nodes. In 96 decisions of
# the benchmarks the plan within the cap then cost at most 1.4 % more (2026-11-29).
_WORTH_A_TRY_PERMILLE: Final = 5
_FEW_ON_A_NODE: Final = 8
_MANY_PODS: Final = 300  # planning for fewer is quick, whether or not limits allow them


def pack(
    problem: PackingProblem, out_of_time: OutOfTime | None = None, *, bounded: bool = True
) -> Packing:
    """Return the cheapest plan found, checked.

    The same problem, seed included, gives the same plan. Settings that allow larger nodes or more
    launch groups than the defaults never make it more expensive: the plan under the defaults is a
    candidate, too. A plan that the checker refuses is replaced by the first-fit packer's, with the
    reason in `fallback`: that is a bug to report.

    Args:
        problem: What to pack.
        out_of_time: Called now and then; once it returns True, the search for a cheaper plan ends,
            and the plan is marked `cut_short`. Without it, only the problem determines how long the
            search takes.
        bounded: Whether to compute a lower bound, too; it is 0 otherwise.

    Example:
        >>> pack(PackingProblem(classes=(), node_types=(), compatible=())).nodes
        ()
    """
    search_budget = SearchBudget(out_of_time)
    packing = _pack_components(problem, search_budget, bounded=bounded)
    restricted = replace(problem, settings=_restricted(problem.settings))
    is_freer = _limits(problem.settings) != _limits(restricted.settings)
    if is_freer and not search_budget.ended() and _may_be_better(restricted, packing):
        other = _pack_components(restricted, search_budget, bounded=bounded)
        packing = min(packing, other, key=unplaced_and_cost)
    if _could_give_way(problem, packing) and not search_budget.ended():
        other = _pack_components(_uncapped(problem), search_budget, bounded=bounded)
        within_cap = packing.cost_micros_per_hour
        saves = cap_is_too_dear(within_cap, other.cost_micros_per_hour)
        if saves and unplaced_count(other) <= unplaced_count(packing):
            packing = replace(other, within_cap_micros_per_hour=within_cap)
    wrong = check(problem, packing)
    if not wrong:
        return packing
    demand = read_demand(problem)
    amounts = amounts_of(problem.node_types, demand)
    allowed = frozenset(allowed_node_types(problem, demand, amounts))
    return replace(pack_first_fit(problem, allowed), fallback="; ".join(wrong[:3]))


def _could_give_way(problem: PackingProblem, packing: Packing) -> bool:
    """Return whether the cap on node size is the default and may make a plan too expensive."""
    cap, node_types = problem.settings.max_node_vcpus, problem.node_types
    larger = [
        node_type.offerings[0].price_micros_per_hour
        for node_type in node_types
        if node_type.vcpus > cap
    ]
    # A plan beyond the cap has at least one larger node.
    cost = packing.cost_micros_per_hour
    if cap != _DEFAULTS.max_node_vcpus or not larger or not cap_is_too_dear(cost, min(larger)):
        return False
    demand = read_demand(problem)
    amounts = amounts_of(node_types, demand)
    bin_types = find_bin_types(
        problem, demand, range(len(node_types)), amounts, problem.settings, cap_all=True
    )
    best = undominated(bin_types, problem.limits)
    if not any(node_types[bin_type.node_types[0]].vcpus > cap for bin_type in best):
        return False
    counts = _counts_on_new_nodes(packing, demand)
    value = _prices_of(demand, counts, best)
    in_parts = _price_in_parts(value, best)
    if not cap_is_too_dear(cost, in_parts):
        return False
    allowed = allowed_node_types(problem, demand, amounts)
    within = find_bin_types(problem, demand, allowed, amounts, problem.settings, cap_all=True)
    if not any(_is_coarse(demand, k, within) for k, count in enumerate(counts) if count):
        usual = undominated(within, problem.limits)
        within_cap = _price_in_parts(_prices_of(demand, counts, usual), usual)
        if within_cap * _THOUSAND <= in_parts * (_THOUSAND + _WORTH_A_TRY_PERMILLE):
            return False
    # As loaded by the search.
    from shared.packing.bound.per_bin_type import bound_per_bin_type  # noqa: PLC0415

    true_prices = [bin_type.price for bin_type in best]
    # Rounding whole nodes takes longer than to plan for few pods.
    mix = value.mix if sum(counts) > _MANY_PODS else ()
    return cap_is_too_dear(cost, bound_per_bin_type(demand, counts, best, true_prices, mix=mix))


def _counts_on_new_nodes(packing: Packing, demand: Demand) -> list[int]:
    counts = [0] * len(demand.cpu)
    for node in packing.nodes:
        for k, n in node.contents:
            counts[k] += n
    return counts


def _is_coarse(demand: Demand, index: int, kinds: Iterable[BinType]) -> bool:
    """Return whether only few pods of a class fit on any node: larger nodes may then waste less."""
    needs = [
        (place, amount)
        for place, amount in demand.amounts(index)
        # Nodes of all sizes have the same amounts of these.
        if not demand.names[place].startswith(PSEUDO_RESOURCE)
    ]
    fitting = (
        # A pod that requests nothing fits everywhere.
        min((kind.allocatable[place] // amount for place, amount in needs), default=_FEW_ON_A_NODE)
        for kind in kinds
    )
    return max(fitting, default=0) < _FEW_ON_A_NODE


def _prices_of(
    demand: Demand, counts: Sequence[int], bin_types: Sequence[BinType]
) -> ResourcePrices:
    """Return the resource prices by comparison prices."""
    return find_prices(
        demand, counts, bin_types, [bin_type.comparison_price for bin_type in bin_types]
    )


def _price_in_parts(value: ResourcePrices, bin_types: Sequence[BinType]) -> int:
    """Return the price of what the linear program buys."""
    return int(sum([many * bin_types[t].price for t, many in value.mix]))


def _uncapped(problem: PackingProblem) -> PackingProblem:
    return replace(problem, settings=replace(problem.settings, max_node_vcpus=0))


def _pack_components(
    problem: PackingProblem, search_budget: SearchBudget, *, bounded: bool
) -> Packing:
    parts = components(problem)
    packings = [pack_unchecked(part.problem, search_budget, bounded=bounded) for part in parts]
    return joined(parts, packings) if len(parts) > 1 else packings[0]


def _restricted(settings: PackingSettings) -> PackingSettings:
    """Return the settings restricted to what the defaults allow."""
    return replace(
        settings,
        node_fee_micros_per_hour=max(
            settings.node_fee_micros_per_hour, _DEFAULTS.node_fee_micros_per_hour
        ),
        fewer_nodes_permille=max(settings.fewer_nodes_permille, _DEFAULTS.fewer_nodes_permille),
        max_node_vcpus=_bounded(settings.max_node_vcpus, _DEFAULTS.max_node_vcpus),
        max_launch_groups=_bounded(settings.max_launch_groups, _DEFAULTS.max_launch_groups),
        fewer_groups_permille=max(settings.fewer_groups_permille, _DEFAULTS.fewer_groups_permille),
    )


def _limits(settings: PackingSettings) -> tuple[int, int, int]:
    return (
        settings.max_node_vcpus,
        settings.max_launch_groups,
        settings.fewer_groups_permille,
    )


def _may_be_better(problem: PackingProblem, packing: Packing) -> bool:
    """Return whether a problem may have a plan with fewer unplaced pods, or a cheaper one."""
    cost = packing.cost_micros_per_hour
    if packing.unplaced:
        return True
    if cost == packing.lower_bound_micros_per_hour:
        return False
    return cost > sum(_quick_bound(part.problem) for part in components(problem))


def _quick_bound(problem: PackingProblem) -> int:
    """Return a lower bound for plans that place all pods under the settings of the problem."""
    demand = read_demand(problem)
    amounts = amounts_of(problem.node_types, demand)
    node_types = allowed_node_types(problem, demand, amounts)
    bin_types = find_bin_types(problem, demand, node_types, amounts, problem.settings)
    by_true_price = undominated(
        [bin_type._replace(comparison_price=bin_type.price) for bin_type in bin_types], {}
    )
    counts = counts_that_fit(
        [pod_class.count for pod_class in problem.classes], demand, by_true_price
    )
    dual_prices = find_prices(
        demand, counts, by_true_price, [bin_type.price for bin_type in by_true_price]
    )
    free_capacities = find_free_capacities(problem, demand, counts)
    return quick_bound(
        BoundProblem(demand, by_true_price, counts, dual_prices, free_capacities)
    ).micros_per_hour


def _bounded(most: int, usual: int) -> int:
    """Return the smaller of two maxima, where 0 for the first one means none."""
    return min(most, usual) if most else usual


def pack_unchecked(
    problem: PackingProblem, search_budget: SearchBudget | None = None, *, bounded: bool = True
) -> Packing:
    """Return the cheapest plan found, unchecked."""
    search_budget = search_budget or SearchBudget()
    demand = read_demand(problem)
    amounts = amounts_of(problem.node_types, demand)
    node_types = allowed_node_types(problem, demand, amounts)
    bin_types = find_bin_types(problem, demand, node_types, amounts, problem.settings)
    counts = [pod_class.count for pod_class in problem.classes]
    fitting = counts_that_fit(counts, demand, bin_types)
    best = undominated(bin_types, problem.limits)
    free_capacities = find_free_capacities(problem, demand, counts)
    placements = fill_bins(problem, demand, counts, fitting, best) if free_capacities else ()
    unplaced = [
        (k, count, NO_NODE_TYPE) for k, count in enumerate(counts) if count and not fitting[k]
    ]
    for k, _, _ in unplaced:
        counts[k] = 0
    bought, priced, lower_bound = _buy_well(problem, demand, bin_types, best, counts, search_budget)
    packing = replace(
        bought,
        placements=placements,
        unplaced=tuple(sorted([*unplaced, *bought.unplaced])),
        cut_short=search_budget.cut_short,
    )
    if packing.unplaced and (free_capacities or problem.limits) and not search_budget.ended():
        packing = _or_first_fit(problem, packing, frozenset(node_types))
    if not (bounded and packing.nodes):
        return packing
    by_true_price, cost = best, packing.cost_micros_per_hour
    if problem.limits or any(bin_type.price != bin_type.comparison_price for bin_type in bin_types):
        by_true_price = undominated(
            [bin_type._replace(comparison_price=bin_type.price) for bin_type in bin_types], {}
        )
    prices = [bin_type.price for bin_type in by_true_price]
    placed = _placed(problem, packing)
    counts_that_fit_all = (
        counts_that_fit(placed, demand, by_true_price) if free_capacities else placed
    )
    if by_true_price is best and priced is not None and list(priced.prices) == prices:
        dual_prices = priced.dual_prices
    else:
        dual_prices, lower_bound = find_prices(demand, counts, by_true_price, prices), None
    if free_capacities or placed != counts:
        lower_bound = None
    bound_problem = BoundProblem(
        demand, by_true_price, counts_that_fit_all, dual_prices, free_capacities
    )
    bound = quick_bound(bound_problem)
    if is_loose(bound, cost):
        bound = max(bound, close_bound(bound_problem, cost, lower_bound))
    return replace(packing, lower_bound_micros_per_hour=bound.for_plan(cost).micros_per_hour)


def _or_first_fit(problem: PackingProblem, packing: Packing, allowed: frozenset[int]) -> Packing:
    """Return a plan, or the first-fit packer's where that leaves fewer pods unplaced."""
    if not is_quick(problem, len(packing.nodes) + len(problem.bins)) or not has_few_pairs(problem):
        return packing
    simple = pack_first_fit(problem, allowed)
    return simple if unplaced_count(simple) < unplaced_count(packing) else packing


def _placed(problem: PackingProblem, packing: Packing) -> list[int]:
    """Return the placed pods per class."""
    placed = [pod_class.count for pod_class in problem.classes]
    for k, count, _ in packing.unplaced:
        placed[k] -= count
    return placed


def _buy_well(
    problem: PackingProblem,
    demand: Demand,
    bin_types: Sequence[BinType],
    best: Sequence[BinType],
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> _Bought:
    """Return the best result of `_buy`, tried again at adjusted prices (fewer nodes, limits)."""

    def at_higher_prices(more: Sequence[int]) -> _Bought:
        some = [
            bin_type._replace(comparison_price=bin_type.comparison_price + extra)
            for bin_type, extra in zip(bin_types, more, strict=True)
        ]
        return _buy(problem, demand, some, undominated(some, problem.limits), counts, search_budget)

    found = _buy(problem, demand, bin_types, best, counts, search_budget)
    fee = fee_for_fewer_nodes(problem, found[0])
    if fee and not search_budget.ended():
        again = at_higher_prices([fee] * len(bin_types))
        if is_better(problem, again[0], found[0]):
            found = again
    for extra_prices in prices_of_limits(problem, found[0], bin_types):
        if search_budget.ended():
            break
        again = at_higher_prices(extra_prices)
        found = min(found, again, key=lambda bought: unplaced_and_cost(bought[0]))
    return found


def _buy(
    problem: PackingProblem,
    demand: Demand,
    bin_types: Sequence[BinType],
    best: Sequence[BinType],
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> _Bought:
    """Return nodes for the pods, as far as the limits allow. Each class counted fits some bin type.

    Also the priced problem of the nodes planned last, and the lower bound for their pods if known:
    without limits, these are all nodes.
    """
    limits: Limits = dict(problem.limits)
    nodes: list[PackedNode] = []
    unplaced: list[tuple[int, int, str]] = []
    procedure = ""
    priced: PricedProblem | None = None
    bound: int | None = None
    left = list(counts)
    offers = list_offers(problem, bin_types)
    while any(left):
        later = [0] * len(left)
        if limits:
            usable = within_limits(problem, bin_types, limits)
            fitting = counts_that_fit(left, demand, usable)
            unplaced.extend(
                (k, count, LIMIT) for k, count in enumerate(left) if count and not fitting[k]
            )
            best = undominated(usable, problem.limits)
            left, later = _for_now(problem, best, limits, fitting)
        if not any(left):
            break
        priced = _price_problem(problem, demand, left, best)
        found = _cover(priced, left) or _search(problem, priced, left, search_budget)
        mix = find_mix(problem, demand, left, best)
        if mix:
            found = with_headroom(problem, priced, found, left, mix)
        procedure, bound = found.procedure, found.lower_bound
        bought, refused, limits = purchase(
            found.priced, found.patterns, offers, limits, roomy=procedure == ROOMY
        )
        nodes.extend(bought)
        left = later
        for entry in refused:
            for k, n in entry.contents:
                left[k] += n
    cost = 0
    for node in nodes:
        node_type, offering_index = node.options[0]
        cost += problem.node_types[node_type].offerings[offering_index].price_micros_per_hour
    packing = Packing(
        nodes=tuple(nodes),
        unplaced=tuple(unplaced),
        cost_micros_per_hour=cost,
        lower_bound_micros_per_hour=0,
        candidate=procedure,
    )
    return packing, priced, bound


def _for_now(
    problem: PackingProblem, bin_types: Sequence[BinType], limits: Limits, counts: list[int]
) -> tuple[list[int], list[int]]:
    """Return the pods to plan for now under some limits, and those to plan for later."""
    if sum(counts) <= _MANY_PODS:
        return counts, [0] * len(counts)
    some = limits_could_hold(problem, bin_types, limits, counts)
    return some, [n - m for n, m in zip(counts, some, strict=True)]


def _cover(priced: PricedProblem, counts: Sequence[int]) -> Solution | None:
    """Return the exact solution if the pods are few enough to compute it, else None."""
    patterns = cover_exactly(priced, counts)
    if patterns is None:
        return None
    return Solution(
        priced=priced, patterns=patterns, procedure=EXACT, lower_bound=priced.cost(patterns)
    )


def _search(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> Solution:
    # Takes a third of the packer's loading time, which a cold start with few pods saves.
    from shared.packing.search.search import search  # noqa: PLC0415

    return search(problem, priced, counts, search_budget)


def _price_problem(
    problem: PackingProblem, demand: Demand, counts: Sequence[int], bin_types: Sequence[BinType]
) -> PricedProblem:
    settings = problem.settings
    prices = [bin_type.comparison_price for bin_type in bin_types]
    value = find_prices(demand, counts, bin_types, prices)
    priced = price_problem(demand, bin_types, value, prices)
    # Spare capacity matters for a first node, and little beside many nodes.
    part = settings.leftover_value_percent / 100 * min(len(problem.bins) / _MANY_BINS, 1.0)
    if sum(counts) > settings.small_batch_pods or not part:
        return priced
    # The price less the value of the allocatable: what is used has the same value on every node.
    prices = [
        max(round(price * (1 - part * ceiling)), 1)
        for price, ceiling in zip(prices, priced.max_return, strict=True)
    ]
    value = find_prices(demand, counts, bin_types, prices)
    return price_problem(demand, bin_types, value, prices)

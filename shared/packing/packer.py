"""From a problem to a checked plan."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from shared.packing.best_bound import Question, close_bound, housed, is_loose, quick_bound
from shared.packing.bound.free_capacity import free_rooms
from shared.packing.bound.resource_prices import find_prices
from shared.packing.checker import check
from shared.packing.components import components, joined
from shared.packing.demand import Demand, read_demand
from shared.packing.exact import EXACT, cover_exactly
from shared.packing.machine_kinds import MachineKind, allowed_shapes, find_kinds, front
from shared.packing.placing import place
from shared.packing.priced_problem import Found, PricedProblem, make_ground
from shared.packing.problem import (
    LIMIT,
    NO_SHAPE,
    PackedNode,
    Packing,
    PackingProblem,
    PackingSettings,
    cap_is_too_dear,
)
from shared.packing.purchase.headroom import ROOMY, find_mix, roomier
from shared.packing.purchase.launch_options import list_offers
from shared.packing.purchase.purchase import Limits, could_be_held, purchase, within_limits
from shared.packing.search.budget import OutOfTime, SearchBudget
from shared.packing.search.first_fit import pack_simply
from shared.packing.second_tries import (
    fee_for_fewer,
    has_few_pairs,
    is_better,
    is_quick,
    left_out,
    left_out_and_cost,
    rents_of_limits,
)
from shared.packing.symmetry import SLOT
from shared.packing.usable_capacity import amounts_of

_DEFAULTS: Final = PackingSettings()
_Bought = tuple[Packing, PricedProblem | None, int | None]
_MANY_BINS: Final = 10
_THOUSAND: Final = 1000
# Where pods are many on each node, what larger nodes save shows in the price in parts, in which
# nodes need not be whole: below so much the plan is not made again with larger nodes. In 96
# decisions of the benchmarks the plan within the cap then cost at most 1.4 % more (2026-11-29).
_WORTH_A_TRY_PERMILLE: Final = 5
_FEW_ON_A_NODE: Final = 8
_MANY_PODS: Final = 300  # to plan for fewer is quick, whether or not limits allow it


def pack(
    problem: PackingProblem, out_of_time: OutOfTime | None = None, *, bounded: bool = True
) -> Packing:
    """Return the cheapest plan found, checked.

    The same problem, seed included, gives the same plan. Settings that allow larger nodes, or
    more kinds of them, than the defaults never make it more expensive: the plan under the defaults
    is a candidate. A plan the checker refuses is replaced by the simple packer's
    and says so in `fallback`: that is a bug to report.

    Args:
        problem: What to pack.
        out_of_time: Asked now and then whether to stop looking for a cheaper plan; a plan that was
            cut short says so. Without it only the problem decides how long the search goes on.
        bounded: Whether to compute a lower bound, too; it is 0 otherwise.

    Example:
        >>> pack(PackingProblem(classes=(), shapes=(), compatible=())).nodes
        ()
    """
    search_budget = SearchBudget(out_of_time)
    packing = _in_parts(problem, search_budget, bounded=bounded)
    narrower = replace(problem, settings=_narrower(problem.settings))
    free = _limits(problem.settings) != _limits(narrower.settings)
    if free and not search_budget.ended() and _may_be_better(narrower, packing):
        other = _in_parts(narrower, search_budget, bounded=bounded)
        packing = min(packing, other, key=left_out_and_cost)
    if _could_give_way(problem, packing) and not search_budget.ended():
        other = _in_parts(_uncapped(problem), search_budget, bounded=bounded)
        within_cap = packing.cost_micros_per_hour
        saves = cap_is_too_dear(within_cap, other.cost_micros_per_hour)
        if saves and left_out(other) <= left_out(packing):
            packing = replace(other, within_cap_micros_per_hour=within_cap)
    wrong = check(problem, packing)
    if not wrong:
        return packing
    demand = read_demand(problem)
    rooms = amounts_of(problem.shapes, demand)
    allowed = frozenset(allowed_shapes(problem, demand, rooms))
    return replace(pack_simply(problem, allowed), fallback="; ".join(wrong[:3]))


def _could_give_way(problem: PackingProblem, packing: Packing) -> bool:
    """Return whether the cap on node size is the default and may cost a plan more than it may."""
    cap, shapes = problem.settings.max_node_vcpus, problem.shapes
    larger = [shape.pools[0].price_micros_per_hour for shape in shapes if shape.vcpus > cap]
    # A plan beyond the cap has at least one larger node.
    cost = packing.cost_micros_per_hour
    if cap != _DEFAULTS.max_node_vcpus or not larger or not cap_is_too_dear(cost, min(larger)):
        return False
    demand = read_demand(problem)
    amounts = amounts_of(shapes, demand)
    kinds = find_kinds(problem, demand, range(len(shapes)), amounts, problem.settings, whole=True)
    best = front(kinds, problem.limits)
    if not any(shapes[kind.shapes[0]].vcpus > cap for kind in best):
        return False
    in_parts = _price_in_parts(packing, demand, best)
    if not cap_is_too_dear(cost, in_parts):
        return False
    allowed = allowed_shapes(problem, demand, amounts)
    within = find_kinds(problem, demand, allowed, amounts, problem.settings, whole=True)
    if any(_is_coarse(demand, k, within) for k in _classes_on_new_nodes(packing)):
        return True
    within_cap = _price_in_parts(packing, demand, front(within, problem.limits))
    return within_cap * _THOUSAND > in_parts * (_THOUSAND + _WORTH_A_TRY_PERMILLE)


def _classes_on_new_nodes(packing: Packing) -> frozenset[int]:
    return frozenset(k for node in packing.nodes for k, _ in node.contents)


def _is_coarse(demand: Demand, index: int, kinds: Iterable[MachineKind]) -> bool:
    """Return whether few pods of a class fit on any node: larger nodes may then waste less."""
    needs = [
        (place, amount)
        for place, amount in demand.amounts(index)
        # A node of any size has the same of these.
        if not demand.names[place].startswith(SLOT)
    ]
    fitting = (
        # A pod that asks for nothing fits everywhere.
        min((kind.room[place] // amount for place, amount in needs), default=_FEW_ON_A_NODE)
        for kind in kinds
    )
    return max(fitting, default=0) < _FEW_ON_A_NODE


def _price_in_parts(packing: Packing, demand: Demand, kinds: Sequence[MachineKind]) -> int:
    """Return what the pods on new nodes cost in parts, bought by the prices plans compare."""
    counts = [0] * len(demand.cpu)
    for node in packing.nodes:
        for k, n in node.contents:
            counts[k] += n
    worth = find_prices(demand, counts, kinds, [kind.planning_price for kind in kinds])
    return int(sum([many * kinds[t].price for t, many in worth.mix]))


def _uncapped(problem: PackingProblem) -> PackingProblem:
    return replace(problem, settings=replace(problem.settings, max_node_vcpus=0))


def _in_parts(problem: PackingProblem, search_budget: SearchBudget, *, bounded: bool) -> Packing:
    parts = components(problem)
    packings = [plan(part.problem, search_budget, bounded=bounded) for part in parts]
    return joined(parts, packings) if len(parts) > 1 else packings[0]


def _narrower(settings: PackingSettings) -> PackingSettings:
    """Return the settings with no more freedom than the defaults leave."""
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
    """Return whether a plan of a problem may leave fewer pods out than another, or cost less."""
    cost = packing.cost_micros_per_hour
    if packing.unplaced:
        return True
    if cost == packing.lower_bound_micros_per_hour:
        return False
    return cost > sum(_quick_bound(part.problem) for part in components(problem))


def _quick_bound(problem: PackingProblem) -> int:
    """Return what a plan that places all pods costs at least under the settings of the problem."""
    demand = read_demand(problem)
    amounts = amounts_of(problem.shapes, demand)
    shapes = allowed_shapes(problem, demand, amounts)
    kinds = find_kinds(problem, demand, shapes, amounts, problem.settings)
    plain = front([kind._replace(planning_price=kind.price) for kind in kinds], {})
    counts = housed([pod_class.count for pod_class in problem.classes], demand, plain)
    worth = find_prices(demand, counts, plain, [kind.price for kind in plain])
    rooms = free_rooms(problem, demand, counts)
    return quick_bound(Question(demand, plain, counts, worth, rooms)).micros_per_hour


def _bounded(most: int, usual: int) -> int:
    """Return a maximum, of which 0 says that there is none, no higher than usual."""
    return min(most, usual) if most else usual


def plan(
    problem: PackingProblem, search_budget: SearchBudget | None = None, *, bounded: bool = True
) -> Packing:
    """Return the cheapest plan found, unchecked."""
    search_budget = search_budget or SearchBudget()
    demand = read_demand(problem)
    amounts = amounts_of(problem.shapes, demand)
    shapes = allowed_shapes(problem, demand, amounts)
    kinds = find_kinds(problem, demand, shapes, amounts, problem.settings)
    counts = [pod_class.count for pod_class in problem.classes]
    fitting = housed(counts, demand, kinds)
    best = front(kinds, problem.limits)
    rooms = free_rooms(problem, demand, counts)
    placements = place(problem, demand, counts, fitting, best) if rooms else ()
    unplaced = [(k, count, NO_SHAPE) for k, count in enumerate(counts) if count and not fitting[k]]
    for k, _, _ in unplaced:
        counts[k] = 0
    bought, priced, tight = _buy_well(problem, demand, kinds, best, counts, search_budget)
    packing = replace(
        bought,
        placements=placements,
        unplaced=tuple(sorted([*unplaced, *bought.unplaced])),
        cut_short=search_budget.cut_short,
    )
    if packing.unplaced and (rooms or problem.limits) and not search_budget.ended():
        packing = _or_simple(problem, packing, frozenset(shapes))
    if not (bounded and packing.nodes):
        return packing
    plain, cost = best, packing.cost_micros_per_hour
    if problem.limits or any(kind.price != kind.planning_price for kind in kinds):
        plain = front([kind._replace(planning_price=kind.price) for kind in kinds], {})
    prices = [kind.price for kind in plain]
    placed = _placed(problem, packing)
    asked = housed(placed, demand, plain) if rooms else placed
    if plain is best and priced is not None and list(priced.prices) == prices:
        worth = priced.worth
    else:
        worth, tight = find_prices(demand, counts, plain, prices), None
    if rooms or placed != counts:
        tight = None
    question = Question(demand, plain, asked, worth, rooms)
    bound = quick_bound(question)
    if is_loose(bound, cost):
        bound = max(bound, close_bound(question, cost, tight))
    return replace(packing, lower_bound_micros_per_hour=bound.for_plan(cost).micros_per_hour)


def _or_simple(problem: PackingProblem, packing: Packing, allowed: frozenset[int]) -> Packing:
    """Return a plan, or the simple packer's where that leaves fewer pods out."""
    if not is_quick(problem, len(packing.nodes) + len(problem.bins)) or not has_few_pairs(problem):
        return packing
    simple = pack_simply(problem, allowed)
    return simple if left_out(simple) < left_out(packing) else packing


def _placed(problem: PackingProblem, packing: Packing) -> list[int]:
    """Return pods per class that have a place."""
    placed = [pod_class.count for pod_class in problem.classes]
    for k, count, _ in packing.unplaced:
        placed[k] -= count
    return placed


def _buy_well(
    problem: PackingProblem,
    demand: Demand,
    kinds: Sequence[MachineKind],
    best: Sequence[MachineKind],
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> _Bought:
    """Return what `_buy` returns, also tried with prices at which fewer nodes are bought."""

    def at_higher_prices(more: Sequence[int]) -> _Bought:
        some = [
            kind._replace(planning_price=kind.planning_price + extra)
            for kind, extra in zip(kinds, more, strict=True)
        ]
        return _buy(problem, demand, some, front(some, problem.limits), counts, search_budget)

    found = _buy(problem, demand, kinds, best, counts, search_budget)
    fee = fee_for_fewer(problem, found[0])
    if fee and not search_budget.ended():
        again = at_higher_prices([fee] * len(kinds))
        if is_better(problem, again[0], found[0]):
            found = again
    for rents in rents_of_limits(problem, found[0], kinds):
        if search_budget.ended():
            break
        again = at_higher_prices(rents)
        found = min(found, again, key=lambda bought: left_out_and_cost(bought[0]))
    return found


def _buy(
    problem: PackingProblem,
    demand: Demand,
    kinds: Sequence[MachineKind],
    best: Sequence[MachineKind],
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> _Bought:
    """Return nodes for the pods, as far as the limits allow. Each class counted fits some kind.

    Also what the last nodes were planned with, and the lower bound for their pods, if it is known:
    without limits these are all nodes.
    """
    limits: Limits = dict(problem.limits)
    nodes: list[PackedNode] = []
    unplaced: list[tuple[int, int, str]] = []
    name = ""
    priced: PricedProblem | None = None
    bound: int | None = None
    left = list(counts)
    offers = list_offers(problem, kinds)
    while any(left):
        later = [0] * len(left)
        if limits:
            usable = within_limits(problem, kinds, limits)
            fitting = housed(left, demand, usable)
            unplaced.extend(
                (k, count, LIMIT) for k, count in enumerate(left) if count and not fitting[k]
            )
            best = front(usable, problem.limits)
            left, later = _for_now(problem, best, limits, fitting)
        if not any(left):
            break
        priced = _make_ground(problem, demand, left, best)
        found = _cover(priced, left) or _search(problem, priced, left, search_budget)
        mix = find_mix(problem, demand, left, best)
        if mix:
            found = roomier(problem, priced, found, left, mix)
        name, bound = found.name, found.tight
        bought, refused, limits = purchase(
            found.priced, found.plan, offers, limits, roomy=name == ROOMY
        )
        nodes.extend(bought)
        left = later
        for entry in refused:
            for k, n in entry.contents:
                left[k] += n
    cost = 0
    for node in nodes:
        shape, pool = node.options[0]
        cost += problem.shapes[shape].pools[pool].price_micros_per_hour
    packing = Packing(
        nodes=tuple(nodes),
        unplaced=tuple(unplaced),
        cost_micros_per_hour=cost,
        lower_bound_micros_per_hour=0,
        candidate=name,
    )
    return packing, priced, bound


def _for_now(
    problem: PackingProblem, kinds: Sequence[MachineKind], limits: Limits, counts: list[int]
) -> tuple[list[int], list[int]]:
    """Return the pods to plan for under some limits, and those to come back to afterwards."""
    if sum(counts) <= _MANY_PODS:
        return counts, [0] * len(counts)
    some = could_be_held(problem, kinds, limits, counts)
    return some, [n - m for n, m in zip(counts, some, strict=True)]


def _cover(priced: PricedProblem, counts: Sequence[int]) -> Found | None:
    """Return the exact answer where the pods are few enough to know it."""
    plan = cover_exactly(priced, counts)
    if plan is None:
        return None
    return Found(priced=priced, plan=plan, name=EXACT, tight=priced.cost(plan))


def _search(
    problem: PackingProblem,
    priced: PricedProblem,
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> Found:
    # A third of the time that loading the packer takes: a cold start with few pods goes without.
    from shared.packing.search.search import search  # noqa: PLC0415

    return search(problem, priced, counts, search_budget)


def _make_ground(
    problem: PackingProblem, demand: Demand, counts: Sequence[int], kinds: Sequence[MachineKind]
) -> PricedProblem:
    settings = problem.settings
    prices = [kind.planning_price for kind in kinds]
    worth = find_prices(demand, counts, kinds, prices)
    priced = make_ground(demand, kinds, worth, prices)
    # Room too much matters little beside many nodes, and much where it is the first one.
    part = settings.leftover_value_percent / 100 * min(len(problem.bins) / _MANY_BINS, 1.0)
    if sum(counts) > settings.small_batch_pods or not part:
        return priced
    # A node's price less what its room is worth: what is used is worth the same on every node.
    prices = [
        max(round(price * (1 - part * ceiling)), 1)
        for price, ceiling in zip(prices, priced.ceilings, strict=True)
    ]
    worth = find_prices(demand, counts, kinds, prices)
    return make_ground(demand, kinds, worth, prices)

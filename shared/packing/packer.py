"""From a problem to a checked plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from shared.packing.best_bound import BoundQuery, best_bound, housed
from shared.packing.bound.free_capacity import FreeCapacities, free_rooms
from shared.packing.bound.resource_prices import ResourcePrices, find_prices
from shared.packing.checker import check
from shared.packing.demand import Demand, read_demand
from shared.packing.exact import EXACT, cover_exactly
from shared.packing.free_nodes import Placements, place_on_bins
from shared.packing.machine_kinds import MachineKind, allowed_shapes, find_kinds, front
from shared.packing.priced_problem import Found, PricedProblem, make_ground
from shared.packing.problem import LIMIT, NO_SHAPE, PackedNode, Packing, PackingProblem
from shared.packing.purchase.headroom import ROOMY, find_mix, place_for_growth, roomier
from shared.packing.purchase.launch_options import list_offers
from shared.packing.purchase.purchase import Limits, could_be_held, purchase, within_limits
from shared.packing.search.budget import OutOfTime, SearchBudget
from shared.packing.search.first_fit import pack_simply

_MANY_BINS: Final = 10
_MANY_PODS: Final = 300  # to plan for fewer is quick, whether or not limits allow it


def pack(
    problem: PackingProblem, out_of_time: OutOfTime | None = None, *, bounded: bool = True
) -> Packing:
    """Return the cheapest plan found, checked.

    The same problem, seed included, gives the same plan. A plan the checker refuses is replaced by
    the simple packer's and says so in `fallback`: that is a bug to report.

    Args:
        problem: What to pack.
        out_of_time: Asked now and then whether to stop looking for a cheaper plan; a plan that was
            cut short says so. Without it only the problem decides how long the search goes on.
        bounded: Whether to compute a lower bound, too; it is 0 otherwise.

    Example:
        >>> pack(PackingProblem(classes=(), shapes=(), compatible=())).nodes
        ()
    """
    packing = plan(problem, SearchBudget(out_of_time), bounded=bounded)
    wrong = check(problem, packing)
    if not wrong:
        return packing
    allowed = frozenset(allowed_shapes(problem, read_demand(problem)))
    return replace(pack_simply(problem, allowed), fallback="; ".join(wrong[:3]))


def plan(
    problem: PackingProblem, search_budget: SearchBudget | None = None, *, bounded: bool = True
) -> Packing:
    """Return the cheapest plan found, unchecked."""
    search_budget = search_budget or SearchBudget()
    demand = read_demand(problem)
    kinds = find_kinds(problem, demand, allowed_shapes(problem, demand), problem.settings)
    counts = [pod_class.count for pod_class in problem.classes]
    fitting = housed(counts, demand, kinds)
    market = _open_market(kinds, problem.limits)
    rooms = free_rooms(problem, demand, counts)
    placements: Placements = ()
    if rooms:
        worth = find_prices(demand, fitting, market.best, market.planning_prices)
        values = [worth.of_class(demand, k) for k in range(len(counts))]
        mix = find_mix(problem, demand, fitting, market.best)
        wise = place_for_growth(problem, demand, counts, mix) if mix else None
        placements = place_on_bins(problem, demand, counts, values) if wise is None else wise
    unplaced = [(k, count, NO_SHAPE) for k, count in enumerate(counts) if count and not fitting[k]]
    for k, _, _ in unplaced:
        counts[k] = 0
    bought = _buy(problem, demand, market, counts, search_budget)
    unplaced.extend(bought.unplaced)
    placed = [pod_class.count for pod_class in problem.classes]
    for k, count, _ in unplaced:
        placed[k] -= count
    worth = bought.worth or find_prices(
        demand, bought.counts, market.plain, [kind.price for kind in market.plain]
    )
    bound = _bound(demand, placed, bought, market, worth, rooms) if bounded else 0
    stranded = 0
    if bought.nodes:
        used = [count - n for count, n in zip(counts, _kept_out(bought, counts), strict=True)]
        stranded = bought.cost - int(sum(n * worth.of_class(demand, k) for k, n in enumerate(used)))
    return Packing(
        nodes=bought.nodes,
        placements=placements,
        unplaced=tuple(sorted(unplaced)),
        cost_micros_per_hour=bought.cost,
        lower_bound_micros_per_hour=min(bound, bought.cost),
        resource_prices_micros_per_hour=_unit_prices(demand, worth),
        stranded_micros_per_hour=max(stranded, 0),
        candidate=bought.name,
        cut_short=search_budget.cut_short,
    )


class _Market(NamedTuple):
    """All kinds, those worth planning with, and those that no other undercuts by true price."""

    kinds: tuple[MachineKind, ...]
    best: tuple[MachineKind, ...]
    planning_prices: tuple[int, ...]
    plain: tuple[MachineKind, ...]


class _Bought(NamedTuple):
    """Nodes, what the limits kept out, and a bound and resource prices where known already."""

    nodes: tuple[PackedNode, ...]
    unplaced: tuple[tuple[int, int, str], ...]
    cost: int
    name: str
    counts: tuple[int, ...]
    bound: int | None
    worth: ResourcePrices | None


def _open_market(kinds: Sequence[MachineKind], limits: Mapping[str, object]) -> _Market:
    best = tuple(front(kinds, limits))
    plain = best
    if limits or any(kind.price != kind.planning_price for kind in kinds):
        plain = tuple(front([kind._replace(planning_price=kind.price) for kind in kinds], {}))
    return _Market(
        kinds=tuple(kinds),
        best=best,
        planning_prices=tuple([kind.planning_price for kind in best]),
        plain=plain,
    )


def _buy(
    problem: PackingProblem,
    demand: Demand,
    market: _Market,
    counts: Sequence[int],
    search_budget: SearchBudget,
) -> _Bought:
    """Return nodes for the pods, as far as the limits allow. Each class counted fits some kind."""
    limits: Limits = dict(problem.limits)
    nodes: list[PackedNode] = []
    unplaced: list[tuple[int, int, str]] = []
    name = ""
    bound: int | None = None
    worth: ResourcePrices | None = None
    left = list(counts)
    offers = list_offers(problem, market.kinds)
    while any(left):
        best, later = market.best, [0] * len(left)
        if limits:
            usable = within_limits(problem, market.kinds, limits)
            fitting = housed(left, demand, usable)
            unplaced.extend(
                (k, count, LIMIT) for k, count in enumerate(left) if count and not fitting[k]
            )
            best = tuple(front(usable, problem.limits))
            left, later = _for_now(problem, best, limits, fitting)
        if not any(left):
            break
        priced = _make_ground(problem, demand, left, best)
        found = _cover(priced, left) or _search(problem, priced, left, search_budget)
        mix = find_mix(problem, demand, left, best)
        if mix:
            found = roomier(problem, priced, found, left, mix)
        roomy = found.name == ROOMY
        bought = purchase(found.priced, found.plan, offers, limits, roomy=roomy)
        if best is market.plain and priced.prices == market.planning_prices:
            bound = priced.cost(found.plan) if found.name == EXACT else found.tight
            worth = worth or priced.worth
        name = found.name
        nodes.extend(bought.nodes)
        limits = bought.limits
        left = later
        for entry in bought.refused:
            for k, n in entry.contents:
                left[k] += n
    cost = 0
    for node in nodes:
        shape, pool = node.options[0]
        cost += problem.shapes[shape].pools[pool].price_micros_per_hour
    return _Bought(
        nodes=tuple(nodes),
        unplaced=tuple(unplaced),
        cost=cost,
        name=name,
        counts=tuple(counts),
        bound=bound,
        worth=worth,
    )


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
    return None if plan is None else Found(priced=priced, plan=plan, name=EXACT, tight=None)


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


def _bound(
    demand: Demand,
    placed: Sequence[int],
    bought: _Bought,
    market: _Market,
    worth: ResourcePrices,
    rooms: FreeCapacities,
) -> int:
    """Return the lower bound by true prices for the pods that are placed."""
    known = bought.bound if not rooms and tuple(placed) == bought.counts else None
    if not any(placed) or (known is not None and bought.name == EXACT):
        return known or 0
    asked = BoundQuery(
        demand=demand,
        counts=housed(placed, demand, market.plain) if rooms else placed,
        kinds=market.kinds,
        plain=market.plain,
        worth=worth,
        rooms=rooms,
        cost=bought.cost,
    )
    return best_bound(asked, known)


def _kept_out(bought: _Bought, counts: Sequence[int]) -> list[int]:
    kept_out = [0] * len(counts)
    for k, count, _ in bought.unplaced:
        kept_out[k] = count
    return kept_out


def _unit_prices(demand: Demand, worth: ResourcePrices) -> tuple[tuple[str, int], ...]:
    """Return the highest worth that a core, a GiB or a piece has to any group of signatures."""
    units = {CPU: 1000, MEMORY: 2**30, EPHEMERAL_STORAGE: 2**30}
    return tuple(
        (name, int(max(values[place] for values in worth.values) * units.get(name, 1)))
        for place, name in enumerate(demand.names)
        if worth.values
    )

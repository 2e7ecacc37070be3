"""The tighter bound, where pods differ in kind: each gets all it asks for from one node.

The programme of `bound` lets a pod take cpu from one machine and memory from another. Here every
kind has resource prices of its own: a pod is worth the least that any kind it fits asks for it,
and no kind's room is worth more than the kind costs. For any such prices, the pods' worth is a
lower bound. Good prices come from a programme over clusters of similar classes, whose columns are
fractional fillings of a kind; a rough programme only makes the bound weaker, never wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from math import log2
from typing import Final

from shared.packing.bound.free_capacity import NO_ROOM, FreeCapacities, FreeCapacity, beyond_rooms
from shared.packing.bound.rounding_cuts import with_whole_nodes
from shared.packing.bound.simplex import best_mix, enter
from shared.packing.demand import Demand
from shared.packing.machine_kinds import MachineKind

_SCALE: Final = 1 << 80
_MOST_CLUSTERS: Final = 40
_FEW_CLUSTERS: Final = 16
_FILLINGS: Final = 900
_MOST_ROWS: Final = 24  # a step of the programme takes the square of its rows
_STEPS: Final = (4.0, 2.0, 1.0, 0.0)  # steps per doubling of memory per cpu that tell classes apart
_FINEST: Final = [(True, _STEPS[0])]


def tighter_bound(
    demand: Demand,
    counts: Sequence[int],
    kinds: Sequence[MachineKind],
    costs: Sequence[int],
    *,
    mix: Sequence[tuple[int, float]] = (),
    rooms: FreeCapacities = NO_ROOM,
) -> int:
    """Return what placing the pods costs at least, in micro-dollars per hour, rounded down.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed; what fits no kind is on the bins.
        kinds: What can be bought; replaceable kinds may be missing.
        costs: Price per kind.
        mix: (kind, how many of it) that the programme of `bound` buys, in parts: where whole
            nodes are more than these, the bound can be better.
        rooms: Room that need not be bought.
    """
    asking = [k for k, count in enumerate(counts) if count]
    if _too_many_proportions(demand, asking):
        return 0
    fits: Mapping[int, int] = {k: kinds_that_fit(demand, k, kinds) for k in asking}
    present = [k for k, mask in fits.items() if mask]
    clusters = _clusters(demand, present, fits)
    if not clusters:
        return 0
    if mix:
        # Pods that may be in free room may need no node of their own.
        inside = {k for room in rooms for k in room.classes}
        alone = {k: mask for k, mask in fits.items() if k not in inside}
        real = len(counts)
        demand, counts, kinds, whole = with_whole_nodes(demand, counts, kinds, alone, mix)
        fits = {**fits, **whole}
        imagined = range(real, len(counts))
        clusters = [*clusters, *([k] for k in imagined)]
        present = [*present, *imagined]
    prices = _kind_prices(demand, counts, clusters, fits, kinds, costs)
    exact = [
        _scaled(price, kind, cost) for price, kind, cost in zip(prices, kinds, costs, strict=True)
    ]
    values = [0] * len(counts)
    for k in present:
        needs = demand.amounts(k)
        values[k] = min(
            [
                sum([exact[t][place] * amount for place, amount in needs])
                for t in range(len(kinds))
                if fits[k] >> t & 1
            ]
        )

    def room_worth(room: FreeCapacity, some: Sequence[int]) -> int | None:
        """Return the most the room is worth at the prices of a kind that fits all these classes."""
        everybody = (1 << len(kinds)) - 1
        for k in some:
            everybody &= fits[k]
        worths = [
            sum([price * amount for price, amount in zip(exact[t], room.amounts, strict=False)])
            for t in range(len(kinds))
            if everybody >> t & 1
        ]
        return min(worths, default=None)

    return beyond_rooms(values, counts, rooms, room_worth) // _SCALE


def kinds_that_fit(demand: Demand, k: int, kinds: Sequence[MachineKind]) -> int:
    """Return the kinds that hold one pod of a class, as a mask."""
    needs, signature = demand.amounts(k), demand.signature[k]
    mask = 0
    for t, kind in enumerate(kinds):
        room = kind.room
        if kind.signatures >> signature & 1 and all(amount <= room[p] for p, amount in needs):
            mask |= 1 << t
    return mask


def _too_many_proportions(demand: Demand, asking: Sequence[int]) -> bool:
    """Return whether the classes are too many clusters whatever kinds they fit.

    Many classes of all proportions without extras: the simpler programme is as good.
    """
    if any(demand.extras[k] for k in asking):
        return False
    return len({_proportion(demand, k, _STEPS[0]) for k in asking}) > _FEW_CLUSTERS


def _proportion(demand: Demand, k: int, steps: float) -> int:
    ratio = log2((demand.memory[k] + 1) / (demand.cpu[k] + 1) / 2**20)
    return round(ratio * steps)


def _clusters(demand: Demand, present: Sequence[int], fits: Mapping[int, int]) -> list[list[int]]:
    """Return similar classes together, as finely as the number of clusters allows."""
    extras = any(demand.extras[k] for k in present)
    most = _MOST_CLUSTERS if extras else _FEW_CLUSTERS
    ways = [(exact, steps) for exact in (True, False) for steps in _STEPS] if extras else _FINEST
    for exact, steps in ways:
        found: dict[tuple[object, ...], list[int]] = {}
        for k in present:
            who = fits[k] if exact else (demand.signature[k], demand.extras[k])
            found.setdefault((who, _proportion(demand, k, steps)), []).append(k)
        if len(found) <= most:
            return list(found.values())
    return []


def _kind_prices(
    demand: Demand,
    counts: Sequence[int],
    clusters: Sequence[Sequence[int]],
    fits: Mapping[int, int],
    kinds: Sequence[MachineKind],
    prices: Sequence[int],
) -> list[list[float]]:
    """Return resource prices per kind, from fractional fillings with whole clusters.

    The rows are the clusters, each needed once; a basis of one filling per cluster is improved
    while some kind can be filled with more worth than it costs.
    """
    tops = [max(column) or 1 for column in zip(*[kind.room for kind in kinds], strict=True)]
    amounts = [_amounts(demand, counts, cluster, tops) for cluster in clusters]
    masks = [_all_fit(cluster, fits) for cluster in clusters]
    room = [[a / top for a, top in zip(kind.room, tops, strict=True)] for kind in kinds]
    fillings = [_best_filling(masks, amounts, t, room[t]) for t in range(len(kinds))]
    size = len(clusters)
    costs = [
        min(
            [
                _per_cluster(amounts[g], room[t]) * prices[t]
                for t in range(len(kinds))
                if mask >> t & 1
            ]
        )
        for g, mask in enumerate(masks)
    ]
    inverse = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    levels = [1.0] * size
    values = list(costs)
    duals: list[list[float]] = [[] for _ in kinds]
    idle = 0
    for number in range(_FILLINGS):
        if idle == len(kinds):
            break
        t = number % len(kinds)
        mix, duals[t] = fillings[t](values)
        worth = sum([values[g] * part for g, part in mix])
        if worth <= prices[t] * (1 + 1e-6):
            idle += 1
            continue
        idle = 0
        leaving = enter(inverse, levels, mix)
        costs[leaving] = float(prices[t])
        values = [
            max(sum([costs[i] * inverse[i][j] for i in range(size)]), 0.0) for j in range(size)
        ]
    if idle < len(kinds):
        duals = [fill(values)[1] for fill in fillings]
    return [[d / top for d, top in zip(dual, tops, strict=True)] for dual in duals]


def _best_filling(
    masks: Sequence[int], amounts: Sequence[Sequence[float]], kind: int, room: Sequence[float]
) -> Callable[[Sequence[float]], tuple[list[tuple[int, float]], list[float]]]:
    """Return a function from the clusters' values to how a kind is filled best.

    That is (cluster, part of it) of the clusters that fit it, and what resources are worth then.
    Where the clusters ask for many resources (each host port is one), those that they take least
    of are worth nothing.
    """
    members = [g for g, mask in enumerate(masks) if mask >> kind & 1]
    asked = [amounts[g] for g in members]
    taken = [sum([entry[i] for entry in asked]) / max(r, 1e-9) for i, r in enumerate(room)]
    scarce = nlargest(_MOST_ROWS, range(len(room)), key=taken.__getitem__)
    places = sorted(i for i in scarce if taken[i])
    columns = [[entry[i] for i in places] for entry in asked]
    rows = [room[i] for i in places]

    def fill(values: Sequence[float]) -> tuple[list[tuple[int, float]], list[float]]:
        mix, found = best_mix([values[g] for g in members], columns, rows)
        duals = [0.0] * len(room)
        for place, dual in zip(places, found, strict=True):
            duals[place] = dual
        return [(members[j], part) for j, part in mix], duals

    return fill


def _amounts(
    demand: Demand, counts: Sequence[int], cluster: Sequence[int], tops: Sequence[int]
) -> list[float]:
    total = [0.0] * len(tops)
    for k in cluster:
        for place, amount in demand.amounts(k):
            total[place] += counts[k] * amount / tops[place]
    return total


def _all_fit(cluster: Sequence[int], fits: Mapping[int, int]) -> int:
    """Return the kinds all classes of a cluster fit, or else those the first one fits."""
    mask = fits[cluster[0]]
    for k in cluster:
        mask &= fits[k]
    return mask or fits[cluster[0]]


def _per_cluster(amounts: Sequence[float], room: Sequence[float]) -> float:
    return max([a / max(r, 1e-9) for a, r in zip(amounts, room, strict=True)])


def _scaled(price: Sequence[float], kind: MachineKind, cost: int) -> list[int]:
    """Return prices in whole parts of a micro-dollar such that the kind's room is worth its cost.

    Rounded down, so never worth more.
    """
    whole = [int(value * _SCALE) for value in price]
    worth = sum([value * amount for value, amount in zip(whole, kind.room, strict=True)])
    if not worth:
        return [0] * len(whole)
    return [value * cost * _SCALE // worth for value in whole]

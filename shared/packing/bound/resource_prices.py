"""What any plan must cost at least, and the prices of resources at that cost.

The linear program: buy fractions of bin types so that, for every signature (set of bin types that a
class may run on) and every resource, what the bin types supply to it covers its demand:

    minimise  sum price(t) x(t)
    subject to  sum over t of y(s,t,r) >= demand(s,r),
                sum over s of y(s,t,r) <= allocatable(t,r) x(t)

Its dual values are resource prices per signature; a bin type must not be worth more than it costs
when each of its resources goes to the signature that pays most. That is all the solver below uses:
a column is a bin type and, per resource, the signature that gets it, and columns are generated when
needed.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from shared.packing.bin_types import BinType
from shared.packing.bound.free_capacity import (
    NO_FREE_CAPACITY,
    FreeCapacities,
    FreeCapacity,
    value_beyond,
)
from shared.packing.bound.linear_program import Column, Rows, solve_linear_program, usable_rows
from shared.packing.demand import Demand
from shared.packing.pooling import alike_signatures, pooled_amounts, pooled_pseudo_resources

_SCALE: Final = 1 << 80
_MAX_SIGNATURES: Final = 12
_MAX_ROWS: Final = 40
_TINY: Final = 1e-9


class ResourcePrices(Struct, frozen=True, kw_only=True):
    """Dual prices: the value of one unit of a resource to a signature, in micro-dollars per hour.

    Attributes:
        group: Per signature of the demand, the group of signatures it was counted in.
        values: Per group, per resource position, the value of one unit.
        mix: (bin type, how many of it the linear program buys), fractions, by bin type.
        shares: Per bin type of the mix, per group, the part of the group's demand that it serves.
        basis: The columns of the solution: bin type, ((signature, resource position), amount) of
            what it serves; a similar linear program starts from them.
    """

    group: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    mix: tuple[tuple[int, float], ...] = ()
    shares: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    basis: tuple[tuple[int, tuple[tuple[tuple[int, int], float], ...]], ...] = ()

    def value_of_class(self, demand: Demand, index: int) -> float:
        """Return the value of one pod of a class."""
        if not self.values:
            return 0.0
        values = self.values[self.group[demand.signature[index]]]
        value = (
            values[0] * demand.cpu[index]
            + values[1] * demand.memory[index]
            + values[2] * demand.pods[index]
        )
        for place, amount in demand.extras[index]:
            value += values[place + 3] * amount
        return value


def find_prices(
    demand: Demand,
    counts: Sequence[int],
    bin_types: Sequence[BinType],
    prices: Sequence[int],
    warm_start: ResourcePrices | None = None,
) -> ResourcePrices:
    """Return the resource prices for the pods that are left.

    Args:
        demand: The classes.
        counts: Pods left per class. Each class counted must fit some bin type.
        bin_types: What can be bought.
        prices: Price per bin type to minimise, above zero.
        warm_start: Those for the same bin types and other counts: faster, and the result is the
            same.
    """
    allocatable = [bin_type.allocatable for bin_type in bin_types]
    home: Sequence[int] = range(len(demand.names))
    rows = _make_rows(demand, counts, bin_types, prices, home, warm_start)
    if len(rows.keys) > _MAX_ROWS:
        home = pooled_pseudo_resources(demand, counts, bin_types)
        allocatable = [pooled_amounts(amounts, home) for amounts in allocatable]
        rows = _make_rows(demand, counts, bin_types, prices, home, warm_start)
    if len(rows.keys) > _MAX_ROWS:
        rows = _most_wanted(rows, allocatable)
    known_columns = _columns_of(warm_start, rows) if warm_start else ()
    duals, bought = solve_linear_program(
        rows, usable_rows(rows, allocatable), allocatable, prices, known_columns
    )
    values = [[0.0] * len(home) for _ in rows.masks]
    for (group, resource), dual in zip(rows.keys, duals, strict=True):
        for place, where in enumerate(home):
            if where == resource:
                values[group][place] = dual
    firsts: dict[int, int] = {}
    for k, count in enumerate(counts):
        if count:
            firsts.setdefault(rows.group[demand.signature[k]], demand.signature[k])
    mix: dict[int, float] = {}
    for level, (bin_type, _) in bought:
        if level > _TINY:
            mix[bin_type] = mix.get(bin_type, 0.0) + level
    return ResourcePrices(
        group=rows.group,
        values=tuple(tuple(value) for value in values),
        mix=tuple(sorted(mix.items())),
        shares=_shares(rows, bought),
        basis=tuple(
            (bin_type, tuple([((firsts[rows.keys[i][0]], rows.keys[i][1]), a) for i, a in column]))
            for _, (bin_type, column) in bought
        ),
    )


def _shares(rows: Rows, bought: Sequence[tuple[float, Column]]) -> dict[int, tuple[float, ...]]:
    """Return per bin type, per group, the part of the group's demand that the bin type serves."""
    served: dict[tuple[int, int], float] = {}
    for level, (bin_type, column) in bought:
        for row, amount in column if level > _TINY else ():
            part = level * amount / rows.amounts[row] if rows.amounts[row] else 0.0
            served[bin_type, row] = served.get((bin_type, row), 0.0) + part
    shares: dict[int, list[float]] = {}
    for (bin_type, row), part in served.items():
        group = rows.keys[row][0]
        parts = shares.setdefault(bin_type, [0.0] * len(rows.masks))
        parts[group] = max(parts[group], part)
    return {bin_type: tuple(parts) for bin_type, parts in shares.items()}


def _columns_of(warm_start: ResourcePrices, rows: Rows) -> list[Column]:
    """Return the columns of another solution in these rows, where open to the bin type."""
    place = {key: i for i, key in enumerate(rows.keys)}
    found: list[Column] = []
    for bin_type, column in warm_start.basis:
        part = {}
        for (signature, resource), amount in column:
            group = rows.group[signature]
            if (group, resource) in place and rows.masks[group] >> bin_type & 1:
                part[place[group, resource]] = amount
        if part:
            found.append((bin_type, sorted(part.items())))
    return found


def lower_bound(
    demand: Demand,
    counts: Sequence[int],
    bin_types: Sequence[BinType],
    dual_prices: ResourcePrices,
    *,
    free_capacities: FreeCapacities = NO_FREE_CAPACITY,
) -> int:
    """Return what placing the pods costs at least, in micro-dollars per hour, rounded down.

    Exact whatever the resource prices are: they are taken as integers and scaled down until no
    bin type is worth more than it costs.

    Args:
        demand: The classes.
        counts: Pods per class, all of them placed.
        bin_types: What can be bought, by true price.
        dual_prices: Resource prices, near the dual optimum for a good bound.
        free_capacities: Capacity that need not be bought.
    """
    if not dual_prices.values:
        return 0
    values = [[int(max(v, 0.0) * _SCALE) for v in value] for value in dual_prices.values]
    present = sorted({demand.signature[k] for k, count in enumerate(counts) if count})
    over, under = _highest_return(bin_types, dual_prices, values, present)
    worths = [0] * len(counts)
    for index, count in enumerate(counts):
        if count:
            row = values[dual_prices.group[demand.signature[index]]]
            worths[index] = sum([row[place] * amount for place, amount in demand.amounts(index)])
    highest: dict[tuple[int, ...], list[int]] = {}

    def value_of_capacity(free: FreeCapacity, some: Sequence[int]) -> int:
        groups = tuple(sorted({dual_prices.group[demand.signature[k]] for k in some}))
        if groups not in highest:
            rows = [values[g] for g in groups]
            highest[groups] = [max(column) for column in zip(*rows, strict=True)]
        return sum([a * top for a, top in zip(free.amounts, highest[groups], strict=False)])

    total = value_beyond(worths, counts, free_capacities, value_of_capacity)
    return max(total * under // (over * _SCALE), 0)


def _highest_return(
    bin_types: Sequence[BinType],
    dual_prices: ResourcePrices,
    values: Sequence[Sequence[int]],
    present: Sequence[int],
) -> tuple[int, int]:
    """Return the largest value per price of any bin type, as a fraction, at least 1.

    The value of a bin type's allocatable is its value to the signatures that have pods.
    """
    over, under = 1, 1
    for bin_type in bin_types:
        groups = sorted({dual_prices.group[s] for s in present if bin_type.signatures >> s & 1})
        most = sum(
            amount * max((values[g][resource] for g in groups), default=0)
            for resource, amount in enumerate(bin_type.allocatable)
            if amount
        )
        if most * under > over * bin_type.price * _SCALE:
            over, under = most, bin_type.price * _SCALE
    return over, under


def _make_rows(
    demand: Demand,
    counts: Sequence[int],
    bin_types: Sequence[BinType],
    prices: Sequence[int],
    home: Sequence[int],
    warm_start: ResourcePrices | None,
) -> Rows:
    sums: dict[int, dict[int, int]] = {}
    for index, count in enumerate(counts):
        if count:
            row = sums.setdefault(demand.signature[index], {})
            for place, amount in demand.amounts(index):
                where = home[place]
                if where >= 0:
                    row[where] = row.get(where, 0) + amount * count
    groups = _kept_groups(sums, warm_start) if warm_start else _groups(sums, bin_types, prices)
    group = [0] * len(demand.masks)
    masks, merged = [], []
    for number, some in enumerate(groups):
        total: dict[int, int] = {}
        mask = 0
        for signature in some:
            group[signature] = number
            mask |= _open_bin_types(bin_types, signature)
            for place, amount in sums[signature].items():
                total[place] = total.get(place, 0) + amount
        masks.append(mask)
        merged.append(total)
    keys = [(g, place) for g, row in enumerate(merged) for place in sorted(row)]
    return Rows(
        group=tuple(group),
        keys=tuple(keys),
        amounts=tuple(merged[g][place] for g, place in keys),
        masks=tuple(masks),
    )


def _groups(
    sums: Mapping[int, Mapping[int, int]], bin_types: Sequence[BinType], prices: Sequence[int]
) -> list[list[int]]:
    """Return the signatures by group, those with most demand first.

    Signatures open to the same bin types, or to bin types with the same allocatable and prices, are
    one group: what is bought for one could be bought for the other, so nothing is lost. When there
    are too many, those with least demand share a group that is open to all their bin types: a
    weaker bound, still a bound.
    """
    by_mask: dict[int, list[int]] = {}
    for signature in sorted(sums):
        by_mask.setdefault(_open_bin_types(bin_types, signature), []).append(signature)
    alike = alike_signatures(
        [many[0] for many in by_mask.values()], bin_types, prices, exactly=True
    )
    groups: dict[int, list[int]] = {}
    for many in by_mask.values():
        groups.setdefault(alike[many[0]], []).extend(many)
    parts = sorted(
        groups.values(), key=lambda some: (-sum([sums[s].get(0, 0) for s in some]), some)
    )
    if len(parts) <= _MAX_SIGNATURES:
        return parts
    rest = [signature for some in parts[_MAX_SIGNATURES - 1 :] for signature in some]
    return [*parts[: _MAX_SIGNATURES - 1], rest]


def _kept_groups(
    sums: Mapping[int, Mapping[int, int]], warm_start: ResourcePrices
) -> list[list[int]]:
    """Return the signatures by group, as in `warm_start`: its columns can be used again."""
    groups: dict[int, list[int]] = {}
    for signature in sorted(sums, key=lambda s: (warm_start.group[s], s)):
        groups.setdefault(warm_start.group[signature], []).append(signature)
    return list(groups.values())


def _open_bin_types(bin_types: Sequence[BinType], signature: int) -> int:
    return sum(
        [1 << t for t, bin_type in enumerate(bin_types) if bin_type.signatures >> signature & 1]
    )


def _most_wanted(rows: Rows, allocatable: Sequence[Sequence[int]]) -> Rows:
    """Return the rows that need most nodes: the others are left out, which is still a bound."""
    largest = [max(column) for column in zip(*allocatable, strict=True)]
    rank = {
        key: amount / max(largest[key[1]], 1)
        for key, amount in zip(rows.keys, rows.amounts, strict=True)
    }
    kept = sorted(sorted(rank, key=lambda key: (-rank[key], key))[:_MAX_ROWS])
    amounts = dict(zip(rows.keys, rows.amounts, strict=True))
    return rows._replace(keys=tuple(kept), amounts=tuple([amounts[key] for key in kept]))

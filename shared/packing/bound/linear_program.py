"""Linear programs by the simplex method: small ones, the bound's by resources, and a single step.

The bound's covers what groups of pods need of each resource. The step is all that the linear
program over patterns needs besides.
"""

from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple

_TINY: Final = 1e-11  # an amount below this is a rounding error, and no pivot
# Rounding can make the method cycle: after so many steps the solution found so far is returned.
_MOST_STEPS: Final = 60
_MOST_STEPS_PER_ROW: Final = 40


class Rows(NamedTuple):
    """Rows: (group, resource), their demand, and per group a mask of the bin types open to it."""

    group: tuple[int, ...]
    keys: tuple[tuple[int, int], ...]
    amounts: tuple[int, ...]
    masks: tuple[int, ...]


Column = tuple[int, Sequence[tuple[int, float]]]  # a bin type, and (row, amount) that it supplies


class Usable(NamedTuple):
    """What bin types supply to the rows.

    Attributes:
        rows: Sets of rows that compete for a resource of some bin type, each set once.
        supplies: Per bin type, for each resource that some row needs: the amount, and the number of
            the set of rows that may use it.
    """

    rows: Sequence[tuple[int, ...]]
    supplies: Sequence[Sequence[tuple[int, int]]]


def usable_rows(rows: Rows, allocatable: Sequence[Sequence[int]]) -> Usable:
    """Return what each bin type supplies to the rows."""
    by_resource: dict[int, list[tuple[int, int]]] = {}
    for i, (g, place) in enumerate(rows.keys):
        by_resource.setdefault(place, []).append((g, i))
    numbers: dict[tuple[int, ...], int] = {}
    found = []
    for number, amounts in enumerate(allocatable):
        supplies = []
        for place, some in by_resource.items():
            open_rows = tuple(i for g, i in some if rows.masks[g] >> number & 1)
            if amounts[place] and open_rows:
                supplies.append((amounts[place], numbers.setdefault(open_rows, len(numbers))))
        found.append(supplies)
    return Usable(list(numbers), found)


def solve_linear_program(
    rows: Rows,
    usable: Usable,
    allocatable: Sequence[Sequence[int]],
    prices: Sequence[int],
    warm_start: Sequence[Column] = (),
) -> tuple[list[float], list[tuple[float, Column]]]:
    """Return the dual price of each row, and the columns bought, each after its level.

    By the revised simplex method; a column is a bin type and, per resource, the row that gets it,
    and columns are generated as needed. Those of the solution of a similar program, `warm_start`,
    are tried first: they are few, and nearly all that is needed. Rows are scaled so that the
    largest bin type has 1 of everything; the inverse of the basis is kept in full, as there are few
    rows.
    """
    size = len(rows.keys)
    if not size:
        return [], []
    largest = [
        max(of_bin_type[place] for of_bin_type in allocatable) or 1 for _, place in rows.keys
    ]
    duals, inverse, chosen = _start(rows, usable, prices, largest)
    columns: list[list[tuple[int, float]]] = [[(i, 1.0 / inverse[i][i])] for i in range(size)]
    amounts = [a / top for a, top in zip(rows.amounts, largest, strict=True)]
    levels = [inverse[i][i] * amounts[i] for i in range(size)]
    warm_columns = [
        (bin_type, [(i, a / largest[i]) for i, a in column]) for bin_type, column in warm_start
    ]
    for _ in range(_MOST_STEPS_PER_ROW * size):
        found = _known_column(warm_columns, prices, duals) if warm_columns else None
        if found is None:
            warm_columns = []
            found = _best_column(usable, prices, duals, largest)
            if found is None:
                break
        cost, column, bin_type = found
        leaving = enter_column(inverse, levels, column)
        if leaving < 0:
            break
        chosen[leaving] = bin_type
        columns[leaving] = column
        gain = cost - sum([duals[j] * a for j, a in column])
        duals = [d + gain * b for d, b in zip(duals, inverse[leaving], strict=True)]
    dual_prices = [max(d, 0.0) / top for d, top in zip(duals, largest, strict=True)]
    return dual_prices, [
        (level, (bin_type, [(i, amount * largest[i]) for i, amount in column]))
        for bin_type, level, column in zip(chosen, levels, columns, strict=True)
        if bin_type >= 0
    ]


def _known_column(
    warm_start: Sequence[Column], prices: Sequence[int], duals: Sequence[float]
) -> tuple[float, list[tuple[int, float]], int] | None:
    """Return the known column of the highest value per cost, if worth more than it costs."""
    worths = [
        sum([duals[i] * a for i, a in column]) / prices[bin_type] for bin_type, column in warm_start
    ]
    best = worths.index(max(worths))
    if worths[best] <= 1.0 + 1e-9:
        return None
    bin_type, column = warm_start[best]
    return float(prices[bin_type]), list(column), bin_type


def _start(
    rows: Rows,
    usable: Usable,
    prices: Sequence[int],
    largest: list[int],
) -> tuple[list[float], list[list[float]], list[int]]:
    """Return duals, inverse and bin types of a first basis: each row's cheapest bin type.

    A row that no bin type can serve gets an artificial column; its classes do not fit anywhere. No
    other row gets one: it would be cheaper than small bin types with a high price per unit.
    """
    size = len(rows.keys)
    best = [(0.0, 0.0, -1)] * size
    for number, price in enumerate(map(float, prices)):
        for amount, some in usable.supplies[number]:
            for i in usable.rows[some]:
                share = amount / largest[i]
                if best[i][2] < 0 or price * best[i][1] < best[i][0] * share:
                    best[i] = (price, share, number)
    best = [entry if entry[2] >= 0 else (4.0 * max(prices), 1.0, -1) for entry in best]
    inverse = [[0.0] * size for _ in range(size)]
    for i, (_, share, _) in enumerate(best):
        inverse[i][i] = 1.0 / share
    duals = [cost / share for cost, share, _ in best]
    return duals, inverse, [number for _, _, number in best]


def _best_column(
    usable: Usable, prices: Sequence[int], duals: list[float], largest: list[int]
) -> tuple[float, list[tuple[int, float]], int] | None:
    """Return cost, entries and bin type of the column of the highest value per cost, or None.

    None if none is worth more than it costs. The bin type is -1 for slack, which has no cost.
    Trying all bin types takes a sixth of the steps that taking the first good one does (measured
    with 250 workloads and 394 bin types, 2026-11-26).
    """
    worst = min(range(len(duals)), key=duals.__getitem__)
    if duals[worst] < -1e-9 * max(prices):
        return 0.0, [(worst, -1.0)], -1
    values = [d / top for d, top in zip(duals, largest, strict=True)]
    takers = [max(some, key=values.__getitem__) for some in usable.rows]
    worths = [values[i] for i in takers]
    shares = [
        sum([amount * worths[some] for amount, some in supplies]) / price
        for supplies, price in zip(usable.supplies, prices, strict=True)
    ]
    best = shares.index(max(shares))
    if shares[best] <= 1.0 + 1e-9:
        return None
    column = [
        (takers[some], amount / largest[takers[some]]) for amount, some in usable.supplies[best]
    ]
    return float(prices[best]), column, best


def solve_by_simplex(
    values: Sequence[float],
    columns: Sequence[Sequence[float]],
    capacity: Sequence[float],
    upper_bounds: Sequence[float] = (),
) -> tuple[list[tuple[int, float]], list[float]]:
    """Return the optimal levels of columns, and the dual price of each row.

    Maximises v a where R a <= c and a <= m. Starts with everything unused; the inverse of the
    basis is kept in full, as there are few rows.

    Args:
        values: Value per column.
        columns: Per column, what it takes of each row.
        capacity: What there is of each row, at least zero.
        upper_bounds: Of each column; empty for any amount. Where given, the solution is exact if
            each row has a slack column without value.
    """
    size = len(capacity)
    tops = upper_bounds or [inf] * len(values)
    inverse = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    levels = [float(amount) for amount in capacity]
    basis = [-1] * size
    duals = [0.0] * size
    full: set[int] = set()  # columns outside of the basis at their upper bound
    for _ in range(_MOST_STEPS + len(upper_bounds)):
        reduced_costs = _reduced_costs(values, columns, duals)
        if full:
            reduced_costs = [-gain if j in full else gain for j, gain in enumerate(reduced_costs)]
        entering = max(range(len(reduced_costs)), key=reduced_costs.__getitem__, default=-1)
        if entering < 0 or reduced_costs[entering] <= 1e-9 * max(values):
            break
        if not upper_bounds:
            leaving = enter_column(inverse, levels, list(enumerate(columns[entering])))
            if leaving < 0:
                break
        else:
            step = _times(inverse, list(enumerate(columns[entering])))
            change = [-amount for amount in step] if entering in full else step
            ends = [tops[j] if j >= 0 else inf for j in basis]
            leaving, part = _first_to_leave(levels, change, ends)
            if min(part, tops[entering]) == inf:
                break
            if leaving < 0 or tops[entering] < part:
                _move(levels, change, tops[entering])
                full ^= {entering}
                continue
            _pivot(inverse, levels[:], step, leaving)
            _move(levels, change, part)
            levels[leaving] = tops[entering] - part if entering in full else part
            if change[leaving] < 0.0:
                full.add(basis[leaving])
            full.discard(entering)
        basis[leaving] = entering
        duals = _dual_prices([values[j] if j >= 0 else 0.0 for j in basis], inverse)
        if not upper_bounds:
            duals = [max(dual, 0.0) for dual in duals]
    mix = [(j, level) for j, level in zip(basis, levels, strict=True) if j >= 0 and level > 0.0]
    return sorted([*mix, *[(j, tops[j]) for j in full]]), [max(dual, 0.0) for dual in duals]


def _dual_prices(values: Sequence[float], inverse: Sequence[Sequence[float]]) -> list[float]:
    """Return the dual price of each row, by the values of the columns in the basis."""
    return [
        sum([w * row[j] for w, row in zip(values, inverse, strict=True)])
        for j in range(len(inverse))
    ]


def _first_to_leave(
    levels: Sequence[float], change: Sequence[float], ends: Sequence[float]
) -> tuple[int, float]:
    """Return the row whose level reaches 0 or its end first, -1 for none, and the step length."""
    leaving, least = -1, inf
    for i, amount in enumerate(change):
        if amount > _TINY:
            part = levels[i] / amount
        elif amount < -_TINY:
            part = (ends[i] - levels[i]) / -amount
        else:
            continue
        if part < least:
            leaving, least = i, part
    return leaving, least


def _move(levels: list[float], change: Sequence[float], part: float) -> None:
    for i, amount in enumerate(change):
        if amount:
            levels[i] -= amount * part


def _times(inverse: Sequence[Sequence[float]], column: Sequence[tuple[int, float]]) -> list[float]:
    return [sum([row[j] * amount for j, amount in column]) for row in inverse]


def _reduced_costs(
    values: Sequence[float], columns: Sequence[Sequence[float]], duals: Sequence[float]
) -> Sequence[float]:
    """Return each column's value beyond what it takes: only a few rows have a dual price."""
    dear = [(j, d) for j, d in enumerate(duals) if d]
    if not dear:
        return values
    if len(dear) == 1:
        ((i, d),) = dear
        return [v - d * column[i] for v, column in zip(values, columns, strict=True)]
    if len(dear) == 2:
        (i, d), (j, e) = dear
        return [
            v - (d * column[i] + e * column[j]) for v, column in zip(values, columns, strict=True)
        ]
    return [
        v - sum([d * column[i] for i, d in dear]) for v, column in zip(values, columns, strict=True)
    ]


def enter_column(
    inverse: list[list[float]], levels: list[float], column: Sequence[tuple[int, float]]
) -> int:
    """Enter a column into the basis; return the row of the one that leaves, -1 where none can.

    Args:
        inverse: Of the basis; changed.
        levels: Level of each column in the basis; changed.
        column: (row, amount), each row at most once.
    """
    step = _times(inverse, column)
    leaving, least = -1, 0.0
    for i, amount in enumerate(step):
        if amount > _TINY and (leaving < 0 or levels[i] / amount < least):
            leaving, least = i, levels[i] / amount
    if leaving >= 0:
        _pivot(inverse, levels, step, leaving)
    return leaving


def _pivot(
    inverse: list[list[float]], levels: list[float], step: Sequence[float], leaving: int
) -> None:
    factor = step[leaving]
    row = [value / factor for value in inverse[leaving]]
    inverse[leaving] = row
    levels[leaving] /= factor
    some = [(j, value) for j, value in enumerate(row) if value]
    few = len(some) * 3 < len(row)
    for i, amount in enumerate(step):
        if i != leaving and amount:
            if few:
                # Mostly zeros, as at the start of a large linear program: the other entries stay.
                changed = inverse[i]
                for j, value in some:
                    changed[j] -= amount * value
            else:
                inverse[i] = [a - amount * b for a, b in zip(inverse[i], row, strict=True)]
            levels[i] -= amount * levels[leaving]

"""The simplex step that all linear programs here share, and a solver for small ones."""

from collections.abc import Sequence
from math import inf
from typing import Final

_TINY: Final = 1e-11
_MOST_STEPS: Final = 60  # rounding can make the method cycle


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

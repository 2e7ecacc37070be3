"""The step of the simplex method that all linear programmes here share, and a small programme."""

from collections.abc import Sequence
from typing import Final

_TINY: Final = 1e-11
_MOST_STEPS: Final = 60  # rounding can make the method turn in circles


def best_mix(
    values: Sequence[float], columns: Sequence[Sequence[float]], room: Sequence[float]
) -> tuple[list[tuple[int, float]], list[float]]:
    """Return the best fractions, and what one unit of each row is worth: maximise v a, R a <= c.

    Starts with everything unused; the inverse of the basis is kept in full, as there are few rows.

    Args:
        values: Worth per column.
        columns: Per column, what it takes of each row.
        room: What there is of each row, at least zero.
    """
    size = len(room)
    inverse = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    levels = [float(amount) for amount in room]
    basis = [-1] * size
    duals = [0.0] * size
    for _ in range(_MOST_STEPS):
        gains = _gains(values, columns, duals)
        entering = max(range(len(gains)), key=gains.__getitem__, default=-1)
        if entering < 0 or gains[entering] <= 1e-9 * max(values):
            break
        leaving = enter(inverse, levels, list(enumerate(columns[entering])))
        if leaving < 0:
            break
        basis[leaving] = entering
        worth = [values[j] if j >= 0 else 0.0 for j in basis]
        duals = [
            max(sum([w * row[j] for w, row in zip(worth, inverse, strict=True)]), 0.0)
            for j in range(size)
        ]
    mix = [(j, level) for j, level in zip(basis, levels, strict=True) if j >= 0 and level > 0.0]
    return sorted(mix), duals


def _gains(
    values: Sequence[float], columns: Sequence[Sequence[float]], duals: Sequence[float]
) -> Sequence[float]:
    """Return each column's worth beyond what it takes: at most a few rows are worth anything."""
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


def enter(
    inverse: list[list[float]], levels: list[float], column: Sequence[tuple[int, float]]
) -> int:
    """Bring a column into the basis; return the row of the one that leaves, -1 where none can.

    Args:
        inverse: Of the basis; changed.
        levels: How much there is of each column in the basis; changed.
        column: (row, amount), each row at most once.
    """
    step = [sum([row[j] * amount for j, amount in column]) for row in inverse]
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
                # Mostly zeros, as at the beginning of a large programme: the others stay.
                changed = inverse[i]
                for j, value in some:
                    changed[j] -= amount * value
            else:
                inverse[i] = [a - amount * b for a, b in zip(inverse[i], row, strict=True)]
            levels[i] -= amount * levels[leaving]

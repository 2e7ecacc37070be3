"""The linear programme behind the bound: cover what groups of pods need of each resource."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.packing.market import Kind
from shared.packing.simplex import pivot

_WINDOW: Final = 48
_MOST_STEPS: Final = 40  # per row: rounding can make the method turn in circles


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of the programme: (group, resource), their demand, and who may use which kind."""

    group: tuple[int, ...]
    keys: tuple[tuple[int, int], ...]
    amounts: tuple[int, ...]
    by_resource: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    masks: tuple[int, ...]


def usable_rows(rows: Rows, kinds: Sequence[Kind]) -> list[list[tuple[int, tuple[int, ...]]]]:
    """Return per kind (amount, rows that may have it) for each resource some row wants."""
    found = []
    for number, kind in enumerate(kinds):
        ways = []
        for place, some in rows.by_resource:
            open_rows = tuple(i for g, i in some if rows.masks[g] >> number & 1)
            if kind.room[place] and open_rows:
                ways.append((kind.room[place], open_rows))
        found.append(ways)
    return found


def solve(
    rows: Rows,
    usable: list[list[tuple[int, tuple[int, ...]]]],
    kinds: Sequence[Kind],
    prices: Sequence[int],
) -> tuple[list[float], dict[int, float], dict[tuple[int, int], float]]:
    """Return dual values, how many of each kind, and the part of each row each kind serves.

    By the revised simplex method; a column is a kind and, per resource, the row that gets it, and
    columns are found as needed.
    Rows are scaled so that the largest machine has 1 of everything; the inverse of the basis is
    kept in full, as there are few rows.
    """
    size = len(rows.keys)
    if not size:
        return [], {}, {}
    largest = [max(kind.room[place] for kind in kinds) or 1 for _, place in rows.keys]
    duals, inverse, chosen = _start(rows, usable, kinds, prices, largest)
    columns: list[list[tuple[int, float]]] = [[(i, 1.0 / inverse[i][i])] for i in range(size)]
    amounts = [a / top for a, top in zip(rows.amounts, largest, strict=True)]
    levels = [inverse[i][i] * amounts[i] for i in range(size)]
    start = 0
    for _ in range(_MOST_STEPS * size):
        found = _good_column(usable, prices, duals, largest, start)
        if found is None:
            break
        cost, column, kind = found
        start = max(kind, 0)
        step = [sum([row[j] * a for j, a in column]) for row in inverse]
        leaving, least = -1, 0.0
        for i, amount in enumerate(step):
            if amount > 1e-9 and (leaving < 0 or levels[i] / amount < least):
                leaving, least = i, levels[i] / amount
        if leaving < 0:
            break
        pivot(inverse, levels, step, leaving)
        chosen[leaving] = kind
        columns[leaving] = column
        gain = cost - sum([duals[j] * a for j, a in column])
        duals = [d + gain * b for d, b in zip(duals, inverse[leaving], strict=True)]
    mix: dict[int, float] = {}
    served: dict[tuple[int, int], float] = {}
    for kind, level, column in zip(chosen, levels, columns, strict=True):
        if kind >= 0 and level > 1e-9:
            mix[kind] = mix.get(kind, 0.0) + level
            for row, amount in column:
                part = level * amount / amounts[row] if amounts[row] else 0.0
                served[kind, row] = served.get((kind, row), 0.0) + part
    return [max(d, 0.0) / top for d, top in zip(duals, largest, strict=True)], mix, served


def _start(
    rows: Rows,
    usable: list[list[tuple[int, tuple[int, ...]]]],
    kinds: Sequence[Kind],
    prices: Sequence[int],
    largest: list[int],
) -> tuple[list[float], list[list[float]], list[int]]:
    """Return duals, inverse and kinds of a first basis: each row's cheapest kind.

    A row nobody can serve gets a dear machine of its own; its classes do not fit anywhere.
    """
    size = len(rows.keys)
    best = [(4.0 * max(prices), 1.0, -1)] * size
    for number in range(len(kinds)):
        price = float(prices[number])
        for amount, some in usable[number]:
            for i in some:
                share = amount / largest[i]
                if price * best[i][1] < best[i][0] * share:
                    best[i] = (price, share, number)
    inverse = [[0.0] * size for _ in range(size)]
    for i, (_, share, _) in enumerate(best):
        inverse[i][i] = 1.0 / share
    duals = [cost / share for cost, share, _ in best]
    return duals, inverse, [number for _, _, number in best]


def _good_column(
    usable: list[list[tuple[int, tuple[int, ...]]]],
    prices: Sequence[int],
    duals: list[float],
    largest: list[int],
    start: int,
) -> tuple[float, list[tuple[int, float]], int] | None:
    """Return cost, entries and kind of a column that is worth more than it costs, or None.

    Kinds are looked at a window at a time, from `start` on; the one worth most per cost in the
    first window that has any is taken. The kind is -1 for surplus, which has no cost.
    """
    values = [d / top for d, top in zip(duals, largest, strict=True)]
    worst = min(range(len(duals)), key=duals.__getitem__)
    if duals[worst] < -1e-9 * max(prices):
        return 0.0, [(worst, -1.0)], -1
    best, chosen = 1.0 + 1e-9, -1
    order = [*range(start, len(usable)), *range(start)]
    for position, number in enumerate(order):
        if chosen >= 0 and position % _WINDOW == 0:
            break
        total = 0.0
        for amount, some in usable[number]:
            total += amount * (
                values[some[0]] if len(some) == 1 else max([values[i] for i in some])
            )
        if total > best * prices[number]:
            best, chosen = total / prices[number], number
    if chosen < 0:
        return None
    column = []
    for amount, some in usable[chosen]:
        i = max(some, key=values.__getitem__)
        column.append((i, amount / largest[i]))
    return float(prices[chosen]), column, chosen

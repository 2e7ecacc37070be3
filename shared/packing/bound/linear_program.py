"""The linear programme behind the bound: cover what groups of pods need of each resource."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.packing.bound.simplex import enter

_MOST_STEPS: Final = 40  # per row: rounding can make the method turn in circles


class Rows(NamedTuple):
    """Rows of the programme: (group, resource), their demand, and who may use which kind."""

    group: tuple[int, ...]
    keys: tuple[tuple[int, int], ...]
    amounts: tuple[int, ...]
    masks: tuple[int, ...]


Column = tuple[int, Sequence[tuple[int, float]]]  # a kind, and (row, amount) of what it gives


class Usable(NamedTuple):
    """What kinds have for the rows.

    Attributes:
        rows: Rows that compete for a resource of some kind, each set of them once.
        ways: Per kind, for each resource that some row wants: the amount, and the number of the
            rows that may have it.
    """

    rows: Sequence[tuple[int, ...]]
    ways: Sequence[Sequence[tuple[int, int]]]


def usable_rows(rows: Rows, rooms: Sequence[Sequence[int]]) -> Usable:
    """Return what each kind has for the rows."""
    by_resource: dict[int, list[tuple[int, int]]] = {}
    for i, (g, place) in enumerate(rows.keys):
        by_resource.setdefault(place, []).append((g, i))
    numbers: dict[tuple[int, ...], int] = {}
    found = []
    for number, room in enumerate(rooms):
        ways = []
        for place, some in by_resource.items():
            open_rows = tuple(i for g, i in some if rows.masks[g] >> number & 1)
            if room[place] and open_rows:
                ways.append((room[place], numbers.setdefault(open_rows, len(numbers))))
        found.append(ways)
    return Usable(list(numbers), found)


def solve(
    rows: Rows,
    usable: Usable,
    rooms: Sequence[Sequence[int]],
    prices: Sequence[int],
    known: Sequence[Column] = (),
) -> tuple[list[float], list[tuple[float, Column]]]:
    """Return per row the worth of one unit, and the columns bought, each with how many of it.

    By the revised simplex method; a column is a kind and, per resource, the row that gets it, and
    columns are found as needed. Those of the solution of a similar programme, `known`, are tried
    first: they are few, and nearly all that is needed.
    Rows are scaled so that the largest machine has 1 of everything; the inverse of the basis is
    kept in full, as there are few rows.
    """
    size = len(rows.keys)
    if not size:
        return [], []
    largest = [max(room[place] for room in rooms) or 1 for _, place in rows.keys]
    duals, inverse, chosen = _start(rows, usable, prices, largest)
    columns: list[list[tuple[int, float]]] = [[(i, 1.0 / inverse[i][i])] for i in range(size)]
    amounts = [a / top for a, top in zip(rows.amounts, largest, strict=True)]
    levels = [inverse[i][i] * amounts[i] for i in range(size)]
    first = [(kind, [(i, a / largest[i]) for i, a in column]) for kind, column in known]
    for _ in range(_MOST_STEPS * size):
        found = _known_column(first, prices, duals) if first else None
        if found is None:
            first = []
            found = _best_column(usable, prices, duals, largest)
            if found is None:
                break
        cost, column, kind = found
        leaving = enter(inverse, levels, column)
        if leaving < 0:
            break
        chosen[leaving] = kind
        columns[leaving] = column
        gain = cost - sum([duals[j] * a for j, a in column])
        duals = [d + gain * b for d, b in zip(duals, inverse[leaving], strict=True)]
    worth = [max(d, 0.0) / top for d, top in zip(duals, largest, strict=True)]
    return worth, [
        (level, (kind, [(i, amount * largest[i]) for i, amount in column]))
        for kind, level, column in zip(chosen, levels, columns, strict=True)
        if kind >= 0
    ]


def _known_column(
    known: Sequence[Column], prices: Sequence[int], duals: Sequence[float]
) -> tuple[float, list[tuple[int, float]], int] | None:
    """Return the known column worth most per cost, if worth more than it costs."""
    worths = [sum([duals[i] * a for i, a in column]) / prices[kind] for kind, column in known]
    best = worths.index(max(worths))
    if worths[best] <= 1.0 + 1e-9:
        return None
    kind, column = known[best]
    return float(prices[kind]), list(column), kind


def _start(
    rows: Rows,
    usable: Usable,
    prices: Sequence[int],
    largest: list[int],
) -> tuple[list[float], list[list[float]], list[int]]:
    """Return duals, inverse and kinds of a first basis: each row's cheapest kind.

    A row that no kind can serve gets a machine of its own; its classes do not fit anywhere. No
    other row gets one: it would be cheaper than small machines with a high price per unit.
    """
    size = len(rows.keys)
    best = [(0.0, 0.0, -1)] * size
    for number, price in enumerate(map(float, prices)):
        for amount, some in usable.ways[number]:
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
    """Return cost, entries and kind of the column worth most per cost, or None.

    None if none is worth more than it costs. The kind is -1 for surplus, which has no cost. To
    look at all kinds takes a sixth of the steps that the first good one would, as it was measured
    (250 workloads, 394 kinds, 2026-11-26).
    """
    worst = min(range(len(duals)), key=duals.__getitem__)
    if duals[worst] < -1e-9 * max(prices):
        return 0.0, [(worst, -1.0)], -1
    values = [d / top for d, top in zip(duals, largest, strict=True)]
    takers = [max(some, key=values.__getitem__) for some in usable.rows]
    worths = [values[i] for i in takers]
    shares = [
        sum([amount * worths[some] for amount, some in ways]) / price
        for ways, price in zip(usable.ways, prices, strict=True)
    ]
    best = shares.index(max(shares))
    if shares[best] <= 1.0 + 1e-9:
        return None
    column = [(takers[some], amount / largest[takers[some]]) for amount, some in usable.ways[best]]
    return float(prices[best]), column, best

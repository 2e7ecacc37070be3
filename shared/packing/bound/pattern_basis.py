"""The programme over patterns: which are in use, and what one pod of each class is worth.

    minimise  sum price(p) x(p)   subject to  sum of p's pods of class k times x(p) >= count(k)

over patterns p, each a kind and a load. Patterns are found as needed: a load that is worth more
than its kind costs enters the basis (column generation by the revised simplex method; Source:
Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", Operations
Research 9, 1961, https://doi.org/10.1287/opre.9.6.849, read 2026-11-28).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.packing.bound.simplex import enter


@dataclass(slots=True)
class PatternBasis:
    """Patterns in use, one per class, the inverse of their matrix, and what classes are worth.

    Attributes:
        inverse: Of the matrix of the patterns, a row per class.
        levels: How many nodes of each pattern there are, in parts.
        patterns: (kind, pods by class); kind -1 for surplus.
        values: Worth of one pod, by class of the problem; 0 for classes without a row.
        rows: The row of each class.
    """

    inverse: list[list[float]]
    levels: list[float]
    patterns: list[tuple[int, dict[int, int]]]
    values: list[float]
    rows: dict[int, int]

    def enter(self, kind: int, taken: Mapping[int, int], gain: float) -> None:
        """Bring a pattern in; `gain` is its price less its worth, below zero."""
        sign = -1 if kind < 0 else 1  # surplus takes pods away
        column = [(self.rows[k], sign * n) for k, n in taken.items()]
        leaving = enter(self.inverse, self.levels, column)
        if leaving < 0:
            return
        self.patterns[leaving] = (kind, dict(taken))
        change = self.inverse[leaving]
        for k, place in self.rows.items():
            self.values[k] += gain * change[place]

    def drop_surplus(self, least_price: int) -> int:
        """Let surplus in where one more pod of a class would lower the price; return how often."""
        least = -1e-6 * least_price
        for times in range(len(self.rows)):
            worst = min(self.rows, key=lambda k: (self.values[k], k))
            if self.values[worst] >= least:
                return times
            self.enter(-1, {worst: 1}, self.values[worst])
        return len(self.rows)


def first_basis(counts: Sequence[int], alone: Mapping[int, tuple[float, int, int]]) -> PatternBasis:
    """Return a basis of nodes with one class each.

    Args:
        counts: Pods per class.
        alone: Per class with a row: what a pod of it costs so, the kind, pods of it per node.
    """
    inverse = [[0.0] * len(alone) for _ in alone]
    values = [0.0] * len(counts)
    levels, patterns = [], []
    for row, (k, (price, kind, n)) in enumerate(alone.items()):
        inverse[row][row] = 1.0 / n
        values[k] = price
        levels.append(counts[k] / n)
        patterns.append((kind, {k: n}))
    return PatternBasis(inverse, levels, patterns, values, {k: row for row, k in enumerate(alone)})

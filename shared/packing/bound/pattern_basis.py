"""The linear program over patterns: which are in use, and the value of a pod of each class.

    minimise  sum price(p) x(p)   subject to  sum of p's pods of class k times x(p) >= count(k)

over patterns p, each a bin type and a load. Patterns are found as needed: a load that is worth more
than its bin type costs enters the basis (column generation by the revised simplex method; Source:
Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", Operations
Research 9, 1961, https://doi.org/10.1287/opre.9.6.849, read 2026-11-28).
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from shared.packing.bound.linear_program import enter_column


class PatternBasis(Struct):
    """Patterns in use, one per class, the inverse of their matrix, and the classes' dual prices.

    Attributes:
        inverse: Of the matrix of the patterns, a row per class.
        levels: How many nodes of each pattern there are, in fractions.
        patterns: (bin type, pods by class); bin type -1 for slack.
        dual_prices: Value of one pod, by class of the problem; 0 for classes without a row.
        rows: The row of each class.
    """

    inverse: list[list[float]]
    levels: list[float]
    patterns: list[tuple[int, dict[int, int]]]
    dual_prices: list[float]
    rows: dict[int, int]

    def enter(self, bin_type: int, taken: Mapping[int, int], reduced_cost: float) -> None:
        """Enter a pattern; `reduced_cost` is its price less its value, below zero."""
        sign = -1 if bin_type < 0 else 1  # slack takes pods away
        column = [(self.rows[k], sign * n) for k, n in taken.items()]
        leaving = enter_column(self.inverse, self.levels, column)
        if leaving < 0:
            return
        self.patterns[leaving] = (bin_type, dict(taken))
        change = self.inverse[leaving]
        for k, place in self.rows.items():
            self.dual_prices[k] += reduced_cost * change[place]

    def add_slack_columns(self, least_price: int) -> int:
        """Add slack columns with negative reduced cost; return how many."""
        least = -1e-6 * least_price
        for times in range(len(self.rows)):
            worst = min(self.rows, key=lambda k: (self.dual_prices[k], k))
            if self.dual_prices[worst] >= least:
                return times
            self.enter(-1, {worst: 1}, self.dual_prices[worst])
        return len(self.rows)


def first_basis(counts: Sequence[int], alone: Mapping[int, tuple[float, int, int]]) -> PatternBasis:
    """Return a basis of nodes with one class each.

    Args:
        counts: Pods per class.
        alone: Per class with a row: price per pod, bin type, pods per node.
    """
    inverse = [[0.0] * len(alone) for _ in alone]
    values = [0.0] * len(counts)
    levels, patterns = [], []
    for row, (k, (price, bin_type, n)) in enumerate(alone.items()):
        inverse[row][row] = 1.0 / n
        values[k] = price
        levels.append(counts[k] / n)
        patterns.append((bin_type, {k: n}))
    return PatternBasis(inverse, levels, patterns, values, {k: row for row, k in enumerate(alone)})

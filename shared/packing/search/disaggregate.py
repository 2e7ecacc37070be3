"""Disaggregation: assign real pods and a zone to each node of the aggregated plan.

The aggregated plan says how many pods of each coarse class a node gets; here the node gets a place
(a zone, for example) and real pods that may run there. Pseudo resources, which stand for rules such
as one pod of a kind on each node, count as its other resources do. Pods that fit nowhere are left
over.
"""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Pattern, PricedProblem
from shared.packing.search.aggregate import AggregatedProblem

_NEARLY_FULL: Final = 0.9
_DEARER: Final = 1.1


class _UnplacedPods:
    """Pods that are not assigned yet, by coarse class and place."""

    def __init__(
        self, priced: PricedProblem, aggregated: AggregatedProblem, counts: list[int]
    ) -> None:
        self.priced = priced
        self.left = counts
        self.places = sorted({bin_type.signatures for bin_type in priced.bin_types})
        signature = priced.demand.signature
        self.where = [
            [z for z, mask in enumerate(self.places) if mask >> value & 1] for value in signature
        ]
        # Pods with the fewest places first: the others can still go elsewhere.
        self.candidates = [
            [
                sorted((k for k in some if z in self.where[k]), key=lambda k: len(self.where[k]))
                for some in aggregated.members
            ]
            for z in range(len(self.places))
        ]
        self.unplaced = [
            [sum([counts[k] for k in some]) for some in classes_by_coarse]
            for classes_by_coarse in self.candidates
        ]
        self.only_here = [0] * len(self.places)
        self.coarse_class = [0] * len(counts)
        for which, some in enumerate(aggregated.members):
            for k in some:
                self.coarse_class[k] = which
        for k, places in enumerate(self.where):
            if len(places) == 1:
                self.only_here[places[0]] += counts[k]
        # The most of each pseudo resource that any bin type of the place has. Whether that of the
        # node has as much is checked at the end.
        columns = range(3, len(priced.demand.names))
        self.pseudo_capacity = [
            [
                max(
                    [
                        bin_type.allocatable[p]
                        for bin_type in priced.bin_types
                        if bin_type.signatures == mask
                    ]
                )
                for p in columns
            ]
            for mask in self.places
        ]

    def assign(self, k: int, n: int) -> None:
        """Assign some pods of a class; a negative number takes them back."""
        self.left[k] -= n
        for z in self.where[k]:
            self.unplaced[z][self.coarse_class[k]] -= n
        if len(self.where[k]) == 1:
            self.only_here[self.where[k][0]] -= n

    def best_places(self, contents: Sequence[tuple[int, int]]) -> list[int]:
        """Return the places, those first where most of the contents can be assigned."""
        filled = [
            sum([min(n, standing[which]) for which, n in contents]) for standing in self.unplaced
        ]
        return sorted(range(len(filled)), key=lambda z: (-filled[z], -self.only_here[z], z))

    def fill(self, place: int, contents: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Return how many real pods of each class a node of these contents gets; take them away."""
        extras, left, where = self.priced.demand.extras, self.left, self.where
        free = list(self.pseudo_capacity[place])
        taken: dict[int, int] = {}
        for which, wanted in contents:
            n = wanted
            while n:
                best, most, narrow = -1, 0, 0
                for k in self.candidates[place][which]:
                    if best >= 0 and len(where[k]) > narrow:
                        break
                    if left[k] > most and all(a <= free[p] for p, a in extras[k]):
                        best, most, narrow = k, left[k], len(where[k])
                if best < 0:
                    break
                many = min([n, most, *[free[p] // a for p, a in extras[best]]])
                for p, a in extras[best]:
                    free[p] -= a * many
                taken[best] = taken.get(best, 0) + many
                self.assign(best, many)
                n -= many
        return taken


def disaggregate(
    priced: PricedProblem,
    aggregated: AggregatedProblem,
    patterns: Sequence[Pattern],
    counts: Sequence[int],
) -> tuple[list[Pattern], list[int]]:
    """Return nodes with real pods, and the pods per class that are left over.

    Args:
        priced: The whole problem.
        aggregated: The aggregated problem that the plan is for.
        patterns: The nodes of that plan.
        counts: Pods per class.
    """
    unplaced = _UnplacedPods(priced, aggregated, list(counts))
    placed: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for item in sorted(
        patterns,
        key=lambda entry: (
            -aggregated.priced.prices[entry.bin_type],
            entry.bin_type,
            entry.contents,
        ),
    ):
        price = aggregated.priced.prices[item.bin_type]
        coarse_value = sum([aggregated.priced.values[k] * n for k, n in item.contents])
        for _ in range(item.copies):
            node = _place_node(unplaced, item, price, coarse_value)
            if node is None:
                break
            placed[node] = placed.get(node, 0) + 1
    nodes = [
        Pattern(bin_type=bin_type, contents=contents, copies=copies)
        for (bin_type, contents), copies in sorted(placed.items())
    ]
    return nodes, unplaced.left


def _place_node(
    unplaced: _UnplacedPods, pattern: Pattern, price: int, coarse_value: float
) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    priced = unplaced.priced
    for place in unplaced.best_places(pattern.contents):
        taken = unplaced.fill(place, pattern.contents)
        value = sum([priced.values[k] * n for k, n in taken.items()])
        contents = tuple(sorted(taken.items()))
        needs, signatures = priced.needs(contents)
        bin_type = priced.cheapest(needs, signatures) if contents else -1
        if bin_type >= 0 and value * price >= _NEARLY_FULL * coarse_value * priced.prices[bin_type]:
            return bin_type, contents
        for k, n in taken.items():
            unplaced.assign(k, -n)
    return None

"""Seating: which pods exactly go on the nodes of a coarse plan, and where each node stands.

A coarse plan says how many pods of a size a node gets; here the node gets a place (a zone, say)
and pods that may be there, no slot being used twice. What finds no seat is left over.
"""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.search.aggregate import AggregatedProblem

_NEARLY_FULL: Final = 0.9
_DEARER: Final = 1.1


class _IdenticalNodes:
    """Pods still standing, by coarse class and place, and how many there are."""

    def __init__(
        self, priced: PricedProblem, aggregated: AggregatedProblem, counts: list[int]
    ) -> None:
        self.priced = priced
        self.left = counts
        self.places = sorted({kind.signatures for kind in priced.kinds})
        signature = priced.demand.signature
        self.where = [
            [z for z, mask in enumerate(self.places) if mask >> value & 1] for value in signature
        ]
        # Pods with the fewest places first: the others can still go elsewhere.
        self.seats = [
            [
                sorted((k for k in some if z in self.where[k]), key=lambda k: len(self.where[k]))
                for some in aggregated.members
            ]
            for z in range(len(self.places))
        ]
        self.standing = [[sum([counts[k] for k in some]) for some in seats] for seats in self.seats]
        self.bound = [0] * len(self.places)
        self.home = [0] * len(counts)
        for which, some in enumerate(aggregated.members):
            for k in some:
                self.home[k] = which
        for k, places in enumerate(self.where):
            if len(places) == 1:
                self.bound[places[0]] += counts[k]
        # The most slots any kind there has; whether the kind bought has them is seen at the end.
        columns = range(3, len(priced.demand.names))
        self.slots = [
            [
                max([kind.room[p] for kind in priced.kinds if kind.signatures == mask])
                for p in columns
            ]
            for mask in self.places
        ]

    def take(self, k: int, n: int) -> None:
        """Seat some pods of a class; a negative number stands up again."""
        self.left[k] -= n
        for z in self.where[k]:
            self.standing[z][self.home[k]] -= n
        if len(self.where[k]) == 1:
            self.bound[self.where[k][0]] -= n

    def best_places(self, contents: Sequence[tuple[int, int]]) -> list[int]:
        """Return the places, those first where most of the seats can be filled."""
        filled = [
            sum([min(n, standing[which]) for which, n in contents]) for standing in self.standing
        ]
        return sorted(range(len(filled)), key=lambda z: (-filled[z], -self.bound[z], z))

    def fill(self, place: int, contents: Sequence[tuple[int, int]]) -> dict[int, int]:
        """Return the pods that take the seats; they are no longer standing."""
        extras, left, where = self.priced.demand.extras, self.left, self.where
        free = list(self.slots[place])
        taken: dict[int, int] = {}
        for which, wanted in contents:
            n = wanted
            while n:
                best, most, narrow = -1, 0, 0
                for k in self.seats[place][which]:
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
                self.take(best, many)
                n -= many
        return taken


def seat(
    priced: PricedProblem,
    aggregated: AggregatedProblem,
    plan: Sequence[Planned],
    counts: Sequence[int],
) -> tuple[list[Planned], list[int]]:
    """Return nodes with pods on them, and the pods per class that found no seat.

    Args:
        priced: The whole problem.
        aggregated: The coarse problem the plan is for.
        plan: Its nodes.
        counts: Pods per class.
    """
    hall = _IdenticalNodes(priced, aggregated, list(counts))
    seated: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for item in sorted(
        plan, key=lambda entry: (-aggregated.priced.prices[entry.kind], entry.kind, entry.contents)
    ):
        price = aggregated.priced.prices[item.kind]
        worth = sum([aggregated.priced.values[k] * n for k, n in item.contents])
        for _ in range(item.copies):
            node = _seat_one(hall, item, price, worth)
            if node is None:
                break
            seated[node] = seated.get(node, 0) + 1
    nodes = [
        Planned(kind=kind, contents=contents, copies=copies)
        for (kind, contents), copies in sorted(seated.items())
    ]
    return nodes, hall.left


def _seat_one(
    hall: _IdenticalNodes, planned: Planned, price: int, worth: float
) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    priced = hall.priced
    for place in hall.best_places(planned.contents):
        taken = hall.fill(place, planned.contents)
        value = sum([priced.values[k] * n for k, n in taken.items()])
        contents = tuple(sorted(taken.items()))
        needs, signatures = priced.needs(contents)
        kind = priced.cheapest(needs, signatures) if contents else -1
        if kind >= 0 and value * price >= _NEARLY_FULL * worth * priced.prices[kind]:
            return kind, contents
        for k, n in taken.items():
            hall.take(k, -n)
    return None

"""Moving pods to other nodes, one at a time or in exchange for another, where that costs less.

Nodes that are filled one after the other each suit the pods that were left. A single pod may be all
that keeps a node from being smaller, and may fit on another node at no cost, or in place of a
smaller pod.
"""

from collections.abc import Callable, Sequence
from typing import Final

from shared.packing.priced_problem import Pattern, PricedProblem
from shared.packing.search.local_search import merge_equal

# An evaluation computes what a node with one pod more or less costs: some ten microseconds.
_EVALUATIONS_PER_DOLLAR: Final = 1_500
_MOST_EVALUATIONS: Final = 20_000
_MOST_NODES: Final = 300
_MOST_PASSES: Final = 8
_DOLLAR: Final = 1_000_000
_NONE: Final = -1


class _MutableNode:
    """A node of a plan.

    Attributes:
        contents: Pods by class.
        needs: Amounts by resource.
        price_without: What the node would cost without one pod, by class.
        price_with: What it would cost with one pod more, by class; None where no bin type holds
            that.
        without: Amounts and signatures without one pod, by class; -1 for no class.
    """

    __slots__ = ("bin_type", "contents", "needs", "price", "price_with", "price_without", "without")

    def __init__(self, priced: PricedProblem, pattern: Pattern) -> None:
        self.contents = dict(pattern.contents)
        self.needs = priced.needs(pattern.contents)[0]
        self.bin_type = pattern.bin_type
        self.price = priced.prices[pattern.bin_type]
        self.price_without: dict[int, int] = {}
        self.price_with: dict[int, int | None] = {}
        self.without: dict[int, tuple[list[int], int]] = {}

    def bin_type_after(self, priced: PricedProblem, removed: int, added: int) -> int:
        """Return the cheapest bin type after one pod is removed and another one added.

        Args:
            priced: Classes and bin types.
            removed: Class of the removed pod; -1 for none.
            added: Class of the added pod; -1 for none.

        Returns:
            -1 where no bin type holds that.
        """
        return priced.cheapest(*self._after(priced, removed, added))

    def change(self, priced: PricedProblem, removed: int, added: int) -> None:
        """Remove one pod of a class and add one of another; -1 for none."""
        self.needs, signatures = self._after(priced, removed, added)
        bin_type = priced.cheapest(self.needs, signatures)
        for k, pods in ((removed, -1), (added, 1)):
            if k != _NONE:
                count = self.contents.get(k, 0) + pods
                if count:
                    self.contents[k] = count
                else:
                    del self.contents[k]
        if self.contents:
            self.bin_type, self.price = bin_type, priced.prices[bin_type]
        else:
            self.price = 0
        self.price_without, self.price_with, self.without = {}, {}, {}

    def _after(self, priced: PricedProblem, removed: int, added: int) -> tuple[list[int], int]:
        """Return amounts and signatures after one pod is removed and another one added."""
        known = self.without.get(removed)
        if known is None:
            known = self.without[removed] = self._without(priced, removed)
        if added == _NONE:
            return known
        needs, signatures = list(known[0]), known[1]
        for place, amount in priced.demand.amounts(added):
            needs[place] += amount
        return needs, signatures | 1 << priced.demand.signature[added]

    def _without(self, priced: PricedProblem, removed: int) -> tuple[list[int], int]:
        needs = list(self.needs)
        for place, amount in priced.demand.amounts(removed) if removed != _NONE else ():
            needs[place] -= amount
        signatures = 0
        for present, count in self.contents.items():
            if present != removed or count > 1:
                signatures |= 1 << priced.demand.signature[present]
        return needs, signatures


class _Relocation:
    """A plan while its pods are moved."""

    def __init__(self, priced: PricedProblem, nodes: list[_MutableNode], evaluations: int) -> None:
        self.priced = priced
        self.nodes = nodes
        self.evaluations = evaluations

    def run(self) -> None:
        """Move pods until nothing saves anything, or evaluations or passes are used up.

        Pods are exchanged once no single move saves anything.
        """
        for _ in range(_MOST_PASSES):
            if not (self._pass(self._move) or self._pass(self._exchange)):
                break

    def _pass(self, attempt: Callable[[_MutableNode, int], bool]) -> bool:
        """Attempt a change of one pod of each class on each node; return whether any succeeded."""
        found = False
        for node in self.nodes:
            for k in sorted(node.contents):
                # Earlier moves may have changed what the node holds.
                if self.evaluations > 0 and k in node.contents and attempt(node, k):
                    found = True
        return found

    def _move(self, node: _MutableNode, k: int) -> bool:
        """Move a pod to the node where it costs least, if that is less than it costs here."""
        saved = node.price - self._price_without(node, k)
        least_added, destination = saved, None
        for other in self.nodes if saved > 0 else ():
            if other is node or not other.contents:
                continue
            price = self._price_with(other, k)
            if price is not None and price - other.price < least_added:
                least_added, destination = price - other.price, other
        if destination is None:
            return False
        node.change(self.priced, k, _NONE)
        destination.change(self.priced, _NONE, k)
        return True

    def _exchange(self, node: _MutableNode, k: int) -> bool:
        """Exchange a pod for a smaller one of another node, where that saves most."""
        # No exchange saves more on this node than leaving the pod out.
        most = node.price - self._price_without(node, k)
        best, chosen = 0, None
        for other in self.nodes:
            for j in other.contents if other is not node and best < most else ():
                saved = self._saved_by_exchange(node, k, other, j, best)
                if saved > best:
                    best, chosen = saved, (other, j)
        if chosen is None:
            return False
        other, j = chosen
        node.change(self.priced, k, j)
        other.change(self.priced, j, k)
        return True

    def _saved_by_exchange(
        self, node: _MutableNode, k: int, other: _MutableNode, j: int, enough: int
    ) -> int:
        """Return what an exchange saves; 0 where it cannot save more than `enough`."""
        priced = self.priced
        larger = priced.cpu[j] >= priced.cpu[k] and priced.memory[j] >= priced.memory[k]
        if larger or self.evaluations <= 0:
            return 0
        self.evaluations -= 1
        bin_type = node.bin_type_after(priced, k, j)
        saved = node.price - priced.prices[bin_type] if bin_type >= 0 else 0
        # The other node gets the larger pod: it does not become cheaper in most cases.
        if saved <= enough:
            return 0
        self.evaluations -= 1
        bin_type = other.bin_type_after(priced, j, k)
        return saved + other.price - priced.prices[bin_type] if bin_type >= 0 else 0

    def _price_without(self, node: _MutableNode, k: int) -> int:
        if k not in node.price_without:
            self.evaluations -= 1
            bin_type = node.bin_type_after(self.priced, k, _NONE)
            node.price_without[k] = (
                self.priced.prices[bin_type] if sum(node.contents.values()) > 1 else 0
            )
        return node.price_without[k]

    def _price_with(self, node: _MutableNode, k: int) -> int | None:
        if k not in node.price_with:
            if self.evaluations <= 0:
                return None
            self.evaluations -= 1
            bin_type = node.bin_type_after(self.priced, _NONE, k)
            node.price_with[k] = self.priced.prices[bin_type] if bin_type >= 0 else None
        return node.price_with[k]


def relocate(priced: PricedProblem, patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return a plan for the same pods that is no more expensive.

    The number of moves tried grows with the price of the plan.
    """
    count = sum(entry.copies for entry in patterns)
    if count > _MOST_NODES:
        return list(patterns)
    nodes = [_MutableNode(priced, entry) for entry in patterns for _ in range(entry.copies)]
    evaluations = min(priced.cost(patterns) * _EVALUATIONS_PER_DOLLAR // _DOLLAR, _MOST_EVALUATIONS)
    _Relocation(priced, nodes, evaluations).run()
    return merge_equal(
        [
            Pattern(bin_type=node.bin_type, contents=tuple(sorted(node.contents.items())))
            for node in nodes
            if node.contents
        ]
    )

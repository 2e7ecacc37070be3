"""Moving pods to other nodes, one at a time or in exchange for another, where that costs less.

Nodes that are filled one after the other are each good for what was left. The last pod on one of
them may be all that keeps it from being of a smaller size, and may fit beside others at no price,
or in the place of a smaller pod.
"""

from collections.abc import Callable, Sequence
from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.search.local_search import gather

# A question is what a node with one pod more or less costs. It takes some ten microseconds.
_QUESTIONS_PER_DOLLAR: Final = 1_500
_MOST_QUESTIONS: Final = 20_000
_MOST_NODES: Final = 300
_MOST_PASSES: Final = 8
_DOLLAR: Final = 1_000_000
_NONE: Final = -1


class _Node:
    """A node of a plan.

    Attributes:
        contents: Pods by class.
        needs: Amounts by resource.
        less: What the node would cost without one pod, by class.
        more: What it would cost with one pod more, by class; None where no kind holds that.
    """

    __slots__ = ("contents", "kind", "less", "more", "needs", "price")

    def __init__(self, priced: PricedProblem, planned: Planned) -> None:
        self.contents = dict(planned.contents)
        self.needs = priced.needs(planned.contents)[0]
        self.kind = planned.kind
        self.price = priced.prices[planned.kind]
        self.less: dict[int, int] = {}
        self.more: dict[int, int | None] = {}

    def kind_with(self, priced: PricedProblem, gone: int, come: int) -> int:
        """Return the cheapest kind with one pod of a class less and one of another more.

        Args:
            priced: Classes and kinds.
            gone: Class of the pod that leaves; -1 for none.
            come: Class of the pod that comes; -1 for none.

        Returns:
            -1 where no kind holds that.
        """
        mask = 0
        for present, count in self.contents.items():
            if present != gone or count > 1:
                mask |= 1 << priced.demand.signature[present]
        if come != _NONE:
            mask |= 1 << priced.demand.signature[come]
        return priced.cheapest(self._amounts(priced, gone, come), mask)

    def change(self, priced: PricedProblem, gone: int, come: int) -> None:
        """Let one pod of a class leave and one of another come; -1 for none."""
        kind = self.kind_with(priced, gone, come)
        self.needs = self._amounts(priced, gone, come)
        for k, pods in ((gone, -1), (come, 1)):
            if k != _NONE:
                count = self.contents.get(k, 0) + pods
                if count:
                    self.contents[k] = count
                else:
                    del self.contents[k]
        if self.contents:
            self.kind, self.price = kind, priced.prices[kind]
        else:
            self.price = 0
        self.less, self.more = {}, {}

    def _amounts(self, priced: PricedProblem, gone: int, come: int) -> list[int]:
        needs = list(self.needs)
        for k, pods in ((gone, -1), (come, 1)):
            if k != _NONE:
                for place, amount in priced.demand.amounts(k):
                    needs[place] += pods * amount
        return needs


class _Relocation:
    """A plan while its pods are moved."""

    def __init__(self, priced: PricedProblem, nodes: list[_Node], questions: int) -> None:
        self.priced = priced
        self.nodes = nodes
        self.questions = questions

    def run(self) -> None:
        """Move pods until nothing saves anything, all questions are asked, or passes are done.

        Pods are exchanged once no move of one alone saves anything.
        """
        for _ in range(_MOST_PASSES):
            if not (self._pass(self._move) or self._pass(self._exchange)):
                break

    def _pass(self, attempt: Callable[[_Node, int], bool]) -> bool:
        """Attempt something with a pod of each class on each node; return whether any did it."""
        found = False
        for node in self.nodes:
            for k in sorted(node.contents):
                # What was moved to the node or off it changed what it holds.
                if self.questions > 0 and k in node.contents and attempt(node, k):
                    found = True
        return found

    def _move(self, node: _Node, k: int) -> bool:
        """Move a pod to the node where it costs least, if that is less than it costs here."""
        saved = node.price - self._less(node, k)
        best, target = saved, None
        for other in self.nodes if saved > 0 else ():
            if other is node or not other.contents:
                continue
            price = self._more(other, k)
            if price is not None and price - other.price < best:
                best, target = price - other.price, other
        if target is None:
            return False
        node.change(self.priced, k, _NONE)
        target.change(self.priced, _NONE, k)
        return True

    def _exchange(self, node: _Node, k: int) -> bool:
        """Exchange a pod for one of another node that asks for less, where most is saved."""
        if node.price <= self._less(node, k):
            return False
        best, chosen = 0, None
        for other in self.nodes:
            for j in other.contents if other is not node else ():
                saved = self._saved_by_exchange(node, k, other, j, best)
                if saved > best:
                    best, chosen = saved, (other, j)
        if chosen is None:
            return False
        other, j = chosen
        node.change(self.priced, k, j)
        other.change(self.priced, j, k)
        return True

    def _saved_by_exchange(self, node: _Node, k: int, other: _Node, j: int, enough: int) -> int:
        """Return what an exchange saves; 0 where it cannot save more than `enough`."""
        priced = self.priced
        larger = priced.cpu[j] >= priced.cpu[k] and priced.memory[j] >= priced.memory[k]
        if larger or self.questions <= 0:
            return 0
        self.questions -= 1
        kind = node.kind_with(priced, k, j)
        saved = node.price - priced.prices[kind] if kind >= 0 else 0
        # The other node gets the larger pod: it does not become cheaper in most cases.
        if saved <= enough:
            return 0
        self.questions -= 1
        kind = other.kind_with(priced, j, k)
        return saved + other.price - priced.prices[kind] if kind >= 0 else 0

    def _less(self, node: _Node, k: int) -> int:
        if k not in node.less:
            self.questions -= 1
            kind = node.kind_with(self.priced, k, _NONE)
            node.less[k] = self.priced.prices[kind] if sum(node.contents.values()) > 1 else 0
        return node.less[k]

    def _more(self, node: _Node, k: int) -> int | None:
        if k not in node.more:
            if self.questions <= 0:
                return None
            self.questions -= 1
            kind = node.kind_with(self.priced, _NONE, k)
            node.more[k] = self.priced.prices[kind] if kind >= 0 else None
        return node.more[k]


def relocate(priced: PricedProblem, plan: Sequence[Planned]) -> list[Planned]:
    """Return a plan for the same pods that is no more expensive.

    How many moves are looked at grows with the price of the plan.
    """
    count = sum(entry.copies for entry in plan)
    if count > _MOST_NODES:
        return list(plan)
    nodes = [_Node(priced, entry) for entry in plan for _ in range(entry.copies)]
    questions = min(priced.cost(plan) * _QUESTIONS_PER_DOLLAR // _DOLLAR, _MOST_QUESTIONS)
    _Relocation(priced, nodes, questions).run()
    return gather(
        [
            Planned(kind=node.kind, contents=tuple(sorted(node.contents.items())))
            for node in nodes
            if node.contents
        ]
    )

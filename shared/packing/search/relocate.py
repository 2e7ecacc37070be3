"""Moving one pod at a time to another node, where that makes its old node cheaper than the new one.

Nodes that are filled one after the other are each good for what was left. The last pod on one of
them may be all that keeps it from being of a smaller size, and may fit beside others at no price.
"""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.search.local_search import gather

# A question is what a node with one pod more or less costs. It takes some ten microseconds.
_QUESTIONS_PER_DOLLAR: Final = 1_500
_MOST_QUESTIONS: Final = 20_000
_MOST_NODES: Final = 300
_MOST_PASSES: Final = 8
_DOLLAR: Final = 1_000_000


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

    def amounts(self, priced: PricedProblem, k: int, pods: int) -> list[int]:
        """Return the amounts with some pods of a class more, or less."""
        needs = list(self.needs)
        needs[0] += pods * priced.cpu[k]
        needs[1] += pods * priced.memory[k]
        needs[2] += pods * priced.pods[k]
        for place, amount in priced.demand.extras[k]:
            needs[place + 3] += pods * amount
        return needs

    def signatures(self, priced: PricedProblem, k: int, pods: int) -> int:
        """Return who must be allowed on the node then, as a mask."""
        mask = 0
        for present, count in self.contents.items():
            if present != k or count + pods > 0:
                mask |= 1 << priced.demand.signature[present]
        return mask | 1 << priced.demand.signature[k] if pods > 0 else mask

    def change(self, priced: PricedProblem, k: int, pods: int) -> None:
        """Put one pod of a class on the node, or take one off."""
        self.needs = self.amounts(priced, k, pods)
        count = self.contents.get(k, 0) + pods
        if count:
            self.contents[k] = count
        else:
            del self.contents[k]
        if self.contents:
            self.kind = priced.cheapest(self.needs, self.signatures(priced, k, 0))
            self.price = priced.prices[self.kind]
        else:
            self.price = 0
        self.less, self.more = {}, {}


class _Relocation:
    """A plan while its pods are moved."""

    def __init__(self, priced: PricedProblem, nodes: list[_Node], questions: int) -> None:
        self.priced = priced
        self.nodes = nodes
        self.questions = questions

    def run(self) -> None:
        """Move pods until no move saves anything, all questions are asked, or passes are done."""
        moved, passes = True, 0
        while moved and self.questions > 0 and passes < _MOST_PASSES:
            moved, passes = False, passes + 1
            for node in self.nodes:
                for k in sorted(node.contents):
                    # What was moved to the node or off it changed what it holds.
                    if k in node.contents and self._move(node, k):
                        moved = True

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
        node.change(self.priced, k, -1)
        target.change(self.priced, k, 1)
        return True

    def _less(self, node: _Node, k: int) -> int:
        if k not in node.less:
            self.questions -= 1
            signatures = node.signatures(self.priced, k, -1)
            kind = self.priced.cheapest(node.amounts(self.priced, k, -1), signatures)
            node.less[k] = self.priced.prices[kind] if signatures else 0
        return node.less[k]

    def _more(self, node: _Node, k: int) -> int | None:
        if k not in node.more:
            if self.questions <= 0:
                return None
            self.questions -= 1
            signatures = node.signatures(self.priced, k, 1)
            kind = self.priced.cheapest(node.amounts(self.priced, k, 1), signatures)
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

"""The fewest nodes, and large: what schedulers that look at one pod at a time end up with.

Pods go in by falling size, each to the emptiest node (by pods) that some kind could still make
large enough; only then does price choose the kind. Good in small batches, where one roomy node is
hard to beat, and a guarantee that no plan costs more than that of such a scheduler.
"""

from collections.abc import Sequence

from shared.packing.priced_problem import Planned, PricedProblem


class _Open:
    """A node being filled, and the kinds that could still hold it."""

    def __init__(self, number: int, kinds: list[int], size: int) -> None:
        self.number = number
        self.kinds = kinds
        self.used = [0] * size
        self.pods = 0
        self.contents: dict[int, int] = {}


def fewest_nodes(
    priced: PricedProblem, counts: Sequence[int], largest: Sequence[int]
) -> list[Planned]:
    """Return a plan of few nodes. Each class counted must fit some kind.

    Args:
        priced: Classes and kinds.
        counts: Pods per class.
        largest: Of `largest_kinds`.
    """
    demand = priced.demand
    order = sorted(
        (k for k, count in enumerate(counts) if count),
        key=lambda k: (-priced.cpu[k], -priced.memory[k], k),
    )
    opened: list[_Open] = []
    for k in order:
        needs = demand.amounts(k)
        bit = 1 << demand.signature[k]
        usable = [t for t in largest if priced.kinds[t].signatures & bit]
        left = counts[k]
        while left:
            left -= _add(priced, opened, needs, usable, (k, left))
    plan = []
    for node in opened:
        contents = tuple(sorted(node.contents.items()))
        needs_all, signatures = priced.needs(contents)
        plan.append(Planned(kind=priced.cheapest(needs_all, signatures), contents=contents))
    return plan


def largest_kinds(priced: PricedProblem) -> list[int]:
    """Return the kinds that no other one exceeds in everything: what fits any fits one of them."""
    found: list[int] = []
    for t in sorted(range(len(priced.kinds)), key=lambda t: (-sum(priced.kinds[t].room), t)):
        one = priced.kinds[t]
        if not any(
            not one.signatures & ~priced.kinds[o].signatures
            and all(a >= b for a, b in zip(priced.kinds[o].room, one.room, strict=True))
            for o in found
        ):
            found.append(t)
    return found


def _add(
    priced: PricedProblem,
    opened: list[_Open],
    needs: list[tuple[int, int]],
    usable: list[int],
    wanted: tuple[int, int],
) -> int:
    """Put some pods of a class on the emptiest node that takes them; return how many."""
    k, left = wanted
    opened.sort(key=lambda node: (node.pods, node.number))
    allowed = set(usable)
    for position, node in enumerate(opened):
        later = opened[position + 1].pods if position + 1 < len(opened) else None
        # The node stays the emptiest until it has more pods than the next one.
        turn = left if later is None else max(later - node.pods, 0) + 1
        fits = [(_room_for(priced, t, node.used, needs), t) for t in node.kinds if t in allowed]
        most = max((n for n, _ in fits), default=0)
        n = min(turn, most, left)
        if n:
            _commit(node, fits, needs, (k, n))
            return n
    node = _Open(len(opened), usable, len(priced.demand.names))
    fits = [(_room_for(priced, t, node.used, needs), t) for t in usable]
    n = min(max(many for many, _ in fits), left)
    _commit(node, fits, needs, (k, n))
    opened.append(node)
    return n


def _commit(
    node: _Open, fits: list[tuple[int, int]], needs: list[tuple[int, int]], added: tuple[int, int]
) -> None:
    k, n = added
    node.kinds = [t for many, t in fits if many >= n]
    node.pods += n
    node.contents[k] = node.contents.get(k, 0) + n
    for place, amount in needs:
        node.used[place] += amount * n


def _room_for(
    priced: PricedProblem, kind: int, used: list[int], needs: list[tuple[int, int]]
) -> int:
    room = priced.kinds[kind].room
    return min([(room[place] - used[place]) // amount for place, amount in needs], default=1)

"""Launch groups, few of them: nodes of one kind are bought in one call; kinds are merged."""

from collections.abc import Sequence
from typing import Final

from shared.packing.ground import Ground, Planned

_NEVER: Final = 1 << 62


def merge_kinds(ground: Ground, plan: Sequence[Planned], most: int) -> list[Planned]:
    """Return the plan with at most `most` kinds, some nodes being larger than they need to be.

    The kind is given up whose nodes cost least to move to the kinds that stay, until few enough
    are left or nothing can move any more.
    """
    used = sorted({one.kind for one in plan})
    costs = [_moves(ground, one, used) for one in plan]
    home = [one.kind for one in plan]
    while len(used) > most:
        best: tuple[int, int] | None = None
        for kind in used:
            total = 0
            for position, one in enumerate(plan):
                if home[position] == kind:
                    move = _cheapest_move(costs[position], used, kind)
                    total += (costs[position].get(move, _NEVER) - ground.prices[kind]) * one.copies
            if best is None or (total, kind) < best:
                best = (total, kind)
        assert best is not None
        if best[0] >= _NEVER // 2:
            break
        for position in range(len(plan)):
            if home[position] == best[1]:
                home[position] = _cheapest_move(costs[position], used, best[1])
        used.remove(best[1])
    return [
        Planned(kind=kind, contents=one.contents, copies=one.copies)
        for kind, one in zip(home, plan, strict=True)
    ]


def _moves(ground: Ground, one: Planned, used: Sequence[int]) -> dict[int, int]:
    """Return the price of each used kind that holds a node's contents."""
    needs, signatures = ground.needs(one.contents)
    found = {}
    for number in used:
        kind = ground.kinds[number]
        if not signatures & ~kind.signatures and all(
            a <= b for a, b in zip(needs, kind.room, strict=True)
        ):
            found[number] = ground.prices[number]
    return found


def _cheapest_move(costs: dict[int, int], used: Sequence[int], but: int) -> int:
    ways = [(costs[kind], kind) for kind in used if kind != but and kind in costs]
    return min(ways)[1] if ways else -1

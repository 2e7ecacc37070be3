"""The ending of a plan: its last nodes, where fractions no longer help and all kinds are tried."""

from collections.abc import Sequence

from shared.packing.priced_problem import Planned, PricedProblem, commit, narrow
from shared.packing.search.fill_node import Filling, Rules, fill

_GROWTH = 1.004
_ALMOST = 0.999999


def build_ending(
    priced: PricedProblem, counts: Sequence[int], rules: Rules, limit: int
) -> list[Planned] | None:
    """Return nodes for all the pods, or None when they would cost `limit` (0 for any) or more.

    After each node it is seen what it would cost to end with one or two nodes; the cheapest end
    is taken.
    """
    present = [k for k, count in enumerate(counts) if count]
    if len(present) * 2 > len(counts):
        return _end(priced, list(counts), rules, limit)
    plan = _end(narrow(priced, present), [counts[k] for k in present], rules, limit)
    if plan is None:
        return None
    return [
        entry._replace(contents=tuple([(present[k], n) for k, n in entry.contents]))
        for entry in plan
    ]


def _end(
    priced: PricedProblem, counts: list[int], rules: Rules, limit: int
) -> list[Planned] | None:
    if not any(counts):
        return []
    hopes = list(priced.hopes)
    plan: list[Planned] = []
    spent = 0
    best: tuple[int, list[Planned]] | None = None
    looked = False
    while any(counts):
        if limit and spent + priced.worth_of(counts) * _ALMOST >= limit:
            break
        ends = _one_node(priced, counts)
        if ends:
            if not looked:
                ends = _two_nodes(priced, counts, ends, rules)
                looked = True
            total = spent + priced.cost(ends)
            if best is None or total < best[0]:
                best = (total, [*plan, *ends])
        kind, contents = _best_filling(priced, counts, hopes, rules)
        one = commit(priced, kind, contents, counts, sum(counts))
        plan.append(one)
        spent += priced.prices[one.kind] * one.copies
    # The last node bought is at best the one that had been seen as the end before.
    if best is None or (limit and best[0] >= limit):
        return None
    return best[1]


def _one_node(priced: PricedProblem, counts: Sequence[int]) -> list[Planned]:
    """Return the cheapest single node for everything that is left, if there is one."""
    contents = tuple((k, count) for k, count in enumerate(counts) if count)
    needs, signatures = priced.needs(contents)
    kind = priced.cheapest(needs, signatures)
    return [] if kind < 0 else [Planned(kind=kind, contents=contents)]


def _two_nodes(
    priced: PricedProblem, counts: Sequence[int], ends: list[Planned], rules: Rules
) -> list[Planned]:
    """Return two nodes for everything that is left when that is cheaper than `ends`."""
    best = priced.cost(ends)
    worth = priced.worth_of(counts)
    needs, _ = priced.needs(ends[0].contents)
    hopeful = []
    for kind in priced.by_price:
        price = priced.prices[kind]
        # The rest costs at least its worth, and the kind takes no more than its ceiling away.
        if price + max(worth - priced.ceilings[kind] * price, 0.0) >= best:
            continue
        # However the kind is filled, the other node must hold what exceeds its room.
        room = priced.kinds[kind].room
        beyond = [max(a - b, 0) for a, b in zip(needs, room, strict=True)]
        other = priced.cheapest(beyond, 0, best - price)
        if other >= 0:
            hopeful.append((price + priced.prices[other], kind))
    for least, kind in sorted(hopeful):
        if least >= best:
            break
        filling = fill(priced, kind, counts, rules)
        rest = list(counts)
        for k, n in filling:
            rest[k] -= n
        left = tuple([(k, n) for k, n in enumerate(rest) if n])
        needs, signatures = priced.needs(left)
        price = priced.prices[kind]
        other = priced.cheapest(needs, signatures, best - price)
        if filling and other >= 0:
            best = price + priced.prices[other]
            first = Planned(kind=kind, contents=tuple(sorted(filling)))
            ends = [first, Planned(kind=other, contents=left)]
    return ends


def _best_filling(
    priced: PricedProblem, counts: Sequence[int], hopes: list[float], rules: Rules
) -> tuple[int, Filling]:
    """Return the kind and contents that are worth most per price.

    Kinds are tried by what they returned last time, at most their ceiling; `hopes` is updated.
    """
    best, chosen, contents = -1.0, -1, []
    worth = priced.worth_of(counts)
    for kind in sorted(range(len(hopes)), key=lambda t: (-hopes[t], t)):
        if hopes[kind] <= best:
            break
        # Even with all that is left on it, an expensive kind does not return more.
        if worth <= best * priced.prices[kind]:
            continue
        found = fill(priced, kind, counts, rules)
        value = sum([priced.values[k] * n for k, n in found]) / priced.prices[kind]
        hopes[kind] = value
        if found and value > best:
            best, chosen, contents = value, kind, found
    for kind, ceiling in enumerate(priced.ceilings):
        hopes[kind] = min(hopes[kind] * _GROWTH, ceiling)
    return chosen, contents

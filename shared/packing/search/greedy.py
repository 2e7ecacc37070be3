"""The main procedure: buy what the programme buys, one filled node after the other.

The linear programme of the bound says how many of which kinds the pods that are left need. Half of
that is bought, each node filled so that it returns nearly its price; then the programme is solved
again. Taking the kinds in its proportions keeps the mix that is left one that can be packed well.
The last few nodes are looked for among all kinds.
"""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem, commit, revalue
from shared.packing.search.completion import build_ending
from shared.packing.search.fill_node import Rules, fill

_MANY: Final = 1.5
_GOOD: Final = 0.97
_ALMOST: Final = 0.999999


def build(
    priced: PricedProblem, counts: Sequence[int], rules: Rules, limit: int = 0
) -> list[Planned] | None:
    """Return nodes for all the pods, or None when they would cost `limit` (0 for any) or more.

    Args:
        priced: Classes, kinds and what they are worth.
        counts: Pods per class; each class fits some kind.
        rules: How nodes are filled.
        limit: Cost to stay below.
    """
    left = list(counts)
    plan: list[Planned] = []
    spent = 0
    while True:
        if limit and spent + priced.worth_of(left) * _ALMOST >= limit:
            return None
        bought = _buy_half(priced, left, rules)
        plan.extend(bought)
        spent += priced.cost(bought)
        if not bought or not any(left):
            break
        priced = revalue(priced, left)
    rest = build_ending(priced, left, rules, limit - spent if limit else 0)
    return None if rest is None else plan + rest


def _buy_half(priced: PricedProblem, left: list[int], rules: Rules) -> list[Planned]:
    """Return half of what the programme buys, as far as it fills well; takes it off `left`."""
    aims = {kind: many / 2 for kind, many in priced.worth.mix if many >= _MANY}
    plan: list[Planned] = []
    while aims:
        kind = max(aims, key=lambda t: (aims[t] * priced.prices[t], -t))
        contents = fill(priced, kind, left, rules)
        value = sum([priced.values[k] * n for k, n in contents])
        if not contents or value < _GOOD * priced.ceilings[kind] * priced.prices[kind]:
            del aims[kind]
            continue
        one = commit(priced, kind, contents, left, max(int(aims[kind]), 1))
        plan.append(one)
        aims[kind] -= one.copies
        if aims[kind] <= 0:
            del aims[kind]
    return plan

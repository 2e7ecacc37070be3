"""The main procedure: buy what the linear program buys, one filled node after the other.

The linear program of the bound says how many nodes of which bin types the remaining pods need. Half
of them are bought, each filled with pods of nearly the value of its price; then the program is
solved again. Buying the bin types in its proportions keeps the remaining mix easy to pack. The last
few nodes are chosen among all bin types.
"""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Pattern, PricedProblem, buy_copies, reprice
from shared.packing.search.completion import build_completion
from shared.packing.search.fill_node import FillRules, PodsLeft, fill

_MANY: Final = 1.5
_GOOD: Final = 0.97
_ALMOST: Final = 0.999999


def build_greedy(
    priced: PricedProblem, counts: Sequence[int], rules: FillRules, cutoff: int = 0
) -> list[Pattern] | None:
    """Return nodes for all the pods, or None when they would cost `cutoff` (0 for any) or more.

    Args:
        priced: Classes, bin types and prices.
        counts: Pods per class; each class fits some bin type.
        rules: How nodes are filled.
        cutoff: Cost to stay below.
    """
    left = list(counts)
    patterns: list[Pattern] = []
    spent = 0
    while True:
        if cutoff and spent + priced.value_of(left) * _ALMOST >= cutoff:
            return None
        bought = _buy_half(priced, left, rules)
        patterns.extend(bought)
        spent += priced.cost(bought)
        if not bought or not any(left):
            break
        priced = reprice(priced, left)
    rest = build_completion(priced, left, rules, cutoff - spent if cutoff else 0)
    return None if rest is None else patterns + rest


def _buy_half(priced: PricedProblem, left: list[int], rules: FillRules) -> list[Pattern]:
    """Return half of what the linear program buys, as far as it fills well; reduce `left`."""
    nodes_to_buy = {
        bin_type: many / 2 for bin_type, many in priced.dual_prices.mix if many >= _MANY
    }
    patterns: list[Pattern] = []
    while nodes_to_buy:
        bin_type = max(nodes_to_buy, key=lambda t: (nodes_to_buy[t] * priced.prices[t], -t))
        contents = fill(PodsLeft(priced, left, rules), bin_type)
        value = sum([priced.values[k] * n for k, n in contents])
        if not contents or value < _GOOD * priced.max_return[bin_type] * priced.prices[bin_type]:
            del nodes_to_buy[bin_type]
            continue
        pattern = buy_copies(priced, bin_type, contents, left, max(int(nodes_to_buy[bin_type]), 1))
        patterns.append(pattern)
        nodes_to_buy[bin_type] -= pattern.copies
        if nodes_to_buy[bin_type] <= 0:
            del nodes_to_buy[bin_type]
    return patterns

"""Completes a plan: its last nodes, where fractions no longer help and all bin types are tried."""

from collections.abc import Sequence

from shared.packing.priced_problem import Pattern, PricedProblem, buy_copies, restrict
from shared.packing.search.fill_node import Filling, FillRules, PodsLeft, fill

_GROWTH = 1.004
_ALMOST = 0.999999


def build_completion(
    priced: PricedProblem, counts: Sequence[int], rules: FillRules, cutoff: int
) -> list[Pattern] | None:
    """Return nodes for all the pods, or None when they would cost `cutoff` (0 for any) or more.

    After each node, the cost of completing the plan with one or two nodes is computed; the cheapest
    completion is returned.
    """
    present = [k for k, count in enumerate(counts) if count]
    if len(present) * 2 > len(counts):
        return _complete(priced, list(counts), rules, cutoff)
    patterns = _complete(restrict(priced, present), [counts[k] for k in present], rules, cutoff)
    if patterns is None:
        return None
    return [
        entry._replace(contents=tuple([(present[k], n) for k, n in entry.contents]))
        for entry in patterns
    ]


def _complete(
    priced: PricedProblem, counts: list[int], rules: FillRules, cutoff: int
) -> list[Pattern] | None:
    if not any(counts):
        return []
    expected_value = list(priced.expected_value)
    patterns: list[Pattern] = []
    spent = 0
    best: tuple[int, list[Pattern]] | None = None
    tried_two = False
    while any(counts):
        if cutoff and spent + priced.value_of(counts) * _ALMOST >= cutoff:
            break
        last_patterns = _one_node(priced, counts)
        if last_patterns:
            if not tried_two:
                last_patterns = _two_nodes(PodsLeft(priced, counts, rules), last_patterns)
                tried_two = True
            total = spent + priced.cost(last_patterns)
            if best is None or total < best[0]:
                best = (total, [*patterns, *last_patterns])
        bin_type, contents = _best_filling(PodsLeft(priced, counts, rules), expected_value)
        pattern = buy_copies(priced, bin_type, contents, counts, sum(counts))
        patterns.append(pattern)
        spent += priced.prices[pattern.bin_type] * pattern.copies
    # The last node bought is at best the completion that was computed before it.
    if best is None or (cutoff and best[0] >= cutoff):
        return None
    return best[1]


def _one_node(priced: PricedProblem, counts: Sequence[int]) -> list[Pattern]:
    """Return the cheapest single node for everything that is left, if there is one."""
    contents = tuple((k, count) for k, count in enumerate(counts) if count)
    needs, signatures = priced.needs(contents)
    bin_type = priced.cheapest(needs, signatures)
    return [] if bin_type < 0 else [Pattern(bin_type=bin_type, contents=contents)]


def _two_nodes(pods_left: PodsLeft, last_patterns: list[Pattern]) -> list[Pattern]:
    """Return two nodes for everything that is left if cheaper than `last_patterns`, else these."""
    priced, counts = pods_left.priced, pods_left.counts
    best = priced.cost(last_patterns)
    value = priced.value_of(counts)
    needs, _ = priced.needs(last_patterns[0].contents)
    candidates = []
    for bin_type in priced.by_price:
        price = priced.prices[bin_type]
        # The rest costs at least its value, and the bin type takes away at most its maximum return.
        if price + max(value - priced.max_return[bin_type] * price, 0.0) >= best:
            continue
        # However the bin type is filled, the other node must hold what exceeds its allocatable.
        allocatable = priced.bin_types[bin_type].allocatable
        beyond = [max(a - b, 0) for a, b in zip(needs, allocatable, strict=True)]
        other = priced.cheapest(beyond, 0, best - price)
        if other >= 0:
            candidates.append((price + priced.prices[other], bin_type))
    for least, bin_type in sorted(candidates):
        if least >= best:
            break
        filling = fill(pods_left, bin_type)
        rest = list(counts)
        for k, n in filling:
            rest[k] -= n
        left = tuple([(k, n) for k, n in enumerate(rest) if n])
        needs, signatures = priced.needs(left)
        price = priced.prices[bin_type]
        other = priced.cheapest(needs, signatures, best - price)
        if filling and other >= 0:
            best = price + priced.prices[other]
            first = Pattern(bin_type=bin_type, contents=tuple(sorted(filling)))
            last_patterns = [first, Pattern(bin_type=other, contents=left)]
    return last_patterns


def _best_filling(pods_left: PodsLeft, expected_value: list[float]) -> tuple[int, Filling]:
    """Return the bin type and contents of the highest value per price.

    Bin types are tried by what they returned last time, at most their `max_return`;
    `expected_value` is updated.
    """
    priced = pods_left.priced
    best, chosen, contents = -1.0, -1, []
    value_left = priced.value_of(pods_left.counts)
    for bin_type in sorted(range(len(expected_value)), key=lambda t: (-expected_value[t], t)):
        if expected_value[bin_type] <= best:
            break
        # Even with all that is left on it, an expensive bin type does not return more.
        if value_left <= best * priced.prices[bin_type]:
            continue
        found = fill(pods_left, bin_type)
        value = sum([priced.values[k] * n for k, n in found]) / priced.prices[bin_type]
        expected_value[bin_type] = value
        if found and value > best:
            best, chosen, contents = value, bin_type, found
    for bin_type, ceiling in enumerate(priced.max_return):
        expected_value[bin_type] = min(expected_value[bin_type] * _GROWTH, ceiling)
    return chosen, contents

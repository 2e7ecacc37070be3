"""Several procedures for the same pods; the cheapest plan wins."""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Pattern, PricedProblem
from shared.packing.search.budget import SearchBudget
from shared.packing.search.column_generation import MOST_CLASSES, generate_columns
from shared.packing.search.fill_node import FillRules
from shared.packing.search.greedy import build_greedy

_LEAST_PODS: Final = 300
_COARSE: Final = 45  # pods per node
_FEW_NODES: Final = 16
# For plans that cost less than this, in micro-dollars per hour, the first procedures are enough.
_CHEAP: Final = 10_000_000
_FIRST: Final = 3
# Few pods, fewer than this on a node: the first procedure is enough, since moving single pods
# (`relocate`) then does more than other fillings. In three draws each of 100 pods with rules over
# hosts, on two catalogues, plans cost the same in the mean as with all procedures (2026-12-01).
_SPARSE: Final = 8
# No further procedure is tried after this many classes times nodes.
_MUCH: Final = 10_000_000
PROCEDURES: Final[tuple[tuple[str, FillRules | None], ...]] = (
    ("deal", FillRules()),
    ("patterns", None),
    ("deal evenly", FillRules(value_exponent=0.0, most_lean=3.0)),
    ("deal less", FillRules(share=0.95, value_exponent=0.1, most_lean=1.2)),
    ("large pods first", FillRules(value_exponent=0.4, most_lean=1.2)),
    ("top up only", FillRules(share=0.0, scarcity_exponent=2.0)),
)
# Many pods on a few nodes: what is left over on each counts for more.
FOR_FEW_NODES: Final[tuple[tuple[str, FillRules | None], ...]] = (
    ("deal alike", FillRules(value_exponent=0.0)),
    ("deal, scarce first", FillRules(most_lean=3.0, scarcity_exponent=2.0)),
    (
        "deal less, large and scarce first",
        FillRules(share=0.95, value_exponent=0.4, scarcity_exponent=1.0),
    ),
    ("deal a little less", FillRules(share=0.98, most_lean=1.0)),
    *PROCEDURES,
)


def run_portfolio(
    priced: PricedProblem,
    counts: Sequence[int],
    search_budget: SearchBudget,
    *,
    target_cost: float,
    thorough: bool,
) -> tuple[list[Pattern], str]:
    """Return the cheapest plan of all procedures and the name of the procedure that found it.

    Each class counted must fit some bin type. Ties go to the procedure tried first. Unless the
    search is to be thorough, it ends when a procedure has reached the target, when `patterns` is
    best, when many classes have been tried for many nodes, or after the first few procedures where
    plans are cheap.

    Args:
        priced: Classes, bin types and prices.
        counts: Pods per class.
        search_budget: When to stop in any case.
        target_cost: A cost that is good enough to stop at.
        thorough: Whether to try all procedures.
    """
    best: list[Pattern] = []
    cost, best_procedure, spent = 0, "", 0.0
    nodes = sum([many for _, many in priced.dual_prices.mix])
    first = _FIRST if priced.value_of(counts) < _CHEAP else len(FOR_FEW_NODES)
    if sum(counts) < min(_LEAST_PODS, nodes * _SPARSE):
        first = 1
    few = nodes < _FEW_NODES and sum(counts) > nodes * _COARSE
    for number, (procedure, rules) in enumerate(FOR_FEW_NODES if few else PROCEDURES):
        enough = (
            number >= first or cost <= target_cost or best_procedure == "patterns" or spent > _MUCH
        )
        if best and ((enough and not thorough) or search_budget.ended()):
            break
        spent += nodes * len(counts)
        if rules is None:
            patterns = _from_columns(priced, counts, best, search_budget)
        else:
            patterns = build_greedy(priced, counts, rules, cost)
        if patterns is not None:
            best, cost, best_procedure = patterns, priced.cost(patterns), procedure
    return best, best_procedure


def _from_columns(
    priced: PricedProblem,
    counts: Sequence[int],
    known: Sequence[Pattern],
    search_budget: SearchBudget,
) -> list[Pattern] | None:
    """Return a plan from patterns that is cheaper than the known one, if there is one.

    Not tried where nodes hold many pods: there, resource prices are exact enough, and patterns
    many.
    """
    pods, classes = sum(counts), sum([1 for count in counts if count])
    nodes = sum([entry.copies for entry in known])
    if pods < _LEAST_PODS or classes > MOST_CLASSES or pods > nodes * _COARSE:
        return None
    cutoff = priced.cost(known)
    patterns, left = generate_columns(priced, counts, search_budget)
    spent = priced.cost(patterns)
    if spent >= cutoff:
        return None
    rest = build_greedy(priced, left, FillRules(), cutoff - spent) if any(left) else []
    return None if rest is None else patterns + rest

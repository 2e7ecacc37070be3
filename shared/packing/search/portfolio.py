"""Several procedures for the same pods; the cheapest plan wins."""

from collections.abc import Sequence
from typing import Final

from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.search.budget import SearchBudget
from shared.packing.search.column_generation import MOST_CLASSES, plan_by_patterns
from shared.packing.search.fewest_nodes import fewest_nodes, largest_kinds
from shared.packing.search.fill_node import Rules
from shared.packing.search.greedy import build

_LEAST_PODS: Final = 300
_COARSE: Final = 45  # pods per node
_FEW_NODES: Final = 16
_FEWEST_PODS: Final = 2_000
# Of plans that cost less than this, in micro-dollars per hour, the first procedures are enough.
_CHEAP: Final = 10_000_000
_FIRST: Final = 3
# Classes times nodes that all procedures together look at, the first one's aside.
_MUCH: Final = 10_000_000
PROCEDURES: Final[tuple[tuple[str, Rules | None], ...]] = (
    ("deal", Rules()),
    ("patterns", None),
    ("deal evenly", Rules(tilt=0.0, slant=3.0)),
    ("deal less", Rules(share=0.95, tilt=0.1, slant=1.2)),
    ("large pods first", Rules(tilt=0.4, slant=1.2)),
    ("top up only", Rules(share=0.0, balance=2.0)),
)
# Many pods on a few nodes: what is left over on each counts for more.
FOR_FEW_NODES: Final[tuple[tuple[str, Rules | None], ...]] = (
    ("deal alike", Rules(tilt=0.0)),
    ("deal, scarce first", Rules(slant=3.0, balance=2.0)),
    ("deal less, large and scarce first", Rules(share=0.95, tilt=0.4, balance=1.0)),
    ("deal a little less", Rules(share=0.98, slant=1.0)),
    *PROCEDURES,
)


def best_plan(
    priced: PricedProblem,
    counts: Sequence[int],
    search_budget: SearchBudget,
    *,
    target: float,
    thorough: bool,
) -> tuple[list[Planned], str]:
    """Return the cheapest plan of all procedures and the name of the procedure that found it.

    Each class counted must fit some kind. Ties go to the procedure tried first; none is tried
    after one has reached the target, or when they have looked at many classes for many nodes, or
    after the first few where little money is at stake, unless the search is to be thorough.

    Args:
        priced: Classes, kinds and what they are worth.
        counts: Pods per class.
        search_budget: When to stop in any case.
        target: A cost that is good enough to stop at.
        thorough: Whether to try everything all the same.
    """
    best: list[Planned] = []
    cost, name, spent = 0, "", 0.0
    nodes = sum([many for _, many in priced.worth.mix])
    first = _FIRST if priced.worth_of(counts) < _CHEAP else len(FOR_FEW_NODES)
    few = nodes < _FEW_NODES and sum(counts) > nodes * _COARSE
    for number, (procedure, rules) in enumerate(FOR_FEW_NODES if few else PROCEDURES):
        enough = number >= first or cost <= target or name == "patterns" or spent > _MUCH
        if best and ((enough and not thorough) or search_budget.ended()):
            break
        spent += nodes * len(counts)
        if rules is None:
            plan = _from_patterns(priced, counts, best, search_budget)
        else:
            plan = build(priced, counts, rules, cost)
        if plan is not None:
            best, cost, name = plan, priced.cost(plan), procedure
    if sum(counts) <= _FEWEST_PODS or thorough:
        fewest = fewest_nodes(priced, counts, largest_kinds(priced))
        if priced.cost(fewest) < cost:
            best, name = fewest, "fewest nodes"
    return best, name


def _from_patterns(
    priced: PricedProblem,
    counts: Sequence[int],
    known: Sequence[Planned],
    search_budget: SearchBudget,
) -> list[Planned] | None:
    """Return a plan from patterns cheaper than the one known, if there is one.

    Where nodes hold many pods, resource prices say enough and patterns are many.
    """
    pods, classes = sum(counts), sum([1 for count in counts if count])
    nodes = sum([entry.copies for entry in known])
    if pods < _LEAST_PODS or classes > MOST_CLASSES or pods > nodes * _COARSE:
        return None
    limit = priced.cost(known)
    plan, left = plan_by_patterns(priced, counts, search_budget)
    spent = priced.cost(plan)
    if spent >= limit:
        return None
    rest = build(priced, left, Rules(), limit - spent) if any(left) else []
    return None if rest is None else plan + rest

"""Several procedures for the same pods; the cheapest plan wins."""

from collections.abc import Sequence
from typing import Final

from shared.packing.exact import EXACT, cover_exactly
from shared.packing.fewest import fewest_nodes
from shared.packing.filling import Rules
from shared.packing.greedy import build
from shared.packing.ground import Ground, Planned

_FEWEST_PODS: Final = 2_000
RULES: Final = (
    ("deal", Rules()),
    ("deal evenly", Rules(tilt=0.0, slant=3.0)),
    ("deal less", Rules(share=0.95, tilt=0.1, slant=1.2)),
    ("large pods first", Rules(tilt=0.4, slant=1.2)),
    ("no dealing", Rules(share=0.0, balance=2.0)),
)


def best_plan(
    ground: Ground, counts: Sequence[int], target: float, *, thorough: bool
) -> tuple[list[Planned], str]:
    """Return the cheapest plan of all procedures and the name of the one that found it.

    Each class counted must fit some kind. Ties go to the procedure named first; none is tried
    after one has reached the target, unless the search is to be thorough.
    """
    exact = cover_exactly(ground, counts)
    if exact is not None:
        return exact, EXACT
    best: list[Planned] = []
    cost, name = 0, ""
    for procedure, rules in RULES:
        plan = build(ground, counts, rules, cost)
        if plan is not None:
            best, cost, name = plan, ground.cost(plan), procedure
        if cost <= target and not thorough:
            break
    if sum(counts) <= _FEWEST_PODS or thorough:
        few = [("fewest nodes", fewest_nodes(ground, list(counts)))]
        if len(ground.demand.masks) > 1:
            few.append(("fewest nodes apart", _apart(ground, counts)))
        for procedure, plan in few:
            if ground.cost(plan) < cost:
                best, cost, name = plan, ground.cost(plan), procedure
    return best, name


def _apart(ground: Ground, counts: Sequence[int]) -> list[Planned]:
    """Return few nodes of which none holds pods of two signatures."""
    plan: list[Planned] = []
    signature = ground.demand.signature
    for one in sorted({signature[k] for k, count in enumerate(counts) if count}):
        own = [count if signature[k] == one else 0 for k, count in enumerate(counts)]
        plan.extend(fewest_nodes(ground, own))
    return plan

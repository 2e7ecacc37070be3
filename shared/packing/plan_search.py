"""The search for a cheap plan: portfolio, then few kinds, then improvement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.packing.bound import find_prices
from shared.packing.exact import EXACT
from shared.packing.filling import Rules
from shared.packing.greedy import build
from shared.packing.ground import Ground, Planned, make_ground
from shared.packing.groups import merge_kinds
from shared.packing.improve import improve
from shared.packing.portfolio import best_plan
from shared.packing.problem import PackingSettings

_WORK_PER_TRY: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan, the ground its kinds belong to and the name of the procedure that won."""

    ground: Ground
    plan: list[Planned]
    name: str


def search(
    ground: Ground, counts: Sequence[int], settings: PackingSettings, target: float, seed: int
) -> Found:
    """Return a cheap plan.

    Args:
        ground: Classes, kinds and what they are worth.
        counts: Pods per class; each class counted fits some kind.
        settings: How many launch groups and how much improvement.
        target: A cost that is good enough to stop at.
        seed: Settles what improvement tries.
    """
    plan, name = best_plan(ground, counts, target, thorough=settings.thorough)
    most = settings.max_launch_groups
    if most and len({one.kind for one in plan}) > most:
        ground, plan = _few_kinds(ground, counts, plan, most)
    work = settings.improve_iterations * _WORK_PER_TRY * (10 if settings.thorough else 1)
    close = ground.cost(plan) <= target
    if work and name != EXACT and (settings.thorough or not close):
        improved = improve(ground, plan, work, seed)
        if ground.cost(improved) < ground.cost(plan):
            plan, name = improved, f"{name}, improved"
    return Found(ground=ground, plan=plan, name=name)


def _few_kinds(
    ground: Ground, counts: Sequence[int], plan: list[Planned], most: int
) -> tuple[Ground, list[Planned]]:
    """Return a plan of at most `most` kinds where that is possible, and a ground of these alone."""
    merged = merge_kinds(ground, plan, most)
    kept = sorted({one.kind for one in merged})
    place = {kind: number for number, kind in enumerate(kept)}
    kinds = [ground.kinds[kind] for kind in kept]
    prices = [ground.prices[kind] for kind in kept]
    worth = find_prices(ground.demand, counts, kinds, prices)
    smaller = make_ground(ground.demand, kinds, worth, prices)
    moved = [
        Planned(kind=place[one.kind], contents=one.contents, copies=one.copies) for one in merged
    ]
    again = build(smaller, list(counts), Rules(), ground.cost(merged))
    return smaller, again or moved

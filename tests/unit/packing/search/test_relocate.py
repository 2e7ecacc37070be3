"""Pods that are moved one by one, where that saves money."""

from collections import Counter
from collections.abc import Sequence

import pytest

from shared.packing.priced_problem import Planned, PricedProblem
from shared.packing.search import relocate as relocation
from shared.packing.search.relocate import relocate
from tests.unit.packing.packing_cases import pod, problem, shape
from tests.unit.packing.search.test_aggregate import ground_of

SHAPES = (
    shape("small", 100_000, cores=1, gib=4),
    shape("medium", 200_000, cores=2, gib=8),
    shape("large", 400_000, cores=4, gib=16),
)


def pods_of(plan: Sequence[Planned]) -> Counter[int]:
    found: Counter[int] = Counter()
    for entry in plan:
        for k, count in entry.contents:
            found[k] += count * entry.copies
    return found


def kinds(priced: PricedProblem, *names: str) -> list[int]:
    prices = {"small": 100_000, "medium": 200_000, "large": 400_000}
    return [priced.prices.index(prices[name]) for name in names]


def test_the_last_pod_of_a_node_goes_where_it_costs_nothing() -> None:
    priced, _ = ground_of(problem([pod(900, 1, 2), pod(100, 1, 1)], shapes=SHAPES))
    small, medium = kinds(priced, "small", "medium")
    plan = [Planned(medium, ((0, 1), (1, 1))), Planned(medium, ((0, 1),))]
    # The second node was larger than it had to be: of its size there is room for the small pod.
    found = relocate(priced, plan)
    assert priced.cost(found) == 200_000
    assert pods_of(found) == Counter({0: 2, 1: 1})
    assert {entry.kind for entry in found} <= {small, medium}


def test_a_node_that_loses_its_last_pod_is_not_bought() -> None:
    priced, _ = ground_of(problem([pod(500, 1, 4)], shapes=SHAPES[1:]))
    (medium,) = kinds(priced, "medium")
    plan = [Planned(medium, ((0, 3),)), Planned(medium, ((0, 1),))]
    assert relocate(priced, plan) == [Planned(medium, ((0, 4),))]


def test_no_more_is_looked_at_than_the_price_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    priced, _ = ground_of(problem([pod(500, 1, 4)], shapes=SHAPES[1:]))
    (medium,) = kinds(priced, "medium")
    plan = [Planned(medium, ((0, 3),)), Planned(medium, ((0, 1),))]
    monkeypatch.setattr(relocation, "_MOST_QUESTIONS", 1)
    assert priced.cost(relocate(priced, plan)) == 400_000
    monkeypatch.setattr(relocation, "_MOST_NODES", 1)
    assert relocate(priced, plan) == plan

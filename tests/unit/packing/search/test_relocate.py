"""Pods that are moved one by one, where that saves money."""

from collections import Counter
from collections.abc import Sequence

import pytest

from shared.packing.priced_problem import Pattern, PricedProblem
from shared.packing.search import relocate as relocation
from shared.packing.search.relocate import relocate
from tests.unit.packing.packing_cases import pod, problem, shape
from tests.unit.packing.search.test_aggregate import ground_of

SHAPES = (
    shape("small", 100_000, cores=1, gib=4),
    shape("medium", 200_000, cores=2, gib=8),
    shape("large", 400_000, cores=4, gib=16),
)

# The larger machine costs more than two of the other size.
DEAR = (SHAPES[1], shape("large", 500_000, cores=4, gib=16))


def pods_of(plan: Sequence[Pattern]) -> Counter[int]:
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
    plan = [Pattern(medium, ((0, 1), (1, 1))), Pattern(medium, ((0, 1),))]
    # The second node was larger than it had to be: of its size there is room for the small pod.
    found = relocate(priced, plan)
    assert priced.cost(found) == 200_000
    assert pods_of(found) == Counter({0: 2, 1: 1})
    assert {entry.bin_type for entry in found} <= {small, medium}


def test_a_node_that_loses_its_last_pod_is_not_bought() -> None:
    priced, _ = ground_of(problem([pod(500, 1, 4)], shapes=SHAPES[1:]))
    (medium,) = kinds(priced, "medium")
    plan = [Pattern(medium, ((0, 3),)), Pattern(medium, ((0, 1),))]
    assert relocate(priced, plan) == [Pattern(medium, ((0, 4),))]


def test_a_pod_is_exchanged_for_a_smaller_one_where_neither_could_move_alone() -> None:
    pods = [pod(cpu, 1, 1) for cpu in (1500, 1000, 900, 500)]
    priced, _ = ground_of(problem(pods, shapes=DEAR))
    medium, large = (priced.prices.index(price) for price in (200_000, 500_000))
    plan = [Pattern(large, ((0, 1), (1, 1))), Pattern(medium, ((2, 1), (3, 1)))]
    found = relocate(priced, plan)
    assert found == [Pattern(medium, ((0, 1), (3, 1))), Pattern(medium, ((1, 1), (2, 1)))]


def test_nothing_is_exchanged_for_what_would_cost_more_elsewhere() -> None:
    pods = [pod(cpu, 1, 1) for cpu in (1500, 1000, 1400, 500)]
    priced, _ = ground_of(problem(pods, shapes=DEAR))
    medium, large = (priced.prices.index(price) for price in (200_000, 500_000))
    plan = [Pattern(large, ((0, 1), (1, 1))), Pattern(medium, ((2, 1), (3, 1)))]
    assert relocate(priced, plan) == sorted(plan)


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_is_looked_at_than_the_price_is_worth(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    priced, _ = ground_of(problem([pod(500, 1, 4)], shapes=SHAPES[1:]))
    (medium,) = kinds(priced, "medium")
    plan = [Pattern(medium, ((0, 3),)), Pattern(medium, ((0, 1),))]
    monkeypatch.setattr(relocation, "_MOST_EVALUATIONS", most)
    assert priced.cost(relocate(priced, plan)) == 400_000
    monkeypatch.setattr(relocation, "_MOST_NODES", 1)
    assert relocate(priced, plan) == plan


def test_what_was_moved_when_the_passes_are_done_stays_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    priced, _ = ground_of(problem([pod(500, 1, 4)], shapes=SHAPES[1:]))
    (medium,) = kinds(priced, "medium")
    monkeypatch.setattr(relocation, "_MOST_PASSES", 1)
    plan = [Pattern(medium, ((0, 3),)), Pattern(medium, ((0, 1),))]
    assert relocate(priced, plan) == [Pattern(medium, ((0, 4),))]

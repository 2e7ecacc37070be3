"""A pod that asks for no cpu or no memory takes none, on a node that is full as on any other."""

import pytest

from shared.model.values import replace
from shared.packing.problem import ItemClass
from tests.unit.packing.packing_cases import amounts, good, pod, problem, shape

SMALL = shape("m.large", 100_000, cores=2, gib=8)
LARGE = shape("m.xlarge", 200_000, cores=4, gib=16)


@pytest.mark.parametrize("beside", [(0, 1), (0, 0)])
@pytest.mark.parametrize("count", [1, 10, 40])
def test_full_nodes_take_pods_that_ask_for_no_cpu(beside: tuple[int, int], count: int) -> None:
    asked = problem([pod(2000, 1, count), pod(*beside, count)], shapes=(SMALL, LARGE))
    made = good(asked)
    assert made.cost_micros_per_hour == made.lower_bound_micros_per_hour == count * 100_000


def test_nodes_with_full_memory_take_pods_that_ask_for_none() -> None:
    asked = problem([pod(100, 8, 10), pod(100, 0, 10)], shapes=(SMALL, LARGE))
    assert good(asked).cost_micros_per_hour == 10 * 100_000


def test_pods_that_ask_for_nothing_fill_the_places_of_a_node() -> None:
    tiny = replace(SMALL, allocatable=amounts(3, 8, 9))
    for asked in (pod(0, 0.1, 9), ItemClass(requests=amounts(pods=1), count=9)):
        assert good(problem([asked], shapes=(tiny,))).cost_micros_per_hour == 100_000


def test_pods_without_even_a_pod_place_need_one_node() -> None:
    nothing = ItemClass(requests=amounts(), count=500)
    assert good(problem([nothing], shapes=(SMALL,))).cost_micros_per_hour == 100_000
    some = [pod(2000, 1, 3), pod(300, 5, 8), pod(500, 0, 7), nothing]
    assert good(problem(some, shapes=(SMALL, LARGE))).unplaced == ()

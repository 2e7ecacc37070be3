"""Of plans at about the same price, the one with fewer nodes is taken."""

import pytest

from shared.model.values import replace
from shared.packing.adjusted_prices import has_few_pairs, is_better, prices_of_limits
from tests.unit.packing.packing_cases import PLAIN, amounts, good, names, pod, problem, shape

SMALL = shape("m.large", 100_000, cores=2, gib=8)


@pytest.mark.parametrize(
    ("price", "permille", "taken"),
    [
        (200_600, 5, "m.xlarge"),
        (200_600, 0, "m.large"),
        (203_000, 5, "m.large"),
        (203_000, 20, "m.xlarge"),
    ],
)
def test_fewer_nodes_are_bought_where_they_cost_little_more(
    price: int, permille: int, taken: str
) -> None:
    large = shape("m.xlarge", price, cores=4, gib=16)
    settings = replace(PLAIN, fewer_nodes_permille=permille)
    asked = problem([pod(1000, 1, 400)], shapes=(SMALL, large), settings=settings)
    assert set(names(asked, good(asked))) == {taken}


def test_a_plan_that_costs_little_is_left_as_it_is() -> None:
    large = shape("m.xlarge", 200_600, cores=4, gib=16)
    settings = replace(PLAIN, fewer_nodes_permille=5)
    asked = problem([pod(1000, 1, 40)], shapes=(SMALL, large), settings=settings)
    assert set(names(asked, good(asked))) == {"m.large"}


def test_of_plans_that_differ_in_price_alone_the_cheaper_is_taken() -> None:
    settings = replace(PLAIN, fewer_nodes_permille=5)
    asked = problem([pod(1000, 1, 400)], shapes=(SMALL,), settings=settings)
    before = good(asked)
    cheaper = replace(before, cost_micros_per_hour=before.cost_micros_per_hour - 1)
    assert is_better(asked, cheaper, before)
    assert not is_better(asked, before, before)
    more = replace(cheaper, nodes=(*before.nodes, before.nodes[0]))
    assert not is_better(asked, more, before)
    half = replace(more, cost_micros_per_hour=before.cost_micros_per_hour // 2)
    assert is_better(asked, half, before)


def test_a_plan_that_leaves_pods_out_is_never_taken() -> None:
    settings = replace(PLAIN, fewer_nodes_permille=5)
    asked = problem(
        [pod(1000, 1, 400)],
        shapes=(SMALL,),
        settings=settings,
        limits={"default": amounts(cpu=1_000_000)},
    )
    before = good(asked)
    less = replace(before, nodes=before.nodes[:1], unplaced=((0, 399, "limit"),))
    assert not is_better(asked, less, before)


def test_under_a_limit_more_is_tried_only_where_classes_and_shapes_are_few() -> None:
    lean = shape("c.large", 85_000, cores=2, gib=4)
    roomy = shape("r.large", 130_000, cores=2, gib=16)
    limits = {"default": amounts(cpu=4000)}
    asked = problem([pod(100, 1, 14)], shapes=(lean, roomy), limits=limits)
    made = good(asked)
    assert made.unplaced == ()
    many = replace(asked, classes=asked.classes * 20_000)
    assert not has_few_pairs(many)
    assert not list(prices_of_limits(many, made, ()))

from collections.abc import Callable
from typing import Any

import pytest

from shared.model.values import replace
from shared.packing.checker import check
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, NO_NODE_TYPE, PackedNode, Packing, PackingProblem
from tests.unit.packing.packing_cases import PLAIN, amounts, pod, problem, shape

SPOT = {"on-demand": 100_000, "spot": 40_000}
SHAPES = (
    shape("m.large", SPOT, cores=2, gib=8, zones=("a", "b")),
    shape("m.xlarge", {"on-demand": 200_000, "spot": 50_000}, cores=4, gib=16),
    shape("c.large", SPOT, cores=2, gib=8, provisioner="other"),
    shape("m.16xlarge", {"on-demand": 210_000, "spot": 55_000}, cores=64, gib=256),
)


def asked() -> PackingProblem:
    return problem(
        [pod(1500, 4, 3), pod(200, 1, 3), pod(90_000, 1, 1)],
        shapes=SHAPES,
        bins=[
            amounts(450, 2, 10),
            amounts(100, 2, 10),
        ],
        compatible=(0b0011, 0b1011, 0b1111),
        compatible_bins=(0b11, 0b01, 0b11),
        limits={"default": amounts(cpu=12_000)},
        settings=replace(PLAIN, max_node_vcpus=8, max_options=3),
    )


def good() -> Packing:
    first = PackedNode(
        node_type=0,
        contents=((0, 1), (1, 1)),
        options=((0, 0), (0, 1), (1, 0)),
        fallback_options=((0, 2), (0, 3)),
    )
    return Packing(
        nodes=(first, replace(first, contents=((0, 1),)), replace(first, contents=((0, 1),))),
        placements=((0, ((1, 2),)),),
        unplaced=((2, 1, NO_NODE_TYPE),),
        cost_micros_per_hour=120_000,
        lower_bound_micros_per_hour=80_000,
    )


def test_the_honest_plan_is_accepted() -> None:
    assert check(asked(), good()) == ()


def node(**changes: Any) -> Callable[[Packing], Packing]:
    """Return a corruption of the first node that keeps the printed cost right."""

    def corrupt(made: Packing) -> Packing:
        first = replace(made.nodes[0], **changes)
        return replace(made, nodes=(first, *made.nodes[1:]))

    return corrupt


def plan(**changes: Any) -> Callable[[Packing], Packing]:
    return lambda made: replace(made, **changes)


CORRUPTIONS: dict[str, Callable[[Packing], Packing]] = {
    "has no options": node(options=()),
    "option 9/0 does not exist": node(options=((9, 0),)),
    "option 0/9 does not exist": node(options=((0, 9),)),
    "option -1/0 does not exist": node(fallback_options=((-1, 0),)),
    "node 0: is empty": node(contents=()),
    "node 0: class 7 does not exist": node(contents=((7, 1),)),
    "node 0: class 0 has count 0": node(contents=((0, 0),)),
    "class 0: 4 pods are planned": node(contents=((0, 2),)),
    "class 1: 2 pods are planned": plan(placements=((0, ((1, 1),)),)),
    "class 2: 0 pods are planned": plan(unplaced=()),
    "class 2: 2 pods are planned": plan(unplaced=((2, 2, NO_NODE_TYPE),)),
    "a bin is named twice": plan(placements=((0, ((1, 1),)), (0, ((1, 1),)))),
    "bin 5 does not exist": plan(placements=((5, ((1, 2),)),)),
    "bin 0: is empty": plan(placements=((0, ()),)),
    "unplaced: class 8 does not exist": plan(unplaced=((8, 1, NO_NODE_TYPE),)),
    "bin 0: too much cpu": plan(placements=((0, ((1, 3),)),)),
    "bin 1: class 1 may not run there": plan(placements=((1, ((1, 2),)),)),
    "the planned shape is not the first option's": node(node_type=1),
    "m.large has too little cpu": node(contents=((0, 2),)),
    "c.large": node(options=((2, 0),), node_type=2),
    "some of the classes may not run on c.large": node(options=((2, 0),), node_type=2),
    "options are of several provisioners": node(options=((0, 0), (2, 0))),
    "m.16xlarge is above the cap": node(fallback_options=((3, 1),)),
    "options are not cheapest first": node(options=((1, 0), (0, 0)), node_type=1),
    "fallback options go above the price ceiling": node(fallback_options=((0, 2), (1, 1))),
    "more than 3 options": node(options=((0, 0), (0, 1), (1, 0), (1, 0))),
    "options name a pool twice": node(options=((0, 0), (0, 0))),
    "options are of several capacity types": node(options=((0, 0), (0, 2))),
    "fallback options are of the options' capacity type": node(fallback_options=((0, 1),)),
    "the nodes cost": plan(cost_micros_per_hour=119_999),
    "the lower bound 120001": plan(lower_bound_micros_per_hour=120_001),
    "the lower bound -1": plan(lower_bound_micros_per_hour=-1),
    "the cap on node size gave way to save 2400": plan(within_cap_micros_per_hour=122_400),
    "class 2: no limit is in the way": plan(unplaced=((2, 1, LIMIT),)),
    "class 2: 'tired' is no reason": plan(unplaced=((2, 1, "tired"),)),
}


@pytest.mark.parametrize("sentence", CORRUPTIONS)
def test_a_corrupted_plan_is_refused(sentence: str) -> None:
    wrong = check(asked(), CORRUPTIONS[sentence](good()))
    assert any(sentence in value for value in wrong), wrong


def test_a_pod_that_would_fit_may_not_be_called_homeless() -> None:
    made = pack(problem([pod(1000, 1, 1)]))
    empty = replace(
        made,
        nodes=(),
        cost_micros_per_hour=0,
        lower_bound_micros_per_hour=0,
        unplaced=((0, 1, NO_NODE_TYPE),),
    )
    wrong = check(problem([pod(1000, 1, 1)]), empty)
    assert wrong == ("class 0: c.small would hold it",)


def test_limits_are_reserved_by_the_largest_option() -> None:
    limited = replace(asked(), limits={"default": amounts(cpu=11_000)})
    wrong = check(limited, good())
    assert "provisioner default: cpu goes above its limit" in wrong


def test_a_provisioner_without_limits_is_not_counted() -> None:
    free = replace(asked(), limits={"other": amounts(cpu=1)})
    assert check(free, good()) == ()


@pytest.mark.parametrize(
    ("compatible", "chosen", "refused"),
    [
        (0b111, 1, ()),
        (0b111, 2, ("m.64 is above the cap on node size",)),
        (0b101, 2, ()),
    ],
    ids=["the least that holds it", "larger than that", "the least where it may run"],
)
def test_above_the_cap_a_pod_has_the_least_machine_that_holds_it(
    compatible: int, chosen: int, refused: tuple[str, ...]
) -> None:
    large = problem(
        [pod(10_000, 1, 1)],
        shapes=[shape(f"m.{n}", {"on-demand": 100_000}, cores=n, gib=64) for n in (8, 16, 64)],
        compatible=(compatible,),
        settings=replace(PLAIN, max_node_vcpus=8),
    )
    bought = PackedNode(node_type=chosen, contents=((0, 1),), options=((chosen, 0),))
    made = Packing(
        nodes=(bought,), cost_micros_per_hour=100_000, lower_bound_micros_per_hour=100_000
    )
    assert tuple(said.removeprefix("node 0: ") for said in check(large, made)) == refused

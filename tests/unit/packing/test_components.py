"""Parts of a problem that share nothing are packed by themselves."""

from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.components import components
from shared.packing.packer import pack
from shared.packing.problem import PackingProblem
from tests.unit.packing.packing_cases import pod, problem, shape

SHAPES = (
    shape("a", 200_000, cores=4, gib=16),
    shape("b", 210_000, cores=4, gib=16),
    shape("c", 400_000, cores=8, gib=32),
)


def parts_of(asked: PackingProblem) -> list[tuple[tuple[int, ...], ...]]:
    return [(part.classes, part.node_types, part.bins) for part in components(asked)]


def test_classes_that_share_a_shape_or_a_bin_are_one_part() -> None:
    asked = problem(
        [pod(1000, 1, 2), pod(2000, 1, 1), pod(500, 1, 3), pod(100, 1, 1)],
        shapes=SHAPES,
        bins=(Resources.of(cpu=100), Resources.of(cpu=4000, memory=2**34, pods=9)),
        compatible=(0b001, 0b010, 0b110, 0b001),
        compatible_bins=(0b00, 0b10, 0b00, 0b00),
    )
    assert parts_of(asked) == [((0, 3), (0,), ()), ((1, 2), (1, 2), (1,))]
    joined_by_bin = replace(asked, compatible_bins=(0b10, 0b10, 0b00, 0b00))
    assert parts_of(joined_by_bin) == [((0, 1, 2, 3), (0, 1, 2), (0, 1))]


def test_limits_and_a_lack_of_classes_leave_the_problem_whole() -> None:
    asked = problem([pod(1000, 1, 1), pod(2000, 1, 1)], shapes=SHAPES, compatible=(1, 2))
    assert len(components(asked)) == 2
    (limited,) = components(replace(asked, limits={"default": Resources.of(cpu=100_000)}))
    assert limited.node_types == (0, 1, 2)
    assert parts_of(replace(asked, classes=(), compatible=(), compatible_bins=())) == [
        ((), (0, 1, 2), ())
    ]


def test_a_small_part_of_a_large_batch_is_no_small_batch() -> None:
    asked = problem([pod(1000, 1, 80), pod(1000, 1, 80)], shapes=SHAPES, compatible=(1, 2))
    assert {part.problem.settings.small_batch_pods for part in components(asked)} == {0}
    few = problem([pod(1000, 1, 8), pod(1000, 1, 8)], shapes=SHAPES, compatible=(1, 2))
    assert {part.problem.settings.small_batch_pods for part in components(few)} == {100}


def test_the_parts_of_a_plan_have_the_indexes_of_the_whole() -> None:
    asked = problem(
        [pod(3000, 1, 2), pod(3000, 1, 1), pod(9000, 1, 1)],
        shapes=SHAPES,
        bins=(Resources.of(cpu=100), Resources.of(cpu=4000, memory=2**34, pods=9)),
        compatible=(0b001, 0b010, 0b100),
        compatible_bins=(0b10, 0b00, 0b00),
    )
    made = pack(asked)
    assert not made.fallback
    assert made.placements == ((1, ((0, 1),)),)
    assert [(node.node_type, node.contents) for node in made.nodes] == [
        (0, ((0, 1),)),
        (1, ((1, 1),)),
    ]
    assert [(k, count) for k, count, _ in made.unplaced] == [(2, 1)]
    assert made.cost_micros_per_hour == made.lower_bound_micros_per_hour == 410_000

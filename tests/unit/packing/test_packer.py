import pytest

from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing import packer
from shared.packing.checker import check
from shared.packing.packer import pack
from shared.packing.problem import LIMIT, NO_NODE_TYPE, ItemClass, PackingSettings
from shared.packing.search.first_fit import pack_first_fit
from tests.unit.packing.packing_cases import (
    GIB,
    PLAIN,
    SHAPES,
    amounts,
    good,
    names,
    placed,
    pod,
    problem,
    shape,
)


def test_no_pods_need_no_nodes() -> None:
    made = good(problem([]))
    assert made.nodes == ()
    assert made.cost_micros_per_hour == made.lower_bound_micros_per_hour == 0


def test_pods_without_any_shape_are_left_out_with_a_reason() -> None:
    made = good(problem([pod(1000, 1, 3)], shapes=()))
    assert made.unplaced == ((0, 3, NO_NODE_TYPE),)


def test_identical_pods_get_the_exact_optimum_and_a_bound_that_says_so() -> None:
    asked = problem([pod(1000, 1, 5)])
    made = good(asked)
    assert made.cost_micros_per_hour == made.lower_bound_micros_per_hour == 200_000
    assert made.candidate == "exact"


def test_many_identical_pods_are_packed_without_the_exact_table() -> None:
    made = good(problem([pod(100, 0.25, 60_000)]))
    assert placed(made, 0) == 60_000
    assert made.cost_micros_per_hour <= made.lower_bound_micros_per_hour * 1.02


def test_mixed_pods_come_close_to_the_bound() -> None:
    classes = [pod(c, m, 60) for c in (100, 300, 700, 1500) for m in (0.25, 1, 3)]
    made = good(problem(classes))
    assert made.cost_micros_per_hour <= made.lower_bound_micros_per_hour * 1.02


def test_pod_is_placed_on_a_bin_before_a_launch() -> None:
    bins = [amounts(2000, 4, 10)]
    made = good(problem([pod(500, 1, 6)], bins=bins))
    assert made.placements == ((0, ((0, 4),)),)
    assert placed(made, 0) == 6


def test_the_fullest_bin_that_fits_is_taken() -> None:
    bins = [
        amounts(8000, 16, 10),
        amounts(1000, 2, 10),
        amounts(-500, 2, 10),
        amounts(1000, 2, 10),
    ]
    asked = problem([pod(1000, 2, 1), pod(4000, 2, 0)], bins=bins, compatible_bins=(0b0111, 0b1111))
    assert good(asked).placements == ((1, ((0, 1),)),)


def test_a_bin_too_small_for_a_pod_is_skipped() -> None:
    bins = [amounts(500, 1, 10)]
    asked = problem([pod(1000, 2, 1), pod(400, 1, 1)], bins=bins)
    assert good(asked).placements == ((0, ((1, 1),)),)


def test_a_pod_without_requests_fits_a_bin_without_cpu() -> None:
    bins = [amounts(-10, -1, 3)]
    asked = problem([pod(0, 0, 2)], bins=bins)
    assert good(asked).placements == ((0, ((0, 2),)),)


def test_a_pod_that_fits_no_shape_may_still_fit_a_bin() -> None:
    bins = [amounts(500_000, 1000, 10)]
    made = good(problem([pod(200_000, 100, 3)], bins=bins))
    assert made.placements == ((0, ((0, 2),)),)
    assert made.unplaced == ((0, 1, NO_NODE_TYPE),)


@pytest.mark.parametrize("running", [Resources(), amounts(64_000, 128, 100)])
def test_a_pod_that_only_a_bin_can_hold_gets_its_room_first(running: Resources) -> None:
    only_there = amounts(1930, 7, 29)
    asked = problem(
        [pod(1500, 1, 1), pod(1000, 1, 1), pod(400, 1, 1)],
        bins=[only_there],
        compatible=((1 << len(SHAPES)) - 1, 0, (1 << len(SHAPES)) - 1),
        running=running,
    )
    made = good(asked)
    assert made.unplaced == ()
    assert made.placements == ((0, ((1, 1), (2, 1))),)


def test_a_bin_no_pod_may_use_stays_empty() -> None:
    bins = [amounts(8000, 16, 10)]
    asked = problem([pod(1000, 1, 1)], bins=bins, compatible_bins=(0,))
    assert good(asked).placements == ()


def test_classes_of_different_signatures_share_nodes_where_they_may() -> None:
    shapes = (
        shape("amd", 100_000, cores=4, gib=16),
        shape("arm", 80_000, cores=4, gib=16),
    )
    classes = [pod(500, 2, 40), pod(500, 2, 10), pod(250, 1, 10)]
    asked = problem(classes, shapes=shapes, compatible=(0b11, 0b01, 0b10))
    made = good(asked)
    for node in made.nodes:
        held = {k for k, _ in node.contents}
        assert not {1, 2} <= held
    assert placed(made, 1) == 10


def test_pods_with_gpus_get_machines_with_gpus() -> None:
    gpu = shape("g.xlarge", 526_000, cores=4, gib=16, nvidia_com__gpu=1)
    big = shape("g.12xlarge", 3_912_000, cores=48, gib=192, nvidia_com__gpu=4)
    classes = [
        pod(1000, 4, 5, nvidia_com__gpu=1),
        pod(4000, 8, 1, nvidia_com__gpu=4),
        pod(500, 1, 30),
    ]
    made = good(problem(classes, shapes=(*SHAPES, gpu, big)))
    assert placed(made, 0) == 5
    assert made.cost_micros_per_hour <= 3_912_000 + 5 * 526_000 + 640_000


def test_a_slot_keeps_pods_of_one_kind_apart() -> None:
    shapes = tuple(
        replace(
            other_shape,
            allocatable=other_shape.allocatable + Resources.from_mapping({"slot/web": 1}),
        )
        for other_shape in SHAPES
    )
    web = pod(500, 1, 6, slot__web=1)
    made = good(problem([web, pod(250, 0.5, 40)], shapes=shapes))
    assert max(n for node in made.nodes for k, n in node.contents if k == 0) == 1
    assert len(made.nodes) >= 6


def test_the_cap_on_node_size_holds_unless_a_pod_is_larger() -> None:
    settings = replace(PLAIN, max_node_vcpus=16)
    small = problem([pod(1000, 1, 200)], settings=settings)
    assert "c.24xlarge" not in names(small, good(small))
    large = problem([pod(1000, 1, 10), pod(40_000, 50, 1)], settings=settings)
    assert "c.24xlarge" in names(large, good(large))
    too_large = problem([pod(97_000, 1, 1), pod(97_000, 1, 0)], settings=settings)
    assert good(too_large).unplaced == ((0, 1, NO_NODE_TYPE),)


SIZES = (
    shape("one", 1_000_000, cores=96, gib=384),
    shape("two", 1_500_000, cores=192, gib=768),
)
BY_DEFAULT = replace(PLAIN, max_node_vcpus=96)


def test_the_cap_gives_way_by_default_where_it_costs_more_than_two_percent() -> None:
    pods = [pod(64_000, 100, 12), pod(32_000, 100, 12)]
    made = good(problem(pods, shapes=SIZES, settings=BY_DEFAULT))
    assert (made.cost_micros_per_hour, made.within_cap_micros_per_hour) == (9_000_000, 12_000_000)
    kept = good(problem(pods, shapes=SIZES, settings=replace(BY_DEFAULT, max_node_vcpus=97)))
    assert (kept.cost_micros_per_hour, kept.within_cap_micros_per_hour) == (12_000_000, 0)
    # Nine on a node of one size, nineteen on one of the other.
    many = good(problem([pod(10_000, 10, 85)], shapes=SIZES, settings=BY_DEFAULT))
    assert many.cost_micros_per_hour < many.within_cap_micros_per_hour


@pytest.mark.parametrize(
    ("pods", "large"),
    [
        pytest.param([pod(90_000, 100, 3)], 1_970_000, id="costs little"),
        pytest.param([pod(90_000, 100, 3)], 2_100_000, id="costs nothing"),
        pytest.param([pod(9_000, 10, 3)], 1_100_000, id="few pods"),
        pytest.param([pod(70_000, 10, 30), pod(71_000, 10, 30)], 2_100_000, id="no cheaper plan"),
        # Six nodes for what five and a third would hold.
        pytest.param([pod(6_000, 10, 85)], 2_000_000, id="many pods on a node"),
        pytest.param([pod(6_000, 10, 85)], 3_900_000, id="no larger node is cheap enough"),
    ],
)
def test_the_cap_is_kept_where_it_costs_little(pods: list[ItemClass], large: int) -> None:
    sizes = (SIZES[0], shape("two", large, cores=192, gib=768))
    made = good(problem(pods, shapes=sizes, settings=BY_DEFAULT))
    assert set(names(problem(pods, shapes=sizes), made)) == {"one"}
    assert made.within_cap_micros_per_hour == 0


def test_a_larger_node_that_offers_no_more_gets_no_plan_of_its_own() -> None:
    sizes = (SIZES[0], replace(shape("two", 1_100_000, cores=96, gib=384), vcpus=192))
    made = good(problem([pod(6_000, 10, 85)], shapes=sizes, settings=BY_DEFAULT))
    assert (len(made.nodes), made.within_cap_micros_per_hour) == (6, 0)


def test_limits_count_the_largest_option() -> None:
    limits = {"default": amounts(cpu=40_000)}
    made = good(problem([pod(1000, 2, 100)], limits=limits))
    assert 30 <= placed(made, 0) <= 40
    ((_, left, reason),) = made.unplaced
    assert (left + placed(made, 0), reason) == (100, LIMIT)


def test_generous_limits_change_nothing() -> None:
    limits = {"default": amounts(cpu=10_000_000), "other": amounts(cpu=1)}
    free = good(problem([pod(1000, 2, 50), pod(300, 1, 20)]))
    limited = good(problem([pod(1000, 2, 50), pod(300, 1, 20)], limits=limits))
    assert limited.cost_micros_per_hour == free.cost_micros_per_hour


def test_a_second_provisioner_takes_what_the_first_may_not() -> None:
    shapes = (
        shape("m.large", 96_000, cores=2, gib=8, provisioner="first"),
        shape("m.large", 99_000, cores=2, gib=8, provisioner="second"),
    )
    limits = {"first": amounts(cpu=4000)}
    asked = problem([pod(1000, 1, 8), pod(900, 1, 2)], shapes=shapes, limits=limits)
    made = good(asked)
    owners = sorted(asked.node_types[node.node_type].provisioner for node in made.nodes)
    assert owners.count("first") == 2
    assert owners.count("second") >= 3
    assert made.unplaced == ()


def test_where_the_number_of_nodes_is_limited_each_holds_what_leaves_the_fewest_pods() -> None:
    shapes = (
        shape("m.large", 96_000, cores=2, gib=8, nodes=1),
        shape("m.xlarge", 250_000, cores=4, gib=16, nodes=1),
    )
    asked = problem([pod(1500, 2, 6)], shapes=shapes, limits={"default": amounts(nodes=2)})
    made = good(asked)
    assert names(asked, made) == ["m.xlarge"] * 2
    assert made.unplaced == ((0, 2, LIMIT),)


@pytest.mark.parametrize(
    ("asked", "limit"), [((100, 1), amounts(4000)), ((500, 0.5), amounts(0, 8))]
)
def test_where_cpu_or_memory_is_limited_nodes_have_more_of_the_other(
    asked: tuple[int, float], limit: Resources
) -> None:
    shapes = (
        shape("even", 60_000, cores=2, gib=4),
        shape("roomy", 350_000, cores=2, gib=16),
        shape("fast", 400_000, cores=8, gib=8),
    )
    question = problem([pod(*asked, 14)], shapes=shapes, limits={"default": limit})
    made = good(question)
    assert made.unplaced == ()
    assert len(made.nodes) == 1


def test_no_fewer_pods_are_placed_than_by_the_simple_packer() -> None:
    shapes = (shape("a", 130_500, cores=1, gib=32), shape("b", 222_000, cores=4, gib=32))
    classes = [pod(2000, 0.5, 3), pod(3000, 2, 2), pod(250, 8, 2)]
    asked = problem(classes, shapes=shapes, limits={"default": amounts(4000)})
    made = good(asked)
    assert made.candidate == "simple"
    assert made.unplaced == ((0, 3, LIMIT), (1, 1, LIMIT))
    # Where that would take long, it is not tried.
    many = replace(asked, bins=(amounts(),) * 10_000, compatible_bins=(1,) * 3)
    assert sum(count for _, count, _ in good(many).unplaced) > 4


def test_no_better_use_of_few_nodes_is_looked_for_when_time_is_up() -> None:
    shapes = (
        shape("m.large", 96_000, cores=2, gib=8, nodes=1),
        shape("m.xlarge", 250_000, cores=4, gib=16, nodes=1),
    )
    asked = problem([pod(1500, 2, 6)], shapes=shapes, limits={"default": amounts(nodes=2)})
    assert pack(asked, lambda: True).unplaced == ((0, 4, LIMIT),)


def test_limited_nodes_are_large_where_that_saves_more_on_those_of_another_owner() -> None:
    shapes = (
        shape("m.large", 20_000, cores=2, gib=8, nodes=1, provisioner="few"),
        shape("m.xlarge", 50_000, cores=4, gib=16, nodes=1, provisioner="few"),
        shape("m.large", 96_000, cores=2, gib=8, nodes=1, provisioner="many"),
    )
    asked = problem([pod(1500, 2, 6)], shapes=shapes, limits={"few": amounts(nodes=2)})
    assert good(asked).cost_micros_per_hour == 2 * 50_000 + 2 * 96_000
    cheap = (*shapes[:2], shape("m.large", 21_000, cores=2, gib=8, nodes=1, provisioner="many"))
    asked = problem([pod(1500, 2, 6)], shapes=cheap, limits={"few": amounts(nodes=2)})
    assert good(asked).cost_micros_per_hour == 2 * 20_000 + 4 * 21_000


@pytest.mark.parametrize("room", [Resources((("cpu", 0),)), Resources((("cpu", -5),))])
def test_an_exhausted_limit_admits_nothing(room: Resources) -> None:
    made = good(problem([pod(1000, 1, 2)], limits={"default": room}))
    assert made.nodes == ()
    assert made.unplaced == ((0, 2, LIMIT),)


def test_tight_limits_drop_large_options_before_pods() -> None:
    shapes = (
        shape("m.large", 96_000, cores=2, gib=8),
        shape("m.xlarge", 120_000, cores=4, gib=16),
    )
    asked = problem([pod(1900, 7, 3)], shapes=shapes, limits={"default": amounts(cpu=6000)})
    made = good(asked)
    assert made.unplaced == ()
    assert {len(node.options) for node in made.nodes} == {1}


def test_default_settings_pass_the_checker() -> None:
    classes = [pod(c, m, 30) for c in (300, 1100) for m in (0.5, 3)]
    made = good(problem(classes, settings=PackingSettings()))
    assert made.unplaced == ()


def test_a_refused_plan_is_replaced_by_the_simple_packers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem([pod(1000, 2, 9), pod(300, 1, 5)])
    honest = packer.pack_unchecked(asked)
    monkeypatch.setattr(
        packer, "pack_unchecked", lambda *_, **__: replace(honest, cost_micros_per_hour=1)
    )
    made = pack(asked)
    assert "the nodes cost" in made.fallback
    assert made.candidate == "simple"
    assert check(asked, made) == ()


def test_memory_per_pod_is_exact_to_the_byte() -> None:
    asked = problem([pod(100, 2, 1)], shapes=(shape("s", 1, cores=1, gib=2),))
    assert good(asked).unplaced == ()
    over = [replace(asked.classes[0], requests=Resources.of(cpu=100, memory=2 * GIB + 1, pods=1))]
    assert good(replace(asked, classes=tuple(over))).unplaced == ((0, 1, NO_NODE_TYPE),)


def test_one_provisioners_limit_does_not_hold_up_another() -> None:
    shapes = (
        shape("m.large", 96_000, cores=2, gib=8, provisioner="first"),
        shape("c.large", 80_000, cores=2, gib=4, provisioner="second"),
    )
    asked = problem(
        [pod(1500, 6, 5), pod(1500, 3, 5)],
        shapes=shapes,
        compatible=(1, 2),
        limits={"first": amounts(cpu=6000)},
    )
    made = good(asked)
    assert made.unplaced == ((0, 2, LIMIT),)
    simple = pack_first_fit(asked, frozenset({0, 1}))
    assert check(asked, simple) == ()
    assert simple.unplaced == ((0, 2, LIMIT),)

from shared.model.ec2.instance_types import CapacityType
from shared.model.values import replace
from shared.packing.checker import check
from shared.packing.packer import pack_unchecked
from shared.packing.problem import Packing, PackingSettings
from tests.unit.packing.packing_cases import (
    PLAIN,
    amounts,
    good,
    names,
    pod,
    problem,
    shape,
)

ONE_GROUP = replace(PLAIN, max_launch_groups=1, fewer_groups_permille=10_000)


def test_options_are_of_one_capacity_type_with_the_other_as_fallback() -> None:
    shapes = (
        shape("m.large", {"on-demand": 96_000, "spot": 40_000}, cores=2, gib=8, zones=("a", "b")),
        shape("m.xlarge", {"on-demand": 192_000, "spot": 55_000}, cores=4, gib=16),
        shape("m.2xlarge", {"on-demand": 384_000, "spot": 155_000}, cores=8, gib=32),
    )
    asked = problem([pod(1500, 6, 1)], shapes=shapes)
    (node,) = good(asked).nodes
    assert node.options == ((0, 0), (0, 1), (1, 0))
    assert node.fallback_options == ((0, 2), (0, 3))
    kinds = {asked.node_types[s].offerings[p].capacity_type for s, p in node.options}
    assert kinds == {CapacityType.SPOT}


def test_first_fit_is_taken_where_it_costs_less() -> None:
    families = (("c", 2, 42_500, 0), ("r", 8, 63_000, 0), ("g", 4, 131_500, 1))
    shapes = [
        shape(f"{name}{n}", price * n, cores=n, gib=gib * n, nvidia_com__gpu=gpus)
        for name, gib, price, gpus in families
        for n in (2, 8, 32)
    ]
    classes = [pod(7000, 8, 10), pod(1000, 2, 10), pod(1000, 1, 10)]
    made = good(problem(classes, shapes=shapes, compatible=(0b111000111, 0b111111111, 0b111111111)))
    assert made.candidate == "first fit"
    assert made.cost_micros_per_hour == 3_825_000


def test_at_most_so_many_options_are_passed() -> None:
    zones = [f"z{n}" for n in range(9)]
    shapes = (shape("m.large", 96_000, cores=2, gib=8, zones=zones),)
    settings = replace(PLAIN, max_options=4)
    (node,) = good(problem([pod(500, 1, 1)], shapes=shapes, settings=settings)).nodes
    assert len(node.options) == 4


def test_diversification_prefers_a_shape_with_alternatives() -> None:
    shapes = (
        shape("rare.4xlarge", {"spot": 500_000}, cores=16, gib=64),
        shape("m5.2xlarge", {"spot": 255_000}, cores=8, gib=32, zones="abcdef"),
        shape("m6.2xlarge", {"spot": 256_000}, cores=8, gib=32, zones="abcdef"),
        shape("m7.2xlarge", {"spot": 257_000}, cores=8, gib=32, zones="abcdef"),
    )
    plain = problem([pod(1000, 4, 160), pod(500, 2, 4)], shapes=shapes)
    assert "rare.4xlarge" in names(plain, good(plain))
    settings = replace(PLAIN, diversification_k_spot=15)
    spread = replace(plain, settings=settings)
    made = good(spread)
    assert set(names(spread, made)) == {"m5.2xlarge"}
    assert all(len(node.options) >= 15 for node in made.nodes)


def test_a_weight_makes_a_type_look_more_expensive() -> None:
    shapes = (
        shape("old.large", 90_000, cores=2, gib=8),
        shape("new.large", 96_000, cores=2, gib=8),
    )
    settings = replace(PLAIN, type_weights={"old.large": 120})
    asked = problem([pod(1000, 2, 1), pod(900, 1, 1)], shapes=shapes, settings=settings)
    made = good(asked)
    # Either may be launched: both hold the pods, and the list is by true price.
    assert {shape for shape, _ in made.nodes[0].options} == {0, 1}


def test_few_launch_groups_cost_little_and_hold() -> None:
    classes = [pod(c, m, 7) for c in (300, 1100, 1900) for m in (0.5, 3, 15)]

    def planned(settings: PackingSettings) -> Packing:
        # Without the plan under the defaults, which each of them would have as a candidate.
        asked = problem(classes, settings=settings)
        made = pack_unchecked(asked)
        assert check(asked, made) == ()
        return made

    free = planned(replace(PLAIN, max_launch_groups=0))
    few = planned(ONE_GROUP)
    assert len({node.options for node in free.nodes}) > 1
    assert len({node.options for node in few.nodes}) == 1
    assert few.cost_micros_per_hour >= free.cost_micros_per_hour
    # One group costs 5 % more: there are more groups if they may cost less than that.
    for permille in (0, 5, 20):
        some = planned(replace(ONE_GROUP, fewer_groups_permille=permille))
        assert len({node.options for node in some.nodes}) > 1
        assert some.cost_micros_per_hour <= free.cost_micros_per_hour * (1 + permille / 1000)


def test_launch_groups_that_cannot_merge_are_kept() -> None:
    shapes = (shape("amd", 90_000, cores=2, gib=8), shape("arm", 80_000, cores=2, gib=8))
    classes = [pod(1000, 2, 3), pod(900, 2, 3)]
    settings = ONE_GROUP
    asked = problem(classes, shapes=shapes, compatible=(1, 2), settings=settings)
    assert len({node.options for node in good(asked).nodes}) == 2


def test_a_node_fee_makes_fewer_nodes() -> None:
    classes = [pod(900, 1.5, 20), pod(700, 3, 9)]
    many = good(problem(classes))
    few = good(problem(classes, settings=replace(PLAIN, node_fee_micros_per_hour=500_000)))
    assert len(few.nodes) < len(many.nodes)


def test_leftover_room_is_worth_something_in_a_small_batch() -> None:
    shapes = (
        shape("small", 40_000, cores=1, gib=2),
        shape("roomy", 130_000, cores=4, gib=8),
    )
    full = [amounts() for n in range(10)]
    asked = problem([pod(900, 1.5, 2), pod(700, 1, 1)], shapes=shapes, bins=full)
    valued = replace(asked, settings=replace(PLAIN, leftover_value_percent=90))
    large = replace(valued, settings=replace(valued.settings, small_batch_pods=2))
    assert names(asked, good(asked)) == ["small"] * 3
    assert names(valued, good(valued)) == ["roomy"]
    first = replace(valued, bins=(), compatible_bins=(0, 0))
    assert names(large, good(large)) == ["small"] * 3
    assert names(first, good(first)) == ["small"] * 3


def test_a_thorough_search_never_costs_more() -> None:
    classes = [pod(c, m, 11) for c in (300, 1100, 1900) for m in (0.5, 3, 15)]
    quick = good(problem(classes, settings=replace(PLAIN, improve_iterations=0)))
    settings = replace(PLAIN, thorough=True)
    assert good(problem(classes, settings=settings)).cost_micros_per_hour <= (
        quick.cost_micros_per_hour
    )

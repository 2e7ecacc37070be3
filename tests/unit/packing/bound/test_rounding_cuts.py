"""Machines are bought whole: the bound knows it."""

from shared.model.values import replace
from shared.packing.bound.free_capacity import FreeCapacity
from shared.packing.bound.per_bin_type import bound_per_bin_type
from shared.packing.bound.rounding_cuts import with_rounding_cuts
from tests.unit.packing.packing_cases import SHAPES, good, pod, problem, shape
from tests.unit.packing.search.test_aggregate import ground_of

LARGE = shape("p5", 98_000_000, cores=192, gib=2048, nvidia_com__gpu=8)
SMALL = shape("g4", 526_000, cores=4, gib=16, nvidia_com__gpu=1)


def test_half_a_machine_is_not_for_sale() -> None:
    # 20 GPUs in fours: three machines of eight, not two and a half.
    classes = [pod(4000, 16, 5, nvidia_com__gpu=4), pod(500, 1, 70), pod(700, 2, 30)]
    made = good(problem(classes, shapes=(*SHAPES, LARGE, SMALL)))
    assert made.cost_micros_per_hour >= 3 * 98_000_000
    assert made.lower_bound_micros_per_hour >= 3 * 98_000_000


def test_few_pods_with_gpus_get_the_bound_that_knows_it() -> None:
    made = good(problem([pod(500, 1, 3), pod(900, 30, 2, nvidia_com__gpu=2)], (*SHAPES, LARGE)))
    assert made.lower_bound_micros_per_hour >= 98_000_000


def test_pods_of_which_no_two_fit_one_node_are_counted_one_by_one() -> None:
    asked = problem([pod(900, 1, 5, nvidia_com__gpu=5), pod(300, 1, 9)], shapes=(LARGE,))
    priced, counts = ground_of(asked)
    fits = {0: 1, 1: 1}
    demand, more, kinds, fits = with_rounding_cuts(
        priced.demand, counts, priced.bin_types, fits, [(0, 3.2)]
    )
    assert more[-1] == 5
    assert demand.names[-1] == "nodes/0"
    assert [kind.allocatable[-1] for kind in kinds] == [1]
    assert fits[2] == 1


def test_nothing_is_imagined_where_the_programme_buys_enough() -> None:
    priced, counts = ground_of(problem([pod(900, 1, 5)], shapes=SHAPES[:2]))
    plenty = [(0, 9.0), (1, 9.0)]
    _, whole, *_ = with_rounding_cuts(priced.demand, counts, priced.bin_types, {0: 3}, plenty)
    assert whole == counts
    # Classes that fit nothing are on the bins.
    _, nowhere, *_ = with_rounding_cuts(priced.demand, counts, priced.bin_types, {0: 0}, plenty)
    assert nowhere == counts


def test_room_on_bins_makes_whole_nodes_uncertain() -> None:
    asked = problem([pod(900, 1, 5, nvidia_com__gpu=5)], shapes=(LARGE,))
    priced, counts = ground_of(asked)
    mix = priced.dual_prices.mix
    prices = priced.prices
    alone = bound_per_bin_type(priced.demand, counts, priced.bin_types, prices, mix=mix)
    rooms = (FreeCapacity(amounts=(0, 0, 0, 8), classes=(0,), part=(0,)),)
    beside = bound_per_bin_type(
        priced.demand, counts, priced.bin_types, prices, mix=mix, free_capacities=rooms
    )
    assert alone >= 5 * 97_999_999
    assert beside < alone


def test_a_bound_for_whole_nodes_is_never_above_the_plan() -> None:
    for count in range(1, 12):
        classes = [pod(4000, 16, count, nvidia_com__gpu=n) for n in (1, 3)]
        made = good(replace(problem([*classes, pod(500, 1, 70)], (*SHAPES, LARGE, SMALL))))
        assert made.lower_bound_micros_per_hour <= made.cost_micros_per_hour

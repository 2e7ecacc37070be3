"""The parts of the packer, where the whole does not reach."""

from typing import Any

import pytest

from shared.model.values import replace
from shared.packing.bin_types import find_bin_types, undominated
from shared.packing.bound import linear_program, per_bin_type
from shared.packing.bound.free_capacity import FreeCapacities, FreeCapacity
from shared.packing.bound.linear_program import solve_by_simplex
from shared.packing.bound.per_bin_type import bound_per_bin_type
from shared.packing.bound.resource_prices import find_prices, lower_bound
from shared.packing.demand import read_demand
from shared.packing.packer import pack
from shared.packing.search.completion import build_completion
from shared.packing.search.fill_node import FillRules, PodsLeft, fill
from shared.packing.search.greedy import build_greedy
from shared.packing.seeded_random import SeededRandom
from shared.packing.usable_capacity import amounts_of
from tests.unit.packing.packing_cases import PLAIN, SHAPES, pod, problem, shape
from tests.unit.packing.search.test_aggregate import ground_of


def one_room(*amounts: int) -> FreeCapacities:
    """Return free room for the first two classes, not examined yet."""
    return (FreeCapacity(amounts=amounts, classes=(0, 1), part=(0, 1)),)


def test_draws_repeat_and_cover() -> None:
    one, other = SeededRandom(7), SeededRandom(7)
    assert [one.below(10) for _ in range(50)] == [other.below(10) for _ in range(50)]
    assert {one.below(3) for _ in range(50)} == {0, 1, 2}
    assert all(0 <= one.part() < 1 for _ in range(50))


def test_weighted_draws_follow_the_weights() -> None:
    draws = SeededRandom(1)
    assert {draws.weighted([0.0, 1.0, 0.0]) for _ in range(20)} == {1}
    assert {draws.weighted([0.0, 0.0]) for _ in range(50)} == {0, 1}
    # Rounding may leave a rest: the last position takes it.
    assert draws.weighted([float("nan"), float("nan")]) == 1


def test_the_programme_finds_known_optima() -> None:
    mix, duals = solve_by_simplex([3.0, 5.0], [[1.0, 0.0], [0.0, 2.0]], [4.0, 12.0])
    assert mix == [(0, 4.0), (1, 6.0)]
    assert duals == [3.0, 2.5]
    assert solve_by_simplex([], [], [1.0]) == ([], [0.0])
    assert solve_by_simplex([1.0], [[0.0]], [1.0]) == ([], [0.0])


def test_methods_that_turn_in_circles_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem([pod(c, m, 400) for c in (300, 900) for m in (0.5, 3)])
    exact = pack(asked)
    monkeypatch.setattr(linear_program, "_MOST_STEPS", 1)
    monkeypatch.setattr(linear_program, "_MOST_STEPS_PER_ROW", 0)
    monkeypatch.setattr(per_bin_type, "_FILLINGS", 2)
    rough = pack(asked)
    assert rough.fallback == ""
    assert 0 < rough.lower_bound_micros_per_hour <= exact.cost_micros_per_hour


def test_a_column_that_helps_nothing_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem([pod(c, m, 400) for c in (300, 900) for m in (0.5, 3)])
    monkeypatch.setattr(linear_program, "_best_column", lambda *_: (1.0, [(0, 0.0)], 0))
    assert pack(asked).fallback == ""


def test_surplus_enters_where_a_price_fell_below_zero() -> None:
    usable = linear_program.Usable([(0,), (1,)], [[(1, 0), (1, 1)]])
    found = linear_program._best_column(usable, [10], [3.0, -2.0], [1, 1])
    assert found == (0.0, [(1, -1.0)], -1)


def test_pods_that_all_differ_in_extras_get_the_simpler_bound_alone() -> None:
    slots: list[dict[str, Any]] = [{f"slot__{n}": 1} for n in range(45)]
    shapes = [shape(f"m{n}", 96_000, cores=2, gib=8, **slots[n]) for n in range(45)]
    classes = [pod(100, 0.1, 9, **{f"slot__{n}": 1}) for n in range(45)]
    asked = problem(classes, shapes=shapes, compatible=tuple(1 << n for n in range(45)))
    demand = read_demand(asked)
    kinds = undominated(
        find_bin_types(asked, demand, range(45), amounts_of(asked.node_types, demand), PLAIN), {}
    )
    prices = [kind.price for kind in kinds]
    assert bound_per_bin_type(demand, [9] * 45, kinds, prices) == 0


def test_a_plan_above_the_limit_is_abandoned() -> None:
    priced, counts = ground_of(problem([pod(c, m, 40) for c in (300, 900) for m in (0.5, 3)]))
    plan = build_greedy(priced, counts, FillRules())
    assert plan is not None
    cost = priced.cost(plan)
    assert build_greedy(priced, counts, FillRules(), 1) is None
    assert build_greedy(priced, counts, FillRules(), cost * 99 // 100) is None
    assert build_greedy(priced, counts, FillRules(), cost + 1) is not None
    assert build_completion(priced, list(counts), FillRules(), cost // 2) is None


def test_nothing_left_needs_no_node() -> None:
    priced, counts = ground_of(problem([pod(600, 1, 2)]))
    assert build_completion(priced, [0] * len(counts), FillRules(), 0) == []


def test_a_last_node_may_be_cheaper_than_what_returns_most() -> None:
    priced, counts = ground_of(problem([pod(900, 1.5, 3), pod(400, 3, 2), pod(70, 0.2, 3)]))
    plan = build_greedy(priced, counts, FillRules(share=0.0))
    assert plan is not None
    assert build_greedy(priced, counts, FillRules(), priced.cost(plan) // 2) is None


def test_shares_too_large_for_the_room_are_shrunk() -> None:
    # A few large pods: rounding alone can exceed the node.
    for large in range(1, 9):
        asked = problem([pod(5000, 5, large), pod(5100, 5, large), pod(5200, 40, large)])
        priced, counts = ground_of(asked)
        for kind in range(len(priced.bin_types)):
            contents = fill(PodsLeft(priced, counts, FillRules()), kind)
            needs, _ = priced.needs(contents)
            room = priced.bin_types[kind].allocatable
            assert all(need <= have for need, have in zip(needs, room, strict=True))


def test_many_classes_are_sampled_when_topping_up() -> None:
    classes = [pod(100 + 7 * n, 0.2 + 0.03 * n, 1) for n in range(240)]
    asked = problem(classes)
    made = pack(asked)
    assert sum(n for node in made.nodes for _, n in node.contents) == 240
    assert made.cost_micros_per_hour <= made.lower_bound_micros_per_hour * 1.1
    priced, counts = ground_of(asked)
    big = max(range(len(priced.bin_types)), key=lambda t: priced.bin_types[t].allocatable)
    assert fill(PodsLeft(priced, counts, FillRules(share=0.0, scarcity_exponent=2.0)), big)


def test_shapes_for_pods_that_are_not_there_do_not_weaken_the_bound() -> None:
    shapes = (shape("costly", 38_000, cores=1, gib=4), shape("cheap", 34_000, cores=1, gib=2))
    asked = problem([pod(600, 1, 2), pod(600, 1, 0)], shapes=shapes, compatible=(1, 3))
    demand = read_demand(asked)
    kinds = find_bin_types(asked, demand, range(2), amounts_of(asked.node_types, demand), PLAIN)
    prices = [kind.price for kind in kinds]
    worth = find_prices(demand, [2, 0], kinds, prices)
    assert lower_bound(demand, [2, 0], kinds, worth) == 76_000


def test_too_many_signatures_are_merged_into_a_weaker_bound() -> None:
    shapes = [shape(f"m{n}", 90_000 + n, cores=2, gib=8) for n in range(60)]
    classes = [pod(1000 + n, 2, 3) for n in range(60)]
    masks = tuple(1 << n for n in range(60))
    settings = replace(PLAIN, improve_iterations=0, max_launch_groups=0)
    asked = problem(classes, shapes=shapes, compatible=masks, settings=settings)
    made = pack(asked)
    assert made.unplaced == ()
    assert 0 < made.lower_bound_micros_per_hour <= made.cost_micros_per_hour


def test_too_many_rows_leave_the_least_wanted_out() -> None:
    slots: dict[str, Any] = {f"slot__{n}": 1 for n in range(100)}
    shapes = [shape("m.large", 96_000, cores=2, gib=8, **slots)]
    classes = [pod(100, 0.1, 1 + n % 3, **{f"slot__{n}": 1}) for n in range(100)]
    made = pack(problem(classes, shapes=shapes))
    assert made.unplaced == ()
    assert made.lower_bound_micros_per_hour <= made.cost_micros_per_hour


def test_too_many_resources_leave_the_least_wanted_out() -> None:
    devices: dict[str, Any] = {f"vendor.example__{n}": 1 for n in range(60)}
    shapes = [shape("m.large", 96_000, cores=2, gib=8, **devices)]
    classes = [pod(100, 0.1, 1 + n % 3, **{f"vendor.example__{n}": 1}) for n in range(60)]
    made = pack(problem(classes, shapes=shapes))
    assert made.unplaced == ()
    assert made.lower_bound_micros_per_hour == 6 * 96_000


def test_many_classes_of_all_proportions_get_the_simpler_bound_alone() -> None:
    asked = problem([pod(100 + 50 * n, 8 / (n + 1), 3) for n in range(30)])
    demand = read_demand(asked)
    kinds = undominated(
        find_bin_types(
            asked, demand, range(len(asked.node_types)), amounts_of(asked.node_types, demand), PLAIN
        ),
        {},
    )
    prices = [kind.price for kind in kinds]
    assert bound_per_bin_type(demand, [3] * 30, kinds, prices) == 0


def test_a_shape_without_memory_is_not_bought() -> None:
    odd = shape("odd", 1, cores=2, gib=0)
    asked = problem([pod(100, 0, 1), pod(100, 3, 0)], shapes=(odd, SHAPES[1]))
    made = pack(asked)
    assert [asked.node_types[node.node_type].instance_type for node in made.nodes] == ["c.large"]


def test_identical_pods_pass_over_shapes_they_may_not_use() -> None:
    shapes = (shape("arm", 80_000, cores=2, gib=8), shape("amd", 90_000, cores=2, gib=8))
    asked = problem([pod(1000, 2, 4), pod(1000, 2, 0)], shapes=shapes, compatible=(2, 3))
    assert pack(asked).cost_micros_per_hour == 180_000


def test_amounts_below_zero_count_as_nothing() -> None:
    odd = pod(500, 1, 2)
    odd = replace(odd, requests=replace(odd.requests, items=(("cpu", -5), ("pods", 1))))
    assert pack(problem([odd, pod(500, 1, 1)])).unplaced == ()


def test_the_tighter_bound_knows_that_a_pod_needs_one_machine() -> None:
    # Half of cpu-heavy and memory-heavy machines would do, were pods divisible.
    shapes = (
        shape("c", 100_000, cores=16, gib=16),
        shape("r", 100_000, cores=1, gib=256),
    )
    asked = problem([pod(1000, 8, 40), pod(2000, 16, 9)], shapes=shapes)
    demand = read_demand(asked)
    kinds = undominated(
        find_bin_types(asked, demand, range(2), amounts_of(asked.node_types, demand), PLAIN), {}
    )
    counts = [pod_class.count for pod_class in asked.classes]
    prices = [kind.price for kind in kinds]
    plain = lower_bound(demand, counts, kinds, find_prices(demand, counts, kinds, prices))
    assert bound_per_bin_type(demand, counts, kinds, prices) > 2 * plain
    assert (
        bound_per_bin_type(
            demand, counts, kinds, prices, free_capacities=one_room(1000, 8 << 30, 1)
        )
        > plain
    )


def test_the_tighter_bound_is_abandoned_where_bins_fit_no_pod() -> None:
    shapes = (
        shape("amd", 90_000, cores=2, gib=8),
        shape("arm", 80_000, cores=2, gib=8),
    )
    asked = problem([pod(500, 1, 40), pod(700, 1, 9)], shapes=shapes, compatible=(1, 2))
    demand = read_demand(asked)
    kinds = undominated(
        find_bin_types(asked, demand, range(2), amounts_of(asked.node_types, demand), PLAIN), {}
    )
    assert (
        bound_per_bin_type(
            demand, [40, 9], kinds, [90_000, 80_000], free_capacities=one_room(500, 1 << 30, 1)
        )
        == 0
    )


def test_many_clusters_with_extras_are_distinguished_less_finely() -> None:
    gpu = shape("g", 526_000, cores=48, gib=192, nvidia_com__gpu=8)
    classes = [pod(100 * (n + 1), 0.4 * (n % 11 + 1), 2) for n in range(60)]
    classes += [pod(900, 2, 2, nvidia_com__gpu=1)]
    asked = problem(classes, shapes=(*SHAPES, gpu))
    demand = read_demand(asked)
    kinds = undominated(
        find_bin_types(
            asked, demand, range(len(asked.node_types)), amounts_of(asked.node_types, demand), PLAIN
        ),
        {},
    )
    prices = [kind.price for kind in kinds]
    counts = [pod_class.count for pod_class in asked.classes]
    bound = bound_per_bin_type(demand, counts, kinds, prices)
    assert 0 < bound <= pack(asked).cost_micros_per_hour


@pytest.mark.parametrize("seed", range(4))
def test_improvement_never_makes_a_plan_more_expensive(seed: int) -> None:
    asked = problem([pod(c, m, 6) for c in (900, 1700) for m in (1, 6)], seed=seed)
    still = replace(asked, settings=replace(PLAIN, improve_iterations=0))
    assert pack(asked).cost_micros_per_hour <= pack(still).cost_micros_per_hour


def test_a_row_that_a_kind_serves_gets_no_machine_of_its_own() -> None:
    # The small machine has an eighth of the places and costs as much as the large one.
    shapes = (
        shape("few", 34_000, cores=1, gib=2, pods=8),
        shape("many", 34_000, cores=1, gib=2, pods=58),
    )
    asked = problem([pod(0, 0, 1), pod(0, 0, 0)], shapes=shapes, compatible=(1, 3))
    demand = read_demand(asked)
    kinds = find_bin_types(asked, demand, range(2), amounts_of(asked.node_types, demand), PLAIN)
    worth = find_prices(demand, [1, 0], kinds, [kind.price for kind in kinds])
    assert lower_bound(demand, [1, 0], kinds, worth) == 34_000 // 8

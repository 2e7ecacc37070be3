"""The bound from patterns: it knows that a pod is on one machine, and may be stopped."""

import random
from itertools import product
from math import inf

import pytest

from shared.packing import best_bound
from shared.packing.best_bound import least_cost
from shared.packing.bin_types import BinType, find_bin_types
from shared.packing.bound import listed_loads, patterns
from shared.packing.bound.free_capacity import NO_FREE_CAPACITY, FreeCapacity
from shared.packing.bound.least_cost import LeastCost
from shared.packing.bound.linear_program import solve_by_simplex
from shared.packing.bound.patterns import pattern_bound
from shared.packing.bound.resource_prices import find_prices
from shared.packing.bound.whole_loads import Knapsack
from shared.packing.demand import read_demand
from shared.packing.problem import PackingProblem
from shared.packing.usable_capacity import amounts_of
from tests.unit.packing.packing_cases import GIB, PLAIN, SHAPES, good, pod, problem, shape

LARGE = shape("large", 1_000_000, cores=100, gib=400)
COARSE = problem([pod(64_000, 100, 10), pod(48_000, 100, 10)], shapes=(LARGE,))
STEPS = 1_000_000


@pytest.fixture(params=["listed", "searched"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the best load of a machine is found."""
    if request.param == "searched":
        monkeypatch.setattr(listed_loads, "_MOST_LOADS", 0)
    return str(request.param)


def bound(
    asked: PackingProblem, rooms: tuple[FreeCapacity, ...] = NO_FREE_CAPACITY, steps: int = STEPS
) -> LeastCost:
    demand = read_demand(asked)
    amounts = amounts_of(asked.node_types, demand)
    kinds = find_bin_types(asked, demand, range(len(asked.node_types)), amounts, PLAIN)
    counts = [pod_class.count for pod_class in asked.classes]
    mix = find_prices(demand, counts, kinds, [kind.price for kind in kinds]).mix
    return pattern_bound(demand, counts, kinds, mix, rooms, steps)


def machine(*pods: tuple[int, int, int], cores: int = 100, gib: int = 400) -> Knapsack:
    """Return a machine for classes of (how many, cores, GiB)."""
    kind = BinType("default", (cores, gib, 20), 1, (0,), 1_000, 1_000)
    needs = [(k, many, [(0, cpu), (1, gib), (2, 1)]) for k, (many, cpu, gib) in enumerate(pods)]
    return Knapsack(0, kind, needs)


@pytest.mark.usefixtures("by")
def test_two_pods_that_do_not_fit_one_machine_together_need_two() -> None:
    found = bound(COARSE)
    assert found.close
    assert 14_950_000 <= found.micros_per_hour <= 15_000_000
    assert good(COARSE).lower_bound_micros_per_hour == pytest.approx(15_000_000, rel=0.005)


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("steps", [0, 30, 300, 3_000])
def test_a_proof_that_is_stopped_leaves_a_bound(steps: int) -> None:
    rng = random.Random(3)
    pods = [pod(rng.randint(9, 60) * 1000, rng.randint(9, 90), rng.randint(1, 9)) for _ in range(9)]
    asked = problem(pods, shapes=(LARGE, shape("other", 480_000, cores=48, gib=300)))
    whole = bound(asked)
    stopped = bound(asked, steps=steps)
    assert whole.close
    assert 0 < stopped.micros_per_hour <= whole.micros_per_hour * 1.004
    assert stopped.close == (stopped.micros_per_hour * 1.01 >= whole.micros_per_hour)


@pytest.mark.usefixtures("by")
def test_room_that_is_there_takes_off_what_it_can_hold() -> None:
    room = FreeCapacity(amounts=(100_000, 400 * GIB, 110), classes=(0, 1), part=(0, 1))
    found = bound(COARSE, (room,))
    assert not found.close
    assert 13_000_000 <= found.micros_per_hour <= 14_000_000
    none = FreeCapacity(amounts=(0, 0, 0), classes=(0, 1), part=(0, 1))
    assert bound(COARSE, (none, none)).micros_per_hour == bound(COARSE).micros_per_hour


@pytest.mark.usefixtures("by")
def test_room_is_not_priced_for_pods_that_ask_for_nothing_with_a_price() -> None:
    asked = problem([pod(64_000, 100, 3), pod(0, 0, 9)], shapes=(LARGE,))
    room = FreeCapacity(amounts=(100_000, 400 * GIB, 110), classes=(0, 1), part=(0, 1))
    assert bound(asked, (room,)).micros_per_hour <= 3_000_000


def test_room_that_holds_pods_without_worth_alone_takes_nothing_off() -> None:
    asked = problem([pod(64_000, 100, 3), pod(0, 0, 9)], shapes=(LARGE,))
    room = FreeCapacity(amounts=(100_000, 400 * GIB, 110), classes=(1,), part=(0, 1))
    assert bound(asked, (room,)).micros_per_hour == bound(asked).micros_per_hour


def test_loads_worth_more_than_their_machine_lower_the_prices_of_their_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = problem([pod(64_000, 100, 10), pod(30_000, 100, 10)], shapes=(LARGE,))
    assert bound(asked) == (9_999_999, True, False)
    # A pod of 30 is worth a third of a machine alone, and one of 64 all of it.
    monkeypatch.setattr(patterns, "_LEAST_EXCESS", 9.0)
    assert bound(asked) == (9_999_999, False, False)


def test_many_classes_and_fine_pods_are_left_to_prices_of_resources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = problem([pod(64_000, 100, 30), pod(48_000, 100, 30)], shapes=(LARGE,))
    closely = least_cost(asked, [30, 30], 45_000_000)
    assert (closely.micros_per_hour > 44_900_000, closely.close) == (True, True)
    monkeypatch.setattr(best_bound, "_MOST_CLASSES", 1)
    assert least_cost(asked, [30, 30], 45_000_000) == (34_999_999, False, False)
    monkeypatch.setattr(best_bound, "_MOST_CLASSES", 2)
    monkeypatch.setattr(best_bound, "_FINE", 0)
    assert least_cost(asked, [30, 30], 45_000_000) == (34_999_999, False, False)


def test_the_best_load_is_that_of_an_exhaustive_search() -> None:
    rng = random.Random(7)
    for _ in range(60):
        pods = [(rng.randint(1, 3), rng.randint(1, 60), rng.randint(1, 250)) for _ in range(5)]
        values = [rng.randint(0, 40) * cpu + rng.randint(0, 9) * gib for _, cpu, gib in pods]
        one = machine(*pods)
        one.reprice([float(value) for value in values])
        found = one.best_load(values, 0, STEPS)
        worths = [
            sum(n * value for n, value in zip(load, values, strict=True))
            for load in product(*(range(many + 1) for many, _, _ in pods))
            if sum(n * cpu for n, (_, cpu, _) in zip(load, pods, strict=True)) <= 100
            and sum(n * gib for n, (_, _, gib) in zip(load, pods, strict=True)) <= 400
        ]
        assert found.is_complete
        assert found.value_bound == max(worths)
        assert sum(n * values[k] for k, n in found.contents.items()) == max(worths)
        # Stopped at once, it says no less; asked for more than there is, it finds nothing.
        assert one.best_load(values, 0, 0).value_bound >= max(worths)
        assert one.best_load(values, max(worths), STEPS).contents == {}


def test_once_a_load_is_found_the_search_for_a_better_one_may_be_short() -> None:
    rng = random.Random(11)
    pods = [(4, rng.randint(7, 30), rng.randint(20, 90)) for _ in range(12)]
    values = [37 * cpu + 5 * gib + rng.randint(0, 90) for _, cpu, gib in pods]
    one = machine(*pods)
    one.reprice([float(value) for value in values])
    quick, whole = one.best_load(values, 0, STEPS, 0), one.best_load(values, 0, STEPS)
    assert quick.contents
    assert quick.steps < whole.steps
    assert quick.value_bound >= whole.value_bound


def test_pods_that_all_fit_have_no_price_but_their_own() -> None:
    one = machine((1, 10, 10), (2, 20, 20))
    one.reprice([5.0, 7.0])
    assert one.weights() == []
    assert one.fractional_value([5.0, 7.0]) == 19.0
    assert one.best_load([5, 7], 0, STEPS).contents == {0: 1, 1: 2}


def test_of_a_column_no_more_is_used_than_there_is() -> None:
    mix, duals = solve_by_simplex([3.0, 2.0], [[1.0], [1.0]], [1.0], [0.5, 2.0])
    assert mix == [(0, 0.5), (1, 0.5)]
    assert duals == [2.0]
    assert solve_by_simplex([3.0, 2.0], [[0.2], [0.2]], [1.0], [1.0, 1.0]) == (
        [(0, 1.0), (1, 1.0)],
        [0.0],
    )
    # What takes nothing has no end, and is left alone.
    assert solve_by_simplex([1.0], [[0.0]], [1.0]) == ([], [0.0])
    assert solve_by_simplex([1.0], [[0.0]], [1.0], [inf]) == ([], [0.0])


def test_fillings_within_amounts_are_worth_what_their_prices_say() -> None:
    rng = random.Random(5)
    for _ in range(200):
        columns = [[rng.uniform(0.05, 1.0) for _ in range(3)] for _ in range(8)]
        values = [rng.uniform(0.1, 1.0) * sum(column) for column in columns]
        most = [float(rng.randint(1, 3)) for _ in columns]
        left = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        mix, duals = solve_by_simplex(
            [*values, 0.0, 0.0, 0.0], [*columns, *left], [1.0] * 3, [*most, 9.0, 9.0, 9.0]
        )
        mix = [(j, part) for j, part in mix if j < len(most)]
        worth = sum(values[j] * part for j, part in mix)
        beyond = [
            max(value - sum(d * a for d, a in zip(duals, column, strict=True)), 0.0) * top
            for value, column, top in zip(values, columns, most, strict=True)
        ]
        assert worth == pytest.approx(sum(duals) + sum(beyond))
        assert all(0.0 <= part <= most[j] + 1e-9 for j, part in mix)


@pytest.mark.usefixtures("by")
def test_prices_of_small_machines_are_bounded_as_well() -> None:
    asked = problem([pod(900, 1, 30), pod(400, 3, 25), pod(1500, 12, 9)], shapes=SHAPES)
    made = good(asked)
    assert bound(asked).micros_per_hour <= made.cost_micros_per_hour

"""The lower bound for given pods and free room."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from shared.model.values import replace
from shared.packing import best_bound
from shared.packing.best_bound import least_cost
from shared.packing.bound import free_capacity, listed_loads, per_bin_type, whole_loads
from shared.packing.bound.linear_program import solve_by_simplex
from shared.packing.problem import PackingProblem
from tests.unit.packing.packing_cases import SHAPES, amounts, good, pod, problem, shape


def least(asked: PackingProblem) -> tuple[int, int]:
    made = good(asked)
    bought = [0] * len(asked.classes)
    for node in made.nodes:
        for k, n in node.contents:
            bought[k] += n
    cost = made.cost_micros_per_hour
    return least_cost(asked, bought, cost).micros_per_hour, cost


def test_room_for_one_class_takes_nothing_off_the_worth_of_another() -> None:
    shapes = (shape("costly", 900_000, cores=4, gib=16), shape("cheap", 30_000, cores=4, gib=16))
    rooms = tuple(amounts(64_000, 512, 110) for n in range(9))
    asked = problem([pod(3000, 12, 2), pod(1000, 2, 7)], shapes=shapes, compatible=(1, 2))
    bound, cost = least(replace(asked, bins=rooms, compatible_bins=(0, (1 << 9) - 1)))
    assert bound == cost == 1_800_000


def test_where_there_is_room_for_all_nothing_need_be_bought() -> None:
    rooms = (amounts(64_000, 512, 110),)
    asked = problem([pod(3000, 12, 2)], bins=rooms, compatible_bins=(1,))
    assert least_cost(asked, [2], 99) == (0, False, False)
    assert least_cost(asked, [0], 0) == (0, True, False)


def test_too_many_rooms_to_look_at_one_by_one_count_by_their_amounts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rooms = tuple(amounts(300, 1, 4) for n in range(3))
    asked = problem(
        [pod(250, 0.5, 400), pod(900, 3, 90), pod(400, 1, 300)],
        shapes=SHAPES,
        bins=rooms,
        compatible_bins=(7, 0, 0),
    )
    closely, cost = least(asked)
    monkeypatch.setattr(free_capacity, "_MOST_COUNTED", 0)
    roughly, _ = least(asked)
    assert 0.9 * cost < roughly <= closely <= cost


@pytest.mark.parametrize("module", [per_bin_type, whole_loads])
def test_of_many_resources_the_scarce_ones_are_priced(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []

    def counted(
        values: Sequence[float],
        columns: Sequence[Sequence[float]],
        room: Sequence[float],
        most: Sequence[float] = (),
    ) -> tuple[list[tuple[int, float]], list[float]]:
        rows.append(len(room))
        return solve_by_simplex(values, columns, room, most)

    monkeypatch.setattr(module, "solve_by_simplex", counted)
    if module is per_bin_type:
        monkeypatch.setattr(best_bound, "_MOST_CLASSES", 0)
    monkeypatch.setattr(listed_loads, "_MOST_LOADS", 0)
    ports: dict[str, Any] = {f"port_{number}": 1 for number in range(60)}
    shapes = [
        shape("small", 90_000, cores=2, gib=8, **ports),
        shape("large", 170_000, cores=4, gib=16, **ports),
    ]
    halves = [dict(list(ports.items())[:30]), dict(list(ports.items())[30:])]
    pods = [pod(400, 3, 9, **halves[0]), pod(700, 1, 7, **halves[1]), pod(300, 2, 40)]
    bound, cost = least(problem(pods, shapes=shapes))
    assert max(rows) <= 24
    assert 0.9 * cost < bound <= cost

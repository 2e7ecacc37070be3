"""All ways to fill a machine, and the best of them."""

import random
from itertools import product

import pytest

from shared.packing.bin_types import BinType
from shared.packing.bound import listed_loads
from shared.packing.bound.listed_loads import ListedLoads
from shared.packing.bound.whole_loads import Knapsack

Asked = list[tuple[int, int, int]]


def machine(pods: Asked, number: int = 0, price: int = 1_000) -> Knapsack:
    """Return a machine of 100 cores and 400 GiB for classes of (how many, cores, GiB)."""
    kind = BinType("default", (100, 400, 20), 1, (0,), price, price)
    needs = [(k, many, [(0, cpu), (1, gib), (2, 1)]) for k, (many, cpu, gib) in enumerate(pods)]
    return Knapsack(number, kind, needs)


def drawn(seed: int) -> Asked:
    rng = random.Random(seed)
    return [(rng.randint(1, 3), rng.randint(9, 60), rng.randint(9, 250)) for _ in range(4)]


@pytest.mark.parametrize("seed", range(30))
def test_the_loads_are_all_those_beside_which_no_pod_fits(seed: int) -> None:
    pods = drawn(seed)

    def fits(load: tuple[int, ...]) -> bool:
        few = all(n <= many for n, (many, _, _) in zip(load, pods, strict=True))
        cpu = sum(n * each for n, (_, each, _) in zip(load, pods, strict=True))
        gib = sum(n * each for n, (_, _, each) in zip(load, pods, strict=True))
        return few and cpu <= 100 and gib <= 400

    def more(load: tuple[int, ...], k: int) -> tuple[int, ...]:
        return (*load[:k], load[k] + 1, *load[k + 1 :])

    full = {
        load
        for load in product(*(range(many + 1) for many, _, _ in pods))
        if fits(load) and not any(fits(more(load, k)) for k in range(len(pods)))
    }
    listed = ListedLoads([machine(pods)], 1_000_000)
    assert {tuple(map(load.count, range(len(pods)))) for load in listed.loads} == full
    assert len(listed.loads) == len(full)
    values = [float(cpu + gib) for _, cpu, gib in pods]
    ratio, best = listed.best(values)
    worths = [sum(values[k] for k in load) for load in listed.loads]
    assert (worths[best], ratio) == (max(worths), max(worths) / 1_000)


def test_a_load_is_at_the_price_of_the_cheapest_machine_that_holds_it() -> None:
    machines = [machine(drawn(1), 0, 900), machine(drawn(1), 1, 800)]
    listed = ListedLoads(machines, 1_000_000)
    assert listed.listed == {0, 1}
    assert set(listed.prices) == {800}
    assert set(listed.bin_types) == {1}


@pytest.mark.parametrize("limit", ["_MOST_LOADS", "_MOST_PODS", "_MOST_LOOKS"])
def test_a_machine_with_too_many_loads_is_left_out(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_loads, limit, 1)
    few = machine([(1, 60, 9)], 1, 2_000)
    listed = ListedLoads([machine(drawn(1)), few], 1_000_000)
    assert listed.listed == {1}
    assert listed.loads == [(0,)]


@pytest.mark.parametrize(("limit", "most"), [("_MOST_FAILED", 0), ("_MOST_IN_ALL", -1)])
def test_the_search_for_loads_ends(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_loads, limit, most)
    assert ListedLoads([machine(drawn(1))], 1_000_000).listed == set()
    monkeypatch.undo()
    assert ListedLoads([machine(drawn(1))], 0).listed == set()
    listed = ListedLoads([machine(drawn(1))], 1_000_000)
    assert listed.steps > 0
    assert listed.steps_of_best > 0

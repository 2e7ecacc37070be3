"""The bars on quality, and never being dearer than the published procedures."""

import random

import pytest

from shared.packing.packer import pack
from tests.benchmarks.packing import bench, published, workloads
from tests.benchmarks.packing.price_table import general

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GAPS = {
    ("kmix", 1_000): 0.8,
    ("skew", 1_000): 0.8,
    ("kmix", 10_000): 0.6,
    ("skew", 10_000): 0.8,
    ("kmix", 100_000): 0.6,
    ("unique", 10_000): 1.0,
    ("vmlike", 1_000): 1.5,
    ("vmlike", 10_000): 1.5,
    ("vmlike", 100_000): 1.5,
    ("gpumix", 10_000): 1.0,
}


@pytest.mark.parametrize(("name", "count"), GAPS)
def test_large_batches_come_close_to_the_bound(name: str, count: int) -> None:
    rows = workloads.WORKLOADS[name](count)
    made = pack(workloads.problem(rows, bench.POOLS.get(name, general)))
    gap = made.cost_micros_per_hour / made.lower_bound_micros_per_hour - 1
    assert made.fallback == ""
    assert gap * 100 <= GAPS[name, count]


@pytest.mark.parametrize("name", bench.WALKTHROUGH)
def test_the_walkthrough_cases_get_the_exact_optimum(name: str) -> None:
    asked = workloads.problem(workloads.single(*bench.WALKTHROUGH[name]))
    made = pack(asked)
    optimum = bench.optimum(asked)
    assert made.cost_micros_per_hour == made.lower_bound_micros_per_hour == optimum


def test_no_random_batch_is_dearer_than_a_published_procedure_makes_it() -> None:
    for seed in range(1000):
        rng = random.Random(seed)
        name = rng.choice(sorted(workloads.WORKLOADS))
        count = int(2 ** rng.uniform(0, 11))
        rows = workloads.WORKLOADS[name](count, seed)
        asked = workloads.problem(rows, bench.POOLS.get(name, general))
        made = pack(asked)
        left_out = sum(pods for _, pods, _ in made.unplaced)
        for baseline in (published.v1, published.v06):
            price, _, forgotten = baseline(asked)
            # A procedure that forgets pods buys less.
            if forgotten <= left_out:
                assert made.cost_micros_per_hour <= price, (seed, name, count)

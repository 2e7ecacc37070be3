"""Plans meet the bars on quality and cost no more than those of the published procedures."""

import random

import pytest

from shared.packing.packer import pack
from tests.benchmarks.packing import plans, published, workloads
from tests.benchmarks.packing.price_table import general

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GAPS = {case: bar.gap_percent for case, bar in plans.BARS.items() if bar.gap_percent is not None}


@pytest.mark.parametrize(("name", "count"), GAPS)
def test_large_batches_come_close_to_the_bound(name: str, count: int) -> None:
    rows = workloads.WORKLOADS[name](count)
    made = pack(workloads.problem(rows, plans.POOLS.get(name, general)))
    gap = made.cost_micros_per_hour / made.lower_bound_micros_per_hour - 1
    assert made.fallback == ""
    assert gap * 100 <= GAPS[name, count]


@pytest.mark.parametrize("name", plans.WALKTHROUGH)
def test_the_walkthrough_cases_get_the_exact_optimum(name: str) -> None:
    asked = workloads.problem(workloads.single(*plans.WALKTHROUGH[name]))
    made = pack(asked)
    optimum = plans.optimum(asked)
    assert made.cost_micros_per_hour == made.lower_bound_micros_per_hour == optimum


@pytest.mark.parametrize("hundred", range(10))
def test_no_random_batch_costs_more_than_with_a_published_procedure(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        rng = random.Random(seed)
        name = rng.choice(sorted(workloads.WORKLOADS))
        count = int(2 ** rng.uniform(0, 11))
        rows = workloads.WORKLOADS[name](count, seed)
        asked = workloads.problem(rows, plans.POOLS.get(name, general))
        made = pack(asked)
        left_out = sum(pods for _, pods, _ in made.unplaced)
        for baseline in (published.v1, published.v06):
            price, _, forgotten = baseline(asked)
            # A procedure that forgets pods buys less.
            if forgotten <= left_out:
                assert made.cost_micros_per_hour <= price, (seed, name, count)

"""Plans meet the bars on quality."""

import pytest

from shared.packing.packer import pack
from tests.benchmarks.packing import plans, workloads
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

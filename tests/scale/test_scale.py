"""The yardstick measures what it says: its rows run, its bars name values, its limits are AWS's."""

from collections.abc import Iterator

import pytest

from infra.aws.functions import FUNCTIONS
from shared.runtime.logs_and_metrics import logger
from tests.scale.report import Measured, exponent, page, result, table
from tests.scale.rows import ROWS
from tests.scale.world import BIND_CONCURRENCY, MEMORY_MIB, TIMEOUT_SECONDS

# Running functions ignore this one; pytest replaces their filters with its own.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics to publish")


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """Functions that are measured log nothing; the tests after these do."""
    before = logger.log_level
    yield
    logger.setLevel(before)


# What may well be none.
FAILURES = ("changes abandoned", "nodes cordoned and not drained")


@pytest.mark.landing
@pytest.mark.parametrize("name", ROWS)
def test_each_bar_is_one_of_a_value_that_is_measured(name: str) -> None:
    row = ROWS[name]
    values = row.measure(2)
    assert {*row.bars, *row.exponents} <= values.keys()
    assert all(value > 0 for name, value in values.items() if name not in FAILURES)


def test_functions_have_the_memory_time_and_concurrency_that_they_are_deployed_with() -> None:
    deployed = {plan.name: plan for plan in FUNCTIONS}
    assert {name: deployed[name].memory_mib for name in MEMORY_MIB} == MEMORY_MIB
    assert {name: deployed[name].timeout_seconds for name in TIMEOUT_SECONDS} == TIMEOUT_SECONDS
    assert deployed["bind"].concurrency == BIND_CONCURRENCY


def test_what_grows_with_the_square_has_the_exponent_two() -> None:
    assert exponent((10, 5.0), (100, 500.0)) == pytest.approx(2)


def test_a_bar_that_is_missed_is_told_in_the_table() -> None:
    values = {"RCU": 10.0, "WCU": 10.0}
    measured = [
        Measured(row="joins", size=100, values=values),
        Measured(row="joins", size=1000, values={**values, "RCU": 1000.0}),
    ]
    lines = table(measured, 80)
    assert sum("**no**" in line and "2.00" in line for line in lines) == 1
    what = ROWS["joins"].what
    assert result(measured) == f"0 of 1 bars met. Not met: {what} (RCU)"


def test_only_the_bars_of_measured_sizes_are_told() -> None:
    first = Measured(row="burst", size=10_000, values={"all bound, s": 40.0})
    lines = table([first], 80)
    assert [line for line in lines if "| ≤ 60 | yes |" in line]
    assert result([first]) == "1 of 1 bars met"


def test_a_page_keeps_what_is_above_its_mark() -> None:
    mark = "<!-- written by `make scale`: below this line nothing is kept -->"
    written = page(f"# Scale\n\n**Before.**\n\nText.\n{mark}\nold", ["new"], "1 of 1 bars met")
    assert written.startswith("# Scale\n\n**1 of 1 bars met.**\n\nText.\n")
    assert written.endswith("\n\nnew\n")

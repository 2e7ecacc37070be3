"""The scheduler's own rules accept every placement that Dovetail decides on."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.extent import shares
from tests.scheduler_oracle.clusters.features import ENABLED, OPEN
from tests.scheduler_oracle.running import describe, run

# Another number tries other clusters; the same one always the same.
BASE = int(os.environ.get("OPINION_SEED", "0"))
SHORT, LONG, SHORT_CHUNK, LONG_CHUNK = 1_000, 20_000, 250, 250


def check(first: int, count: int, record: Callable[[str, Any], None]) -> None:
    tally = run(range(first, first + count), ENABLED)
    record("opinion_first", first)
    record("opinion", tally.counts)
    wrong = [failure for failure in tally.failures if failure[0] not in OPEN]
    if wrong:
        pytest.fail(describe(*wrong[0], ENABLED), pytrace=False)
    assert tally.counts["clusters"] == count


@pytest.mark.parametrize(
    "first", [BASE + share * SHORT_CHUNK for share in shares(SHORT // SHORT_CHUNK)]
)
def test_the_scheduler_accepts_every_placement_in_random_clusters(
    first: int, record_property: Callable[[str, Any], None]
) -> None:
    check(first, SHORT_CHUNK, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(BASE + SHORT, BASE + SHORT + LONG, LONG_CHUNK))
def test_the_scheduler_accepts_every_placement_in_many_random_clusters(
    first: int, record_property: Callable[[str, Any], None]
) -> None:
    check(first, LONG_CHUNK, record_property)

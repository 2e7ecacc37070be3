"""Each outside call of growing and shrinking fails once in every way; all ends in order."""

from typing import Any

import pytest

from tests.extent import WHOLE, commits
from tests.simulation.campaigns import crash_points
from tests.simulation.schedule.scenario import Scene

PARTS = 32
# `make test` runs one part, `make verify-commit` a quarter, `make verify` and `make faults` all.
LANDING = 4


@pytest.mark.parametrize("scene", crash_points.SCENES, ids=["grows and shrinks", "drains"])
def test_nothing_is_left_over_when_nothing_fails(scene: Scene) -> None:
    outcome, counts = crash_points.clean(scene)
    assert not outcome.broken, outcome.text
    assert outcome.machines >= 2
    assert {site.function for site in counts} >= {"provision", "bind", "termination", "sweep"}


def parts() -> list[Any]:
    """Return all parts; those that do not run now are marked as slow."""
    now = {part for part in range(PARTS) if part % LANDING == commits() % LANDING}
    now = now if WHOLE else {commits() % PARTS}
    return [
        pytest.param(part, marks=() if part in now else pytest.mark.slow) for part in range(PARTS)
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", parts())
def test_a_failure_at_any_call_leaves_the_cluster_in_order(part: int) -> None:
    results = crash_points.run_part(part, PARTS)
    assert len(results) > 100
    wrong = [f"{result.point.fault}: {result.broken}" for result in results if result.broken]
    assert not wrong, "\n".join(wrong[:20])

"""Each outside call of growing and shrinking fails once in every way; all ends in order."""

import pytest

from tests.simulation.campaigns import crash_points
from tests.simulation.schedule.scenario import Scene

PARTS = 8
# A quarter of all points with every commit; all of them in `make verify` and `make faults`.
ALWAYS = 2


@pytest.mark.parametrize("scene", crash_points.SCENES, ids=["grows and shrinks", "drains"])
def test_nothing_is_left_over_when_nothing_fails(scene: Scene) -> None:
    outcome, counts = crash_points.clean(scene)
    assert not outcome.broken, outcome.text
    assert outcome.machines >= 2
    assert {site.function for site in counts} >= {"provision", "bind", "termination", "sweep"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "part",
    [pytest.param(n, marks=() if n < ALWAYS else pytest.mark.slow) for n in range(PARTS)],
)
def test_a_failure_at_any_call_leaves_the_cluster_in_order(part: int) -> None:
    results = crash_points.run_part(part, PARTS)
    assert len(results) > 400
    wrong = [f"{result.point.fault}: {result.broken}" for result in results if result.broken]
    assert not wrong, "\n".join(wrong[:20])

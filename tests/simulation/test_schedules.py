"""Two thousand random schedules; a violation prints its seed and the faults that suffice."""

import pytest

from tests.simulation.campaigns.campaign import crash_the_rest, explain, run_range

SCHEDULES = 2000
PARTS = 4


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_invariant_holds_in_random_schedules(part: int) -> None:
    share = SCHEDULES // PARTS
    tally = run_range(range(part * share, (part + 1) * share))
    crash_the_rest(tally)
    told = [line for outcome in tally.broken[:2] for line in explain(outcome)]
    assert not tally.broken, "\n".join(["", *told])
    assert not tally.short
    assert not tally.not_crashed
    assert tally.schedules >= share

"""Two thousand random schedules; a violation prints its seed and the faults that suffice."""

import pytest

from tests.extent import shares
from tests.simulation.campaigns.campaign import crash_the_rest, explain, run_range

SHARES, SCHEDULES = 10, 200


@pytest.mark.timeout(900)
@pytest.mark.parametrize("share", shares(SHARES))
def test_every_invariant_holds_in_random_schedules(share: int) -> None:
    tally = run_range(range(share * SCHEDULES, (share + 1) * SCHEDULES))
    crash_the_rest(tally)
    told = [line for outcome in tally.broken[:2] for line in explain(outcome)]
    assert not tally.broken, "\n".join(["", *told])
    assert not tally.short
    assert not tally.not_crashed
    assert tally.schedules >= SCHEDULES

"""Each safeguard that is taken away is missed by some invariant."""

import pytest

from tests.simulation.campaigns.mutations import MUTATIONS, hunt

MOST = 1000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [mutation.name for mutation in MUTATIONS])
def test_a_safeguard_that_is_taken_away_is_missed(name: str) -> None:
    catch = hunt(name, MOST)
    assert catch.invariant, f"{name}: not noticed in {MOST} schedules"

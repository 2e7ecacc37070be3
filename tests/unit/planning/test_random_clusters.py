"""Random clusters whose rules meet in rare ways: the answer is stable and stands a second look."""

import pytest

from shared.planning.decide import decide
from tests.scheduler_oracle.clusters.features import ENABLED
from tests.scheduler_oracle.clusters.generate import draw
from tests.scheduler_oracle.opinion import judge
from tests.scheduler_oracle.reading import snapshot_of


# Nodes that may still come up in several zones, beside spreads over zones.
@pytest.mark.parametrize("seed", [64, 94, 130, 240])
def test_open_zones_and_spreads_are_combined(seed: int) -> None:
    case = draw(seed, ENABLED)
    seen = snapshot_of(case)
    assert judge(case).findings == ()
    assert decide(seen) == decide(seen)

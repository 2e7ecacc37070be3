"""Empty nodes go in time, taken machines are replaced in time, and blocked drains breed nothing."""

import pytest

from tests.simulation.campaigns import lifetimes
from tests.simulation.campaigns.notices import notices, together
from tests.simulation.campaigns.report import MOST_ABSORBED, MOST_ASKED, MOST_LATE


def test_an_empty_node_is_gone_soon_after_its_ttl_in_every_schedule() -> None:
    emptied = lifetimes.emptied(40)
    assert len(emptied.gone_seconds) >= 20
    assert emptied.ended_seconds[-1] <= MOST_LATE
    assert emptied.gone_seconds[-1] <= MOST_LATE


@pytest.mark.timeout(120)
def test_what_a_spot_warning_takes_is_asked_for_within_seconds() -> None:
    warned = together([notices(40, 40, spread=120, seed=seed) for seed in (8, 9)])
    assert warned.ours == 80
    assert len(warned.asked_seconds) == 80
    assert warned.p99_seconds <= MOST_ASKED
    assert not warned.left


@pytest.mark.timeout(120)
def test_a_storm_of_notices_is_absorbed_and_nothing_is_lost() -> None:
    storm = notices(3000, 40)
    assert storm.absorbed_seconds <= MOST_ABSORBED / 5
    assert (storm.unasked, storm.extra) == (0, 0)
    assert not storm.left


def test_a_dead_node_goes_and_holds_no_other_beyond_five_minutes() -> None:
    """A budget of 10 % lets one node of three go at a time, and the dead one is none for long."""
    stood = lifetimes.beside_a_dead_node()
    # Kubernetes calls it NotReady after 50 s; five minutes later it uses up no budget.
    assert stood.empty_seconds <= 50 + 300 + MOST_LATE
    assert stood.dead_seconds <= 600


def test_a_drain_that_a_budget_blocks_breeds_no_nodes() -> None:
    assert not lifetimes.blocked().is_breeding

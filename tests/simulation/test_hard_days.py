"""No capacity, throttles, a thousand nodes, and a node that is never of use."""

import pytest

from tests.simulation.campaigns import hard_days
from tests.simulation.campaigns.report import (
    MOST_FAILED,
    MOST_RUNAWAYS,
    MOST_TRIES,
    NEVER_USABLE,
)


@pytest.mark.timeout(300)
def test_the_published_capacity_storm_costs_few_failed_calls() -> None:
    storm = hard_days.storm(minutes=90)
    assert storm.failed <= MOST_FAILED
    assert 1 <= storm.first_success <= MOST_TRIES
    assert not storm.left


def test_every_second_throttled_launch_costs_no_redelivery() -> None:
    throttling = hard_days.throttled(hard_days.FLEET_CALLS)
    assert throttling.factor <= throttling.most_factor
    assert throttling.redelivered == 0
    assert not throttling.left


def test_every_second_throttled_ec2_call_costs_no_redelivery() -> None:
    throttling = hard_days.throttled()
    assert throttling.factor <= throttling.most_factor
    assert throttling.redelivered == 0
    assert not throttling.left


@pytest.mark.timeout(300)
def test_many_machines_of_mixed_shapes_take_few_calls() -> None:
    burst = hard_days.burst(nodes=200)
    assert burst.machines >= 200
    assert burst.calls["create_fleet"] <= burst.allowed
    assert burst.calls["tagged_instances"] <= 40
    assert burst.calls["instances"] <= burst.together
    assert burst.calls["terminate"] <= burst.together
    assert not burst.left


@pytest.mark.parametrize("unprovisioned", [False, True])
def test_a_node_that_is_never_of_use_is_bought_twice_an_hour_at_most(
    *, unprovisioned: bool
) -> None:
    runaway = hard_days.runaway(unprovisioned=unprovisioned)
    assert runaway.machines <= MOST_RUNAWAYS
    assert NEVER_USABLE in runaway.events


def test_a_type_with_less_room_than_was_said_is_bought_once_and_then_known() -> None:
    learnt = hard_days.runaway(minutes=20, smaller=True)
    assert learnt.machines <= MOST_RUNAWAYS
    assert learnt.running == 1

"""Machines that EC2 has not ended and that do not become nodes in time."""

from datetime import timedelta

import pytest

from tests.builders import instance_type, pod, provisioner
from tests.unit.worlds import MINUTE, NAME, SECOND, World


@pytest.mark.parametrize(
    ("delay", "why"),
    [
        ("running", "never ran and is terminated"),
        (
            "named",
            "has no private DNS name and is terminated: enable DNS hostnames of the VPC",
        ),
    ],
)
def test_a_machine_that_is_no_node_in_time_is_terminated_with_an_event(
    delay: str, why: str
) -> None:
    world = World(provisioner(), pod())
    setattr(world.cloud.delays, delay, timedelta(days=1))
    world.provision()
    (first,) = world.alive
    world.advance(5 * MINUTE)
    world.provision()
    assert [slot.instance_id for slot in world.ledger.slots(NAME)] == [first.instance_id]
    assert world.messages("NeverJoined") == []
    world.advance(SECOND)
    world.provision()
    assert world.ledger.slots(NAME) == ()
    assert world.outbox.wakes[-1] == (NAME, world.policy.describe_delay)
    text = f"{first.instance_id} (m5.large, us-east-1a, on-demand) {why}"
    assert world.messages("NeverJoined", "Provisioner") == [text]
    assert world.messages("FailedProvisioning", "Pod") == [text]
    assert first.offering in world.ledger.unavailable_offerings(world.clock.now(), NAME)
    assert world.sweep().orphaned_instances == 1
    # What was wrong is mended: its pods get another machine.
    setattr(world.cloud.delays, delay, timedelta(0))
    world.provision_until_quiet()
    assert set(world.bound) == {"a"}


@pytest.mark.parametrize("delay", ["running", "named"])
def test_machines_that_are_no_nodes_in_time_are_bought_twice_an_hour(delay: str) -> None:
    world = World(provisioner(), pod())
    setattr(world.cloud.delays, delay, timedelta(days=1))
    for _ in range(59):
        world.provision()
        world.advance(MINUTE)
    assert len(world.cloud.all_instances) == 2
    assert world.ledger.slots(NAME) == ()
    assert world.events("NodesNeverUsable")


def test_bare_metal_may_take_twenty_minutes_until_it_runs() -> None:
    world = World(provisioner(), pod(), types=(instance_type("m5.metal"),))
    world.cloud.delays.running = timedelta(days=1)
    world.provision()
    world.advance(20 * MINUTE)
    world.provision()
    assert len(world.ledger.slots(NAME)) == 1
    world.advance(SECOND)
    world.provision()
    assert world.ledger.slots(NAME) == ()

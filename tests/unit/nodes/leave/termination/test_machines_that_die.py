"""Machines that end while pending: EC2 says why, and it is told."""

import pytest

from infra.local.ec2.refusals import Reason
from tests.builders import pod, provisioner
from tests.unit.nodes.launch.refusals.refusing import condition, marked
from tests.unit.worlds import MINUTE, NAME, SECOND, World


def died(world: World, code: str, message: str = "") -> None:
    """Let the machines to come go from pending to terminated, for that reason."""
    world.cloud.failures += [Reason(code, message)] * 10


def test_a_machine_that_dies_for_its_key_is_a_refusal_with_ec2_s_text() -> None:
    world = World(provisioner(), pod())
    died(world, "Client.InternalError", "Client.InternalError: Client error on launch")
    world.provision()
    assert marked(world) == frozenset()
    active, _, message = condition(world)
    assert not active
    assert "Client.InternalError: Client error on launch; mostly an encrypted volume" in message
    (text,) = world.messages("DiedPending", "Provisioner")
    assert "m5.large" in text
    assert "Client error on launch" in text
    assert world.messages("FailedProvisioning", "Pod")[0] == text
    # No machine is bought while it backs off, and the next launch is no success yet.
    bought = len(world.cloud.all_instances)
    world.advance(30 * SECOND)
    world.provision()
    assert len(world.cloud.all_instances) == bought
    world.advance(MINUTE)
    world.provision()
    assert len(world.cloud.all_instances) == bought + 1
    assert not condition(world)[0]
    # Once a machine runs, it is over.
    world.cloud.failures.clear()
    world.advance(2 * MINUTE)
    world.provision()
    assert condition(world)[0]
    assert len(world.bound) == 1


def test_a_machine_that_is_stopped_while_pending_is_still_known_to_be_of_its_cluster() -> None:
    world = World(provisioner(), pod())
    world.cloud.delays.running = MINUTE
    world.provision()
    (launched,) = world.cloud.all_instances
    world.cloud.ec2.stop(world.cloud.ec2.instances[launched.instance_id])
    world.provision()
    assert launched.instance_id not in {slot.instance_id for slot in world.ledger.slots(NAME)}
    # A notice finds its cluster by that row, and terminates it.
    assert world.ledger.cluster_of(launched.instance_id) == NAME


def test_a_machine_that_dies_for_want_of_capacity_is_a_shortage_for_all() -> None:
    world = World(provisioner(), pod())
    died(world, "Server.InsufficientInstanceCapacity")
    world.provision()
    assert world.ledger.unavailable_offerings(world.clock.now()) == {
        world.cloud.all_instances[0].offering
    }
    assert world.cluster.conditions == {}


@pytest.mark.parametrize("code", ["", "Server.InternalError", "Client.UserInitiatedShutdown"])
def test_a_machine_that_dies_for_another_reason_concerns_its_cluster_alone(code: str) -> None:
    world = World(provisioner(), pod())
    died(world, code)
    world.provision()
    assert world.ledger.unavailable_offerings(world.clock.now()) == frozenset()
    assert marked(world) == {world.cloud.all_instances[0].offering}
    assert world.cluster.conditions == {}
    assert len(world.messages("DiedPending", "Provisioner")) == 1

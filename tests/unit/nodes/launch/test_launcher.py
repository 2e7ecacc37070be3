"""Corners of the launcher that a whole round does not reach."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.image_table import ImageTable
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import FleetAnswer, LaunchOption
from shared.model.errors import PermanentError
from shared.model.values import replace
from shared.nodes.launch.held_lease import HeldLease
from shared.nodes.launch.intents import LaunchOutcome
from shared.nodes.launch.launch_request import LaunchContext
from shared.nodes.launch.launcher import Launcher
from shared.snapshot.gather import gather
from tests.builders import CATALOG, option, planned, pod, provisioner
from tests.unit.nodes.launch.launches import intents
from tests.unit.nodes.launch.test_launch_request import AMD, context
from tests.unit.worlds import NAME, World, instead

SPOT = option(30_000, capacity_type=CapacityType.SPOT)


def launcher(world: World) -> Launcher:
    lease = world.ledger.acquire(NAME, "me", world.clock.now())
    assert lease is not None
    return Launcher(
        world.ports,
        HeldLease(world.ledger, world.clock, lease, world.policy.lease_span),
        world.policy,
    )


def launch_ground(world: World, **changes: Any) -> LaunchContext:
    site = world.cloud.site(provisioner().template)
    return context(
        site=site, images=ImageTable(kinds={"m5.large": AMD}, ids={AMD: "ami-1"}), **changes
    )


def test_a_fallback_that_cannot_be_asked_for_ends_the_launch() -> None:
    world = World()
    world.cloud.run_out_of(SPOT.offering)
    node = planned(pod(), options=(SPOT,), fallback=(option(name="x9.unknown"),))
    with pytest.raises(PermanentError, match=r"no subnet and image for x9\.unknown"):
        launcher(world).launch(launch_ground(world), "plan-1", 0, (node,))
    assert intents(world) == (0, 1)


def test_nothing_is_written_when_nothing_can_be_asked_for() -> None:
    world = World()
    node = planned(pod(), options=(option(name="x9.unknown"),))
    with pytest.raises(PermanentError):
        launcher(world).launch(launch_ground(world), "plan-1", 0, (node,))
    assert world.ledger.intents == {}
    assert world.decisions.documents == {}


def test_the_intent_is_written_before_ec2_is_asked_and_reserves_the_largest_option() -> None:
    world = World()
    large = option(200_000, name="m5.xlarge", capacity=CATALOG[3].capacity)
    node = planned(pod(), options=(option(), large))
    seen: list[dict[Any, Any]] = []
    original = world.cloud.create_fleet

    def create_fleet(request: Any) -> Any:
        seen.append(dict(world.ledger.intents))
        return original(request)

    instead(world.cloud, "create_fleet", create_fleet)
    outcome = launcher(world).launch(launch_ground(world), "plan-1", 0, (node, node))
    assert outcome == LaunchOutcome.DONE
    (intent,) = seen[0].values()
    assert intent.count == 2
    assert intent.reserved["cpu"] == 8000
    assert intent.body_key in world.decisions.documents
    assert intents(world) == (0, 1)


def test_machine_that_was_not_requested_is_not_adopted() -> None:
    world = World()
    node = planned(pod())
    world.cloud.lose_next_answer()
    holder = launcher(world)
    holder.launch(launch_ground(world), "plan-1", 0, (node,))
    (intent,) = world.ledger.intents.values()
    machine = world.cloud.ec2.instances[world.alive[0].instance_id]
    machine.pool = ("m5.xlarge", *machine.pool[1:])
    world.advance(world.policy.consistency_delay)
    assert holder.abandon(intent) == LaunchOutcome.LATER
    world.advance(world.policy.invocation_timeout)
    assert holder.abandon(intent) == LaunchOutcome.SHORT
    assert world.ledger.slots(NAME) == ()


def test_what_an_answer_left_out_is_adopted_before_more_is_asked_for() -> None:
    world = World()
    original = world.cloud.create_fleet

    def create_fleet(request: Any) -> FleetAnswer:
        answer = original(request)
        return replace(answer, instances=answer.instances[:1])

    instead(world.cloud, "create_fleet", create_fleet)
    nodes = (planned(pod("a")), planned(pod("b")))
    assert launcher(world).launch(launch_ground(world), "plan-1", 0, nodes) == LaunchOutcome.DONE
    assert len(world.ledger.slots(NAME)) == len(world.alive) == 2


def test_a_machine_more_than_asked_for_is_left_to_sweep() -> None:
    world = World()
    node = planned(pod())
    world.cloud.lose_next_answer()
    holder = launcher(world)
    holder.launch(launch_ground(world), "plan-1", 0, (node,))
    (intent,) = world.ledger.intents.values()
    world.cloud.forgets_tokens = True
    world.cloud.create_fleet(world.cloud.fleets[0])
    world.advance(world.policy.consistency_delay)
    assert holder.resume(launch_ground(world), intent) == LaunchOutcome.DONE
    assert len(world.alive) == 2
    assert len(world.ledger.slots(NAME)) == 1


def test_a_machine_shown_late_does_not_take_the_slot_of_one_that_is_complete() -> None:
    world = World()
    world.cloud.lose_next_answer()
    holder = launcher(world)
    holder.launch(launch_ground(world), "plan-1", 0, (planned(pod("a")), planned(pod("b"))))
    early, late = sorted(instance.instance_id for instance in world.alive)
    original = world.cloud.tagged_instances
    hidden = {early}

    def tagged_instances(tags: Any) -> Any:
        return tuple(instance for instance in original(tags) if instance.instance_id not in hidden)

    instead(world.cloud, "tagged_instances", tagged_instances)
    world.advance(world.policy.consistency_delay)
    (intent,) = world.ledger.intents.values()
    assert holder.resume(launch_ground(world), intent) == LaunchOutcome.LATER
    (slot,) = world.ledger.slots(NAME)
    assert (slot.number, slot.instance_id) == (0, late)
    world.ledger.drop_slot(slot)
    hidden.clear()
    world.advance(world.policy.invocation_timeout + world.policy.consistency_delay)
    (intent,) = world.ledger.intents.values()
    assert holder.resume(launch_ground(world), intent) == LaunchOutcome.DONE
    (slot,) = world.ledger.slots(NAME)
    assert (slot.number, slot.instance_id) == (1, early)
    assert len(world.alive) == 2


def test_promised_pods_of_open_launches_are_gathered() -> None:
    world = World(provisioner(), pod())
    world.cloud.lose_next_answer()
    world.provision()
    assert gather(world.ports, "plan-9").snapshot.promised == {"uid-a"}
    world.decisions.documents.clear()
    assert gather(world.ports, "plan-9").snapshot.promised == frozenset()


def flexible_launch(world: World, least: int, *options: LaunchOption) -> LaunchOutcome:
    owner = provisioner(least_values={keys.INSTANCE_TYPE: least})
    images = ImageTable(kinds={"m5.large": AMD, "m5.xlarge": AMD}, ids={AMD: "ami-1"})
    types = {known.name: known for known in CATALOG}
    ground = replace(launch_ground(world), provisioner=owner, images=images, instance_types=types)
    return launcher(world).launch(ground, "plan-1", 0, (planned(pod(), options=options),))


def test_fewer_values_of_a_label_than_the_owner_asks_for_are_not_asked_for() -> None:
    world = World()
    options = option(), option(200_000, name="m5.xlarge", capacity=CATALOG[3].capacity)
    # There is no image for the third: its value does not count.
    unbootable = option(300_000, name="m5.2xlarge", capacity=CATALOG[1].capacity)
    assert flexible_launch(world, 3, *options, unbootable) == LaunchOutcome.SHORT
    assert world.ledger.intents == {}
    assert flexible_launch(World(), 2, *options, unbootable) == LaunchOutcome.DONE


def test_launch_ends_once_what_ec2_is_not_out_of_has_too_few_values() -> None:
    world = World()
    options = option(), option(200_000, name="m5.xlarge", capacity=CATALOG[3].capacity)
    world.cloud.run_out_of(*(entry.offering for entry in options))
    assert flexible_launch(world, 2, *options) == LaunchOutcome.SHORT

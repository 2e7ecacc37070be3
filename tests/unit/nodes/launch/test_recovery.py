"""Whatever goes wrong in a launch, in the end there are the planned machines."""

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError, ThrottledError, UnavailableError
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import InvalidProvisioner
from shared.model.resources import Resources
from shared.ports import TimerKind
from tests.builders import ZONES, needs, offering, pod, provisioner
from tests.unit.nodes.launch.launches import (
    ANY_WAY,
    SPOT,
    apart,
    intents,
    open_intent,
    two_nodes,
    without_spot,
)
from tests.unit.worlds import NAME, SECOND, Crash, Failures, World, instead


def test_a_lost_lease_stops_everything() -> None:
    world = two_nodes()
    original = world.decisions.put

    def put(key: str, document: bytes) -> None:
        original(key, document)
        if key.startswith("launches/"):
            world.ledger.steal(NAME, world.clock.now())

    instead(world.decisions, "put", put)
    with pytest.raises(ConflictError):
        world.provision()
    assert world.cloud.called("create_fleet") == []
    assert world.ledger.is_held(NAME)


def test_the_lease_is_pushed_on_before_each_call_that_may_take_long() -> None:
    zoned = [
        pod(f"p{n}", node_selector=needs(keys.ZONE, "In", zone)) for n, zone in enumerate(ZONES)
    ]
    world = World(provisioner(), *zoned)
    original = world.cloud.create_fleet

    def slow(request: Any) -> Any:
        world.advance(40 * SECOND)
        assert world.ledger.acquire(NAME, "another", world.clock.now()) is None
        return original(request)

    instead(world.cloud, "create_fleet", slow)
    world.provision()
    assert len(world.cloud.fleets) == 3
    assert len(world.bound) == 3


def in_zones() -> World:
    """A world whose pods take a launch group for each zone."""
    zones = (pod(zone, node_selector=needs(keys.ZONE, "In", zone)) for zone in ZONES)
    return World(provisioner(), *zones)


def slow_fleets(world: World) -> None:
    original = world.cloud.create_fleet

    def slow(request: Any) -> Any:
        world.advance(45 * SECOND)
        return original(request)

    instead(world.cloud, "create_fleet", slow)


def test_groups_that_no_longer_fit_are_left_to_another_invocation() -> None:
    world = in_zones()
    slow_fleets(world)
    world.provision(span=110 * SECOND)
    assert len(world.cloud.fleets) == len(world.bound) == 2
    assert world.outbox.wakes == [(NAME, timedelta(0))]
    world.provision(span=110 * SECOND)
    assert len(world.bound) == 3


def test_open_launches_that_no_longer_fit_are_left_to_another_invocation() -> None:
    world = in_zones()
    for _ in range(5):
        world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    assert intents(world) == (3, 0)
    world.advance(10 * SECOND)
    slow_fleets(world)
    world.outbox.wakes.clear()
    world.provision(span=110 * SECOND)
    assert intents(world) == (1, 2)
    assert (NAME, timedelta(0)) in world.outbox.wakes


def test_the_lease_is_given_back_when_an_invocation_fails() -> None:
    world = two_nodes()
    world.cluster.fail_next("create_node", UnavailableError("api server"))
    with pytest.raises(UnavailableError):
        world.provision()
    assert not world.ledger.is_held(NAME)
    world.provision_until_quiet()
    assert len(world.bound) == 2


@pytest.mark.parametrize("became", ["gone", "invalid", "without an image"])
def test_an_intent_that_cannot_go_on_is_ended_and_its_machines_adopted(became: str) -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(world.alive[0].instance_id)
    if became == "without an image":
        asked = world.cloud.called("image_ids")
        world.cloud.missing_images.update(name for call in asked for name in call)  # type: ignore[attr-defined]
    else:
        del world.cluster.provisioner_values["default"]
    if became == "invalid":
        reasons = ("spec.x: wrong",)
        world.cluster.add(
            InvalidProvisioner(name="default", uid="u", resource_version="2", reasons=reasons)
        )
    world.advance(timedelta(minutes=6))
    world.provision_until_quiet()
    assert intents(world) == (0, 1)
    assert len(world.cloud.fleets) == 1
    assert len(world.ledger.slots(NAME)) == 1
    assert len(world.alive) == 1


def test_an_intent_of_a_provisioner_that_is_gone_is_not_requested_from_ec2() -> None:
    world = two_nodes()
    for _ in range(5):
        world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    assert intents(world) == (1, 0)
    del world.cluster.provisioner_values["default"]
    world.provision_until_quiet()
    assert intents(world) == (0, 1)
    assert world.cloud.fleets == []


def test_an_intent_whose_body_is_lost_is_ended() -> None:
    world = two_nodes()
    open_intent(world)
    world.decisions.documents.clear()
    world.advance(world.policy.invocation_timeout)
    world.provision()
    assert not world.ledger.open_intents(NAME)


def test_a_resumed_launch_asks_for_what_is_still_missing_with_the_same_options() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(world.alive[0].instance_id)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert {instance.offering for instance in world.alive} == {offering()}
    assert [
        fleet["TargetCapacitySpecification"]["TotalTargetCapacity"] for fleet in world.cloud.fleets
    ] == [2, 1]


def test_a_launch_that_is_too_old_to_replay_gets_a_new_attempt() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(*(instance.instance_id for instance in world.alive))
    world.advance(timedelta(minutes=6))
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert {
        (instance.tags[keys.TAG_PLAN], instance.tags[keys.TAG_ATTEMPT]) for instance in world.alive
    } == {("plan-1", "1")}
    first, second = (fleet["ClientToken"] for fleet in world.cloud.fleets)
    assert first != second


def test_what_a_launch_lacks_is_planned_anew_once_its_provisioner_has_changed() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(world.alive[0].instance_id)
    world.cluster.add(provisioner(labels={"team": "red"}))
    world.provision_until_quiet()
    launched_for = {
        node.annotations[keys.SLOT].split("/")[0]: node.labels.get("team")
        for node in world.cluster.nodes()
    }
    assert sorted(map(str, launched_for.values())) == ["None", "red"]
    assert launched_for["plan-1"] is None


def test_a_young_intent_without_a_time_waits_for_ec2_to_show_its_machines() -> None:
    world = two_nodes()
    with pytest.raises(Crash):
        crash_at_fleet(world)
    world.advance(51 * SECOND)
    world.policy = LaunchPolicy(consistency_delay=timedelta(seconds=60))
    assert world.provision().plans == ()
    assert world.outbox.wakes == [(NAME, timedelta(seconds=9))]
    world.advance(10 * SECOND)
    world.provision_until_quiet()
    assert len(world.alive) == 2


def crash_at_fleet(world: World) -> None:
    """End the process when EC2 has answered and nothing of the answer is written down."""
    for at in range(200):
        probe, failures = two_nodes(), Failures(at, after=True)
        with contextlib.suppress(Crash):
            probe.provision(ports=failures.ports(probe.ports))
        if failures.failed == "create_fleet":
            world.provision(ports=Failures(at, after=True).ports(world.ports))
    raise AssertionError("the fleet was never asked for")


def test_a_body_that_was_written_and_never_opened_is_stepped_over() -> None:
    world = without_spot()
    world.decisions.put(f"launches/{NAME}/plan-1/0-1.json", b"never opened")
    world.provision()
    assert len(world.alive) == 2
    (intent,) = world.ledger.closed.values()
    assert intent.attempt == 2
    assert len({fleet["ClientToken"] for fleet in world.cloud.fleets}) == 2


def test_machines_of_a_launch_that_goes_on_later_become_nodes_at_once() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(world.alive[0].instance_id)
    # EC2 shows one of two machines: the launch waits for the other, its Node for nothing.
    world.provision()
    assert intents(world) == (1, 0)
    assert len(world.bound) == 1
    assert world.node.instance_id == world.alive[0].instance_id


def test_machines_of_a_launch_that_is_given_up_become_nodes_at_once() -> None:
    either = needs(keys.ARCH, "In", "amd64", "arm64")
    world = World(provisioner(requirements=either), *apart(2))
    world.cloud.missing_images.add(
        "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/standard/recommended/image_id"
    )
    world.cloud.run_out_of(
        *(
            offering(instance_type.name, option.zone, option.capacity_type)
            for instance_type in world.catalog.instance_types()
            if instance_type.labels[keys.ARCH] == "amd64"
            for option in instance_type.offerings
        )
    )
    world.cloud.run_out_of(offering("m5.large", ZONES[0], SPOT), left=1)
    world.provision()
    (machine,) = world.alive
    assert (world.node.instance_id, len(world.bound)) == (machine.instance_id, 1)


def test_after_ten_bodies_that_were_never_opened_the_launch_begins_anew() -> None:
    world = without_spot()
    for number in range(1, 11):
        world.decisions.put(f"launches/{NAME}/plan-1/0-{number}.json", b"another")
    report = world.provision()
    assert report.plans == ("plan-1", "plan-2")
    assert {instance.tags[keys.TAG_PLAN] for instance in world.alive} == {"plan-2"}
    assert len(world.alive) == 2
    assert intents(world) == (0, 2)


def scarce(trouble: str) -> World:
    world = World(provisioner(requirements=ANY_WAY), *apart(2))
    if trouble != "none":
        names = [instance_type.name for instance_type in world.catalog.instance_types()]
        world.cloud.run_out_of(*(offering(name, zone, SPOT) for name in names for zone in ZONES))
        world.cloud.run_out_of(
            offering(capacity_type=SPOT), left={"short": 1, "fallback": 0}[trouble]
        )
    return world


def finish(world: World) -> None:
    """Let wakes, the expiry of the lease and sweep do their work."""
    world.advance(51 * SECOND)
    world.provision_until_quiet()
    world.advance(100 * SECOND)
    world.sweep()
    for timer in world.outbox.timers_of(TimerKind.TERMINATION):
        world.cloud.terminate([timer.payload["instance_id"]])


@pytest.mark.parametrize("error", [Crash, UnavailableError, ThrottledError, ConflictError])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("trouble", ["none", "short", "fallback"])
def test_a_failure_at_any_call_ends_with_exactly_the_planned_machines(
    error: type[Exception], trouble: str, *, after: bool
) -> None:
    """The n-th call fails, for every n; later wakes and sweeps finish the work."""
    for at in range(400):
        world = scarce(trouble)
        failures = Failures(at, after=after, error=error)
        with contextlib.suppress(error):
            world.provision(ports=failures.ports(world.ports))
        finish(world)
        where = f"{error.__name__} at call {at}, {failures.failed}"
        assert len(world.alive) == 2, where
        assert len(world.bound) == 2, where
        assert sorted(set(world.bound.values())) == [node.name for node in world.cluster.nodes()]
        assert not world.ledger.open_intents(NAME), where
        assert not world.ledger.is_held(NAME), where
        if not failures.failed:
            assert at > 20
            return
    raise AssertionError("provision makes too many calls")


def test_limits_hold_while_a_launch_is_open() -> None:
    world = World(provisioner(limits=Resources.of(cpu=4000)), *apart(2))
    open_intent(world)
    world.cluster.add(pod("third", cpu=1500))
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert "third" not in world.bound

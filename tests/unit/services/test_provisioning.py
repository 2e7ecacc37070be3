"""Provisioning: pods that wait get nodes; whatever goes wrong, never too many."""

import contextlib
import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import ConflictError, ThrottledError, UnauthorizedError, UnavailableError
from shared.model.instance_types import CapacityType
from shared.model.launch import FleetAnswer, IntentState
from shared.model.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.provisioner import NodeTemplate
from shared.model.resources import Resources
from shared.model.snapshot import InvalidProvisioner
from shared.ports import TimerKind
from tests.builders import ZONES, needs, node, offering, pod, pods, provisioner
from tests.fakes.ledger import FakeLedger
from tests.unit.services.world import NAME, SECOND, Crash, Failures, World, instead

SPOT = CapacityType.SPOT
ANY_WAY = needs(keys.ARCH, "In", "amd64")


def apart(count: int) -> tuple[Pod, ...]:
    """Return pods that each need a machine of their own, an m5.large if there is one."""
    return pods(count, cpu=1500, host_ports=(("0.0.0.0", "TCP", 80),))


def two_nodes(**changes: Any) -> World:
    return World(provisioner(**changes), *apart(2))


def states(world: World) -> list[IntentState]:
    return [one.state for one in world.ledger.intents.values()]


def test_pods_get_nodes_and_are_bound_early() -> None:
    world = two_nodes()
    report = world.provision()
    assert (report.rounds, report.pods_planned, report.nodes_launched) == (1, 2, 2)
    assert report.launches == 1
    assert report.cost_micros_per_hour == 192_000
    assert len(world.alive) == 2
    assert set(world.bound.values()) == {one.private_dns_name for one in world.alive}
    assert len(set(world.bound.values())) == 2
    assert states(world) == [IntentState.DONE]
    assert not world.ledger.is_held(NAME)
    assert len(world.outbox.timers_of(TimerKind.REGISTRATION)) == 2


def test_a_second_wake_has_nothing_to_do() -> None:
    world = two_nodes()
    world.provision()
    report = world.provision()
    assert report.plans == ()
    assert len(world.alive) == 2


def test_nothing_is_read_that_nobody_needs() -> None:
    world = World(provisioner())
    world.provision()
    assert "nodes" not in world.cluster.reads
    assert "daemonsets" not in world.cluster.reads
    assert world.catalog.calls == 0


def test_who_does_not_get_the_lease_leaves_a_mark_and_goes() -> None:
    world = two_nodes()
    world.ledger.acquire(NAME, "somebody", world.clock.now())
    report = world.provision()
    assert not report.leading
    assert world.ledger.is_dirty(NAME)
    assert world.alive == []


def test_a_mark_left_meanwhile_makes_one_more_round() -> None:
    world = two_nodes()
    original = world.cluster.happened

    def happened(happenings: Any) -> None:
        original(happenings)
        if "late" not in world.cluster.pods:
            world.ledger.acquire(NAME, "another", world.clock.now())
            world.cluster.add(pod("late", cpu=1500))

    instead(world.cluster, "happened", happened)
    report = world.provision()
    assert report.rounds >= 2
    assert len(world.alive) == 3


def test_the_fast_lane_waits_until_the_burst_is_over() -> None:
    world = two_nodes()
    world.provision(settle=True)
    assert sum(world.clock.slept, timedelta(0)) == SECOND
    assert world.cluster.reads.count("pending_pods") == 4


def test_the_fast_lane_waits_no_longer_than_it_may() -> None:
    world = two_nodes()
    names = iter(range(100))

    def sleep(span: timedelta) -> None:
        world.advance(span)
        world.cluster.add(pod(f"more{next(names)}", cpu=10))

    instead(world.clock, "sleep", sleep)
    world.provision(settle=True)
    assert next(names) == 20


def test_work_that_would_not_fit_before_the_deadline_is_handed_over() -> None:
    world = two_nodes()
    report = world.provision(span=49 * SECOND)
    assert report.rounds == 0
    assert world.outbox.wakes == [(NAME, timedelta(0))]
    assert not world.ledger.is_held(NAME)


def test_a_mark_left_as_work_is_handed_over_is_taken_off() -> None:
    world = two_nodes()
    original = world.outbox.wake

    def wake(cluster: str, delay: timedelta) -> None:
        original(cluster, delay)
        world.ledger.acquire(NAME, "another", world.clock.now())

    instead(world.outbox, "wake", wake)
    world.provision(span=49 * SECOND)
    assert not world.ledger.is_held(NAME)


def test_a_plan_that_never_comes_true_is_left_after_ten_rounds() -> None:
    world = two_nodes()

    def nothing(request: Any) -> FleetAnswer:
        return FleetAnswer(fleet_id="", instances=())

    def forgets(offerings: Any, now: Any) -> None:
        """Let the next plan be the same again."""

    instead(world.cloud, "create_fleet", nothing)
    world.ledger = FakeLedger(burst=100)
    instead(world.ledger, "mark_unavailable", forgets)
    world.ports = dataclasses.replace(world.ports, ledger=world.ledger)
    report = world.provision()
    assert report.rounds == 10
    assert world.outbox.wakes == [(NAME, timedelta(seconds=2))]
    assert not world.ledger.is_held(NAME)


def test_each_group_of_a_plan_is_one_fleet() -> None:
    near = pod("near", node_selector=needs(keys.ZONE, "In", ZONES[0]))
    far = pod("far", node_selector=needs(keys.ZONE, "In", ZONES[1]))
    world = World(provisioner(), near, far)
    report = world.provision()
    assert (report.launches, report.nodes_launched) == (2, 2)
    assert len(world.cloud.called("image_ids")) == 1


def test_pods_nothing_holds_get_an_event_with_the_reason() -> None:
    world = World(provisioner(), pod(cpu=90_000))
    report = world.provision()
    assert report.pods_unschedulable == 1
    ((happening, _),) = world.cluster.happenings.items()
    assert (happening.kind, happening.name, happening.reason) == ("Pod", "a", "FailedProvisioning")
    assert "no instance type is large enough" in happening.message


def test_placed_pods_are_promised_to_the_node_in_flight() -> None:
    world = World(provisioner(), pod("first", cpu=800, claims=("data",)))
    world.provision()
    world.cluster.add(pod("second", cpu=800, claims=("data",)))
    report = world.provision()
    assert report.pods_placed == 1
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["first", "second"]
    assert len(world.alive) == 1


def test_pods_placed_on_a_node_that_stands_are_left_to_kube_scheduler() -> None:
    world = World(provisioner(), node(), pod())
    report = world.provision()
    assert report.pods_placed == 1
    assert world.bound == {}
    assert world.cloud.fleets == []


# --- what EC2 may answer


def test_what_ec2_refuses_is_asked_for_in_the_next_option() -> None:
    world = two_nodes()
    world.cloud.run_out_of(offering(zone=ZONES[0]), offering(zone=ZONES[1]), left=0)
    report = world.provision()
    assert len(world.alive) == 2
    assert {one.offering.zone for one in world.alive} == {ZONES[2]}
    assert report.rounds == 1
    assert world.ledger.unavailable_offerings(world.clock.now()) == {
        offering(zone=ZONES[0]),
        offering(zone=ZONES[1]),
    }


def test_a_partial_fleet_is_kept_and_the_rest_asked_for_elsewhere() -> None:
    world = World(provisioner(requirements=ANY_WAY), *apart(3))
    everything = [
        offering(one.name, zone, SPOT) for one in world.catalog.instance_types() for zone in ZONES
    ]
    world.cloud.run_out_of(*everything)
    world.cloud.run_out_of(offering("m5.large", ZONES[0], SPOT), left=1)
    report = world.provision()
    bought = sorted(one.offering.capacity_type.value for one in world.alive)
    assert bought == ["on-demand", "on-demand", "spot"]
    assert report.rounds == 1
    tokens = [one["ClientToken"] for one in world.cloud.fleets]
    assert len(tokens) == len(set(tokens)) == 2
    assert len(world.bound) == 3


def test_when_all_options_are_refused_the_pods_are_planned_again() -> None:
    world = two_nodes(also=needs(keys.INSTANCE_TYPE, "In", "m5.large", "m5.2xlarge"))
    world.cloud.run_out_of(*(offering(zone=zone) for zone in ZONES))
    report = world.provision()
    # Dearer than the ceiling for options, so only a second plan takes it.
    assert {one.offering.instance_type for one in world.alive} == {"m5.2xlarge"}
    assert report.rounds == 2
    assert len(world.bound) == 2


def test_when_ec2_has_nothing_at_all_the_pods_are_told() -> None:
    world = two_nodes()
    world.cloud.run_out_of(
        *(offering(one.name, zone) for one in world.catalog.instance_types() for zone in ZONES)
    )
    report = world.provision()
    assert world.alive == []
    assert report.pods_unschedulable == 2
    assert any("EC2 is out of capacity" in one.message for one in world.cluster.happenings)
    assert set(states(world)) == {IntentState.DONE}


def test_fewer_machines_without_a_reason_do_not_loop() -> None:
    world = two_nodes()
    original = world.cloud.create_fleet

    def silent(request: Any) -> Any:
        answer = original(request)
        world.cloud.end(*(one.instance_id for one in answer.instances))
        return type(answer)(fleet_id="", instances=(), refused=(), errors=())

    instead(world.cloud, "create_fleet", silent)
    world.provision()
    assert len(world.cloud.fleets) <= 4


@pytest.mark.parametrize("delay", [None, timedelta(seconds=7)])
def test_a_throttle_postpones_the_intent_and_sends_a_wake(delay: timedelta | None) -> None:
    world = two_nodes()
    world.cloud.fail_next("create_fleet", ThrottledError("slow down", delay=delay))
    report = world.provision()
    wait = delay or timedelta(seconds=2)
    assert report.nodes_launched == 0
    assert world.outbox.wakes == [(NAME, wait)]
    assert states(world) == [IntentState.OPEN]
    # Early wakes do not ask before it is time, nor plan the same pods again.
    assert world.provision().plans == ()
    assert len(world.cloud.called("create_fleet")) == 1
    world.advance(wait)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert len(world.bound) == 2


def test_an_empty_token_bucket_postpones_like_a_throttle() -> None:
    world = two_nodes()
    for _ in range(5):
        assert world.ledger.take_token("CreateFleet", world.clock.now()) is None
    world.provision()
    assert world.cloud.called("create_fleet") == []
    assert world.outbox.wakes == [(NAME, timedelta(seconds=0.5))]
    world.provision_until_quiet()
    assert len(world.alive) == 2


@pytest.mark.parametrize("shown", [timedelta(0), timedelta(seconds=5), timedelta(seconds=40)])
@pytest.mark.parametrize("forgets", [False, True])
def test_machines_of_a_lost_answer_are_adopted_by_tag(shown: timedelta, *, forgets: bool) -> None:
    world = two_nodes()
    world.cloud.delays.shown = shown
    world.cloud.forgets_tokens = forgets and shown < timedelta(seconds=10)
    world.cloud.lose_next_answer()
    world.provision()
    assert states(world) == [IntentState.OPEN]
    world.advance(10 * SECOND)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert len(world.bound) == 2
    assert len(world.cloud.fleets) == 1


def test_a_launch_that_was_refused_for_good_frees_its_pods_and_names_the_provisioner() -> None:
    world = two_nodes()
    world.cloud.fail_next("create_fleet", UnauthorizedError("no right to launch"))
    world.provision()
    assert states(world) == [IntentState.DONE]
    reasons = [(one.kind, one.reason, one.message) for one in world.cluster.happenings]
    assert reasons == [("Provisioner", "CannotLaunch", "no right to launch")]
    world.provision()
    assert len(world.alive) == 2


def test_one_provisioner_that_cannot_launch_does_not_stop_the_others() -> None:
    broken = provisioner("broken", weight=9, also=needs(keys.ZONE, "In", ZONES[0]))
    template = NodeTemplate(
        ami_family="Bottlerocket", subnet_selector={"a": "b"}, security_group_selector={"a": "b"}
    )
    world = World(
        provisioner(),
        provisioner("broken", weight=9, also=broken.requirements, template=template),
        pod("far", node_selector=needs(keys.ZONE, "In", ZONES[1])),
        pod("near", node_selector=needs(keys.ZONE, "In", ZONES[0])),
    )
    world.provision()
    assert list(world.bound) == ["far"]
    assert [one.name for one in world.cluster.happenings] == ["broken"]


def test_a_collected_launch_template_is_made_again() -> None:
    world = two_nodes()
    original, made = world.cloud.ensure_launch_template, []

    def ensure(name: str, data: Any) -> None:
        made.append(name)
        original(name, data)
        if len(made) == 1:
            world.cloud.delete_launch_template(name)

    instead(world.cloud, "ensure_launch_template", ensure)
    world.provision()
    assert len(made) == 2
    assert len(world.alive) == 2


# --- leases and open intents


def test_a_lost_lease_stops_everything() -> None:
    world = two_nodes()
    original = world.decisions.put

    def put(key: str, document: bytes) -> None:
        original(key, document)
        if "/launches/" in key:
            world.ledger.steal(NAME, world.clock.now())

    instead(world.decisions, "put", put)
    with pytest.raises(ConflictError):
        world.provision()
    assert world.cloud.called("create_fleet") == []
    assert world.ledger.is_held(NAME)


def test_the_lease_is_given_back_when_an_invocation_fails() -> None:
    world = two_nodes()
    world.cluster.fail_next("create_node", UnavailableError("api server"))
    with pytest.raises(UnavailableError):
        world.provision()
    assert not world.ledger.is_held(NAME)
    world.provision_until_quiet()
    assert len(world.bound) == 2


def open_intent(world: World) -> None:
    """Leave a launch open whose answer was lost, its machines there."""
    world.cloud.lose_next_answer()
    world.provision()
    world.advance(10 * SECOND)


def test_an_intent_of_a_provisioner_that_is_gone_is_ended_and_its_machines_adopted() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(world.alive[0].instance_id)
    del world.cluster.provisioner_values["default"]
    world.cloud.missing_images.update(
        one
        for call in world.cloud.called("image_ids")
        for one in call  # type: ignore[attr-defined]
    )
    world.advance(timedelta(minutes=6))
    world.provision_until_quiet()
    assert states(world) == [IntentState.DONE]
    assert len(world.ledger.slots(NAME)) == 1
    assert len(world.alive) == 1


def test_an_intent_whose_body_is_lost_is_ended() -> None:
    world = two_nodes()
    open_intent(world)
    world.decisions.documents.clear()
    world.provision()
    assert states(world)[0] == IntentState.DONE


def test_a_resumed_launch_asks_for_what_is_still_missing_with_the_same_options() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(world.alive[0].instance_id)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert {one.offering for one in world.alive} == {offering()}
    assert [
        one["TargetCapacitySpecification"]["TotalTargetCapacity"] for one in world.cloud.fleets
    ] == [2, 1]


def test_a_launch_that_is_too_old_to_replay_gets_a_new_attempt() -> None:
    world = two_nodes()
    open_intent(world)
    world.cloud.end(*(one.instance_id for one in world.alive))
    world.advance(timedelta(minutes=6))
    world.provision_until_quiet()
    assert len(world.alive) == 2
    first, second = (one["ClientToken"] for one in world.cloud.fleets)
    assert first != second


def test_a_young_intent_without_a_time_waits_for_ec2_to_show_its_machines() -> None:
    world = two_nodes()
    with pytest.raises(Crash):
        crash_at_fleet(world)
    world.advance(51 * SECOND)
    world.policy = LaunchPolicy(consistency=timedelta(seconds=60))
    assert world.provision().plans == ()
    assert world.outbox.wakes == [(NAME, timedelta(seconds=60))]
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


def without_spot() -> World:
    """A world that must fall back to on-demand: a second attempt is made."""
    world = World(provisioner(requirements=ANY_WAY), *apart(2))
    world.cloud.run_out_of(
        *(
            offering(one.name, zone, SPOT)
            for one in world.catalog.instance_types()
            for zone in ZONES
        )
    )
    return world


def test_a_body_that_was_written_and_never_opened_is_stepped_over() -> None:
    world = without_spot()
    world.decisions.put(f"decisions/{NAME}/launches/plan-1/0-1.json", b"never opened")
    world.provision()
    assert len(world.alive) == 2
    (intent,) = world.ledger.intents.values()
    assert intent.attempt == 2
    assert len({one["ClientToken"] for one in world.cloud.fleets}) == 2


def test_ten_bodies_that_were_never_opened_are_one_too_many() -> None:
    world = without_spot()
    for number in range(1, 11):
        world.decisions.put(f"decisions/{NAME}/launches/plan-1/0-{number}.json", b"another")
    with pytest.raises(ConflictError, match="bodies of 10 attempts stand written"):
        world.provision()


def scarce(trouble: str) -> World:
    world = World(provisioner(requirements=ANY_WAY), *apart(2))
    if trouble != "none":
        names = [one.name for one in world.catalog.instance_types()]
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
        assert sorted(set(world.bound.values())) == [one.name for one in world.cluster.nodes()]
        assert not world.ledger.open_intents(NAME), where
        assert not world.ledger.is_held(NAME), where
        if not failures.failed:
            assert at > 20
            return
    raise AssertionError("provision makes too many calls")


# --- nodes


def test_a_machine_that_is_not_shown_yet_is_looked_for_again() -> None:
    world = two_nodes()
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    assert world.cluster.nodes() == ()
    assert world.outbox.wakes == [(NAME, timedelta(seconds=2))]
    world.provision_until_quiet()
    assert len(world.bound) == 2


def test_a_machine_that_dies_before_it_is_a_node_is_replaced() -> None:
    world = two_nodes()
    world.cloud.delays.named = 3 * SECOND
    world.provision()
    world.cloud.end(world.alive[0].instance_id)
    world.advance(3 * SECOND)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert len(world.bound) == 2
    assert offering() in world.ledger.unavailable_offerings(world.clock.now())


def test_a_machine_ec2_never_shows_is_given_up() -> None:
    world = two_nodes()
    world.cloud.delays.shown = timedelta(days=1)
    world.provision()
    world.advance(timedelta(minutes=6))
    world.cloud.delays.shown = timedelta(0)
    world.cloud.end(*(one.instance_id for one in world.alive))
    world.cloud._machines.clear()
    world.provision_until_quiet()
    assert len(world.bound) == 2


@pytest.mark.parametrize("policy", [BindingPolicy.READY, BindingPolicy.SCHEDULER])
def test_pods_are_not_bound_early_where_the_policy_forbids_it(policy: BindingPolicy) -> None:
    world = two_nodes()
    world.policy = LaunchPolicy(binding=policy)
    world.provision()
    assert world.bound == {}
    assert [len(one.pods) for one in world.ledger.slots(NAME)] == [1, 1]
    assert world.provision().plans == ()


# --- provisioners


def test_conditions_say_whether_a_provisioner_can_be_used() -> None:
    bad = InvalidProvisioner(name="bad", uid="u", resource_version="1", reasons=("a", "b"))
    world = World(provisioner(), bad)
    world.provisioning().report_provisioners()
    assert world.cluster.conditions == {
        "bad": (False, "Invalid", "a; b"),
        "default": (True, "Valid", "ready to launch nodes"),
    }
    assert [(one.name, one.message) for one in world.cluster.happenings] == [("bad", "a; b")]


def test_limits_hold_while_a_launch_is_open() -> None:
    world = World(provisioner(limits=Resources.of(cpu=4000)), *apart(2))
    open_intent(world)
    world.cluster.add(pod("third", cpu=1500))
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert "third" not in world.bound

"""What EC2 may answer to a launch, and what becomes of it."""

from datetime import timedelta
from typing import Any

import pytest

from shared.manifests.api.selector_map import selector_of
from shared.model import labels as keys
from shared.model.errors import ThrottledError, UnauthorizedError, UnavailableError
from shared.model.provisioner import NodeTemplate
from shared.model.values import replace
from tests.builders import ZONES, needs, offering, pod, provisioner
from tests.unit.nodes.launch.launches import ANY_WAY, SPOT, apart, intents, two_nodes
from tests.unit.worlds import MINUTE, NAME, SECOND, World, instead


def test_what_ec2_refuses_is_asked_for_in_the_next_option() -> None:
    world = two_nodes()
    world.cloud.run_out_of(offering(zone=ZONES[0]), offering(zone=ZONES[1]), left=0)
    report = world.provision()
    assert len(world.alive) == 2
    assert {instance.offering.zone for instance in world.alive} == {ZONES[2]}
    assert report.rounds == 1
    assert world.ledger.unavailable_offerings(world.clock.now()) == {
        offering(zone=ZONES[0]),
        offering(zone=ZONES[1]),
    }


def test_a_partial_fleet_is_kept_and_the_rest_asked_for_elsewhere() -> None:
    world = World(provisioner(requirements=ANY_WAY), *apart(3))
    everything = [
        offering(instance_type.name, zone, SPOT)
        for instance_type in world.catalog.instance_types()
        for zone in ZONES
    ]
    world.cloud.run_out_of(*everything)
    world.cloud.run_out_of(offering("m5.large", ZONES[0], SPOT), left=1)
    report = world.provision()
    bought = sorted(instance.offering.capacity_type.value for instance in world.alive)
    assert bought == ["on-demand", "on-demand", "spot"]
    assert report.rounds == 1
    tokens = [fleet["ClientToken"] for fleet in world.cloud.fleets]
    assert len(tokens) == len(set(tokens)) == 2
    assert len(world.bound) == 3


def test_when_all_options_are_refused_the_pods_are_planned_again() -> None:
    world = two_nodes(also=needs(keys.INSTANCE_TYPE, "In", "m5.large", "m5.2xlarge"))
    world.cloud.run_out_of(*(offering(zone=zone) for zone in ZONES))
    report = world.provision()
    # More expensive than options of one launch may be, so only a second plan takes it.
    assert {instance.offering.instance_type for instance in world.alive} == {"m5.2xlarge"}
    assert report.rounds == 2
    assert len(world.bound) == 2


def test_fewer_machines_without_a_reason_do_not_loop() -> None:
    world = two_nodes()
    original = world.cloud.create_fleet

    def silent(request: Any) -> Any:
        answer = original(request)
        world.cloud.end(*(instance.instance_id for instance in answer.instances))
        return type(answer)(fleet_id="", instances=(), errors=())

    instead(world.cloud, "create_fleet", silent)
    world.provision()
    assert len(world.cloud.fleets) <= 4


def test_part_of_an_answer_that_ec2_gave_before_makes_no_offering_suspect() -> None:
    world = two_nodes()
    original, tokens = world.cloud.create_fleet, []

    def replayed(request: Any) -> Any:
        answer = original(request)
        tokens.append(request["ClientToken"])
        return replace(answer, instances=answer.instances[:1])

    def lost(request: Any) -> Any:
        original(request)
        tokens.append(request["ClientToken"])
        instead(world.cloud, "create_fleet", replayed)
        raise UnavailableError("the answer was lost")

    instead(world.cloud, "create_fleet", lost)
    world.cloud.delays.shown = timedelta(hours=1)
    world.provision()
    world.advance(world.policy.invocation_timeout + world.policy.consistency_delay)
    world.provision()
    assert tokens[0] == tokens[1]
    assert world.ledger.unavailable_offerings(world.clock.now()) == set()


@pytest.mark.parametrize("delay", [None, timedelta(seconds=7)])
def test_a_throttle_postpones_the_intent_and_sends_a_wake(delay: timedelta | None) -> None:
    world = two_nodes()
    world.cloud.fail_next("create_fleet", ThrottledError("slow down", delay=delay))
    report = world.provision()
    wait = delay or timedelta(seconds=2)
    assert report.nodes_launched == 0
    assert world.outbox.wakes == [(NAME, wait)]
    assert intents(world) == (1, 0)
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
        assert not world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    assert world.cloud.called("create_fleet") == []
    assert world.outbox.wakes == [(NAME, timedelta(seconds=0.5))]
    world.provision_until_quiet()
    assert len(world.alive) == 2


def test_a_cluster_waits_for_one_token_at_a_time_and_need_not_ask_for_it_again() -> None:
    zones = (pod(zone, node_selector=needs(keys.ZONE, "In", zone)) for zone in ZONES)
    world = World(provisioner(), *zones)
    for _ in range(5):
        world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    assert len(world.ledger.open_intents(NAME)) == 3
    assert len(world.ledger.written("take_token")) == 6
    # Another cluster asks meanwhile: its turn is the next.
    assert world.ledger.take_token("CreateFleet", world.clock.now()) == SECOND
    world.advance(timedelta(milliseconds=500))
    world.provision()
    assert len(world.cloud.called("create_fleet")) == 1
    assert len(world.ledger.written("take_token")) == 8
    assert [intent.token_at for intent in world.ledger.open_intents(NAME)] == [
        world.clock.now() + SECOND,
        None,
    ]


def test_a_launch_that_waited_long_for_its_token_uses_it() -> None:
    world = World(provisioner(), pod())
    for _ in range(5):
        world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    ((key, intent),) = world.ledger.intents.items()
    # It had waited for the turns of others before.
    old = replace(intent, created_at=intent.created_at - 6 * MINUTE)
    world.ledger.intents[key] = old
    asked = len(world.ledger.written("take_token"))
    world.advance(timedelta(milliseconds=500))
    world.provision()
    assert len(world.alive) == 1
    assert len(world.ledger.written("take_token")) == asked


def test_a_token_that_was_not_used_in_time_is_asked_for_anew() -> None:
    world = two_nodes()
    for _ in range(5):
        world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    world.advance(MINUTE)
    for _ in range(5):
        world.ledger.take_token("CreateFleet", world.clock.now())
    world.provision()
    assert world.cloud.called("create_fleet") == []


@pytest.mark.parametrize("shown", [timedelta(0), timedelta(seconds=5), timedelta(seconds=40)])
@pytest.mark.parametrize("forgets", [False, True])
def test_machines_of_a_lost_answer_are_adopted_by_tag(shown: timedelta, *, forgets: bool) -> None:
    world = two_nodes()
    world.cloud.delays.shown = shown
    world.cloud.forgets_tokens = forgets and shown < timedelta(seconds=10)
    world.cloud.lose_next_answer()
    world.provision()
    assert intents(world) == (1, 0)
    world.advance(10 * SECOND)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert len(world.bound) == 2
    assert len(world.cloud.fleets) == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_slot_that_is_gone_since_its_node_is_complete_is_not_filled_again(count: int) -> None:
    world = World(provisioner(), *apart(count))
    world.cloud.forgets_tokens = True
    world.provision()
    for slot in world.ledger.slots(NAME):
        world.ledger.drop_slot(slot)
    # The last slot was written, the answer to that was lost, and bind was quick.
    world.ledger.intents |= world.ledger.closed
    world.ledger.closed.clear()
    world.advance(11 * SECOND)
    world.provision()
    assert len(world.alive) == count
    assert intents(world) == (0, 1)


def test_a_launch_that_was_refused_for_good_frees_its_pods_and_names_the_provisioner() -> None:
    world = two_nodes()
    world.cloud.fail_next("create_fleet", UnauthorizedError("no right to launch"))
    world.provision()
    assert intents(world) == (0, 1)
    reasons = [
        (kube_event.kind, kube_event.reason, kube_event.message)
        for kube_event in world.cluster.kube_events
    ]
    assert reasons == [("Provisioner", "CannotLaunch", "no right to launch")]
    world.provision()
    assert len(world.alive) == 2


def test_one_provisioner_that_cannot_launch_does_not_stop_the_others() -> None:
    broken = provisioner("broken", weight=9, also=needs(keys.ZONE, "In", ZONES[0]))
    template = NodeTemplate(
        ami_family="Windows2022",
        subnet_selector=selector_of({"a": "b"}),
        security_group_selector=selector_of({"a": "b"}),
    )
    world = World(
        provisioner(),
        provisioner("broken", weight=9, also=broken.requirements, template=template),
        pod("far", node_selector=needs(keys.ZONE, "In", ZONES[1])),
        pod("near", node_selector=needs(keys.ZONE, "In", ZONES[0])),
    )
    world.provision()
    assert list(world.bound) == ["far"]
    warned = [
        kube_event for kube_event in world.cluster.kube_events if kube_event.severity == "Warning"
    ]
    assert [event.name for event in warned] == ["broken"]


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

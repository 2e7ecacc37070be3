"""Provisioning, round by round: pods that wait get nodes."""

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from shared.model.ec2.launches import FleetAnswer, Lease
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy, PreferencePolicy
from shared.model.provisioner import InvalidProvisioner
from shared.model.values import replace
from shared.planning.offerings.picks import MOST_PICKS
from shared.ports import NodeManifest, TimerKind
from tests.builders import ZONES, affinity, needs, node, pod, pods, provisioner
from tests.fakes.ledger import FakeLedger
from tests.unit.nodes.launch.launches import intents, two_nodes
from tests.unit.worlds import NAME, SECOND, World, instead


def test_pods_get_nodes_and_are_bound_early() -> None:
    world = two_nodes()
    report = world.provision()
    assert (report.rounds, report.pods_planned, report.nodes_launched) == (1, 2, 2)
    assert report.launches == 1
    assert report.cost_micros_per_hour == 192_000
    assert len(world.alive) == 2
    assert set(world.bound.values()) == {instance.private_dns_name for instance in world.alive}
    assert len(set(world.bound.values())) == 2
    assert intents(world) == (0, 1)
    assert not world.ledger.is_held(NAME)
    assert len(world.outbox.timers_of(TimerKind.REGISTRATION)) == 2


def test_what_pods_prefer_counts_as_the_attachment_says() -> None:
    apart: dict[str, Any] = {
        "labels": {"app": "web"},
        "anti_affinity": (affinity(weight=1),),
        "cpu": 100,
    }
    for policy, nodes in ((PreferencePolicy.WEIGH, 1), (PreferencePolicy.RESPECT, 2)):
        world = World(provisioner(), *pods(2, **apart))
        world.ports = replace(world.ports, preference_policy=policy)
        report = world.provision()
        assert len(world.alive) == nodes
        assert report.preferences_stated == 2
        assert report.preferences_kept == (2 if nodes == 2 else 0)


def test_a_second_wake_has_nothing_to_do() -> None:
    world = two_nodes()
    world.provision()
    report = world.provision()
    assert report.plans == ()
    assert len(world.alive) == 2


def test_nothing_is_read_without_need() -> None:
    world = World(provisioner())
    world.provision()
    assert "nodes" not in world.cluster.reads
    assert "daemonsets" not in world.cluster.reads
    assert world.catalog.calls == 0


def test_a_look_for_which_there_is_no_time_is_left_to_another_invocation() -> None:
    world = two_nodes()
    world.provision(look=True, span=10 * SECOND)
    assert (world.outbox.evaluations, world.outbox.wakes) == ([NAME], [])


def test_invocation_without_the_lease_leaves_a_mark_and_ends() -> None:
    world = two_nodes()
    world.ledger.acquire(NAME, "another", world.clock.now())
    report = world.provision()
    assert not report.leading
    assert world.ledger.is_dirty(NAME)
    assert world.alive == []


@pytest.mark.parametrize(("took", "next_call"), [(10, "change_note"), (30, "renew")])
def test_a_lease_whose_first_half_is_gone_when_it_is_had_is_renewed_at_once(
    took: int, next_call: str
) -> None:
    world = two_nodes()
    acquire = world.ledger.acquire

    def slow(cluster: str, holder: str, now: datetime) -> Lease | None:
        lease = acquire(cluster, holder, now)
        world.advance(took * SECOND)
        return lease

    instead(world.ledger, "acquire", slow)
    world.provision()
    methods = [call.method for call in world.ledger.calls]
    assert methods[methods.index("acquire") + 1] == next_call


def test_a_mark_left_meanwhile_makes_one_more_round() -> None:
    world = two_nodes()
    original = world.cluster.create_node

    def create_node(manifest: NodeManifest) -> Node:
        if not world.ledger.is_dirty(NAME):
            world.ledger.acquire(NAME, "another", world.clock.now())
            world.cluster.add(pod("late", cpu=1500))
        return original(manifest)

    instead(world.cluster, "create_node", create_node)
    report = world.provision()
    assert report.rounds >= 2
    assert len(world.alive) == 3


def test_the_fast_lane_waits_until_the_burst_is_over() -> None:
    world = two_nodes()
    world.provision(settle=True)
    assert sum(world.clock.slept, timedelta(0)) == SECOND
    assert world.cluster.reads.count("pending_pods") == 4


def test_a_burst_lasts_while_kube_scheduler_still_looks_at_its_pods() -> None:
    burst = pods(4, cpu=300)
    seen = [replace(waiting, unschedulable=False) for waiting in burst[1:]]
    world = World(provisioner(), burst[0], *seen)
    marked = iter(burst[1:])

    def sleep(span: timedelta) -> None:
        world.advance(span)
        world.cluster.add(
            *(replace(known, unschedulable=True) for known in itertools.islice(marked, 1))
        )

    instead(world.clock, "sleep", sleep)
    report = world.provision(settle=True)
    assert (report.pods_planned, report.launches) == (4, 1)


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


def test_an_invocation_that_work_is_handed_over_to_gets_the_lease() -> None:
    world = two_nodes()
    leases: list[Lease | None] = []

    def wake(cluster: str, _delay: timedelta) -> None:
        leases.append(world.ledger.acquire(cluster, "another", world.clock.now()))

    instead(world.outbox, "wake", wake)
    world.provision(span=49 * SECOND)
    assert [lease is not None for lease in leases] == [True]


def test_a_mark_left_before_work_is_handed_over_is_taken_off() -> None:
    world = two_nodes()
    acquire = world.ledger.acquire

    def with_mark(cluster: str, holder: str, now: datetime) -> Lease | None:
        lease = acquire(cluster, holder, now)
        acquire(cluster, "another", now)
        return lease

    instead(world.ledger, "acquire", with_mark)
    world.provision(span=49 * SECOND)
    assert not world.ledger.is_held(NAME)


def test_a_plan_that_never_comes_true_is_left_when_nothing_new_is_learned() -> None:
    world = two_nodes()

    def nothing(request: Any) -> FleetAnswer:
        return FleetAnswer(fleet_id="", instances=())

    def forgets(*_args: Any, **_options: Any) -> None:
        """Let the next plan be the same again."""

    instead(world.cloud, "create_fleet", nothing)
    world.ledger = FakeLedger(burst=100)
    instead(world.ledger, "mark_unavailable", forgets)
    world.ports = replace(world.ports, ledger=world.ledger)
    report = world.provision()
    assert (report.rounds, report.failed_attempts) == (3, 2)
    assert world.outbox.wakes == []
    assert not world.ledger.is_held(NAME)


def test_provision_hands_over_after_ten_rounds() -> None:
    world = two_nodes()
    original = world.ledger.open_intents

    def open_intents(cluster: str) -> Any:
        world.ledger.acquire(NAME, "another", world.clock.now())
        return original(cluster)

    instead(world.ledger, "open_intents", open_intents)
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
    assert len(world.cloud.called("image_ids")) == 2  # for the snapshot, and for all launches


def test_pods_nothing_holds_get_an_event_with_the_reason() -> None:
    world = World(provisioner(), pod(cpu=90_000))
    report = world.provision()
    assert report.pods_unschedulable == 1
    ((kube_event, _),) = world.cluster.kube_events.items()
    assert (kube_event.kind, kube_event.name, kube_event.reason) == (
        "Pod",
        "a",
        "FailedProvisioning",
    )
    assert "no instance type is large enough" in kube_event.message


def test_pods_that_a_plan_set_aside_are_planned_for_in_the_same_invocation() -> None:
    open_label = provisioner(also=needs("team", "Exists"))
    world = World(open_label, *(in_team(number) for number in range(MOST_PICKS + 2)))
    report = world.provision()
    assert (report.rounds, report.pods_planned) == (2, MOST_PICKS + 2)
    assert report.pods_set_aside == 0
    assert {
        kube_event.reason for kube_event in world.cluster.kube_events if kube_event.kind == "Pod"
    } <= {"Nominated"}


def test_pods_that_are_set_aside_for_a_later_invocation_are_reported() -> None:
    open_label = provisioner(also=needs("team", "Exists"))
    world = World(open_label, *(in_team(number) for number in range(MOST_PICKS + 2)))
    world.ports = replace(world.ports, brakes=Brakes(ceiling=Ceiling(max_nodes=0)))
    report = world.provision()
    assert (report.rounds, report.pods_set_aside, report.pods_unschedulable) == (1, 2, MOST_PICKS)
    told = [
        kube_event
        for kube_event in world.cluster.kube_events
        if "deferred to a later plan" in kube_event.message
    ]
    assert [(event.kind, event.reason) for event in told] == [("Pod", "FailedProvisioning")] * 2


def in_team(number: int) -> Pod:
    return pod(f"p{number:02}", node_selector=needs("team", "In", f"t{number:02}"))


def test_placed_pods_are_promised_to_the_node_in_flight() -> None:
    world = World(provisioner(), pod("first", cpu=800, claims=("data",)))
    world.provision()
    world.cluster.add(pod("second", cpu=800, claims=("data",)))
    report = world.provision()
    assert report.pods_placed == 1
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["first", "second"]
    assert len(world.alive) == 1


def test_pods_placed_on_an_existing_node_are_left_to_kube_scheduler() -> None:
    world = World(provisioner(), node(), pod())
    report = world.provision()
    assert report.pods_placed == 1
    assert world.bound == {}
    assert world.cloud.fleets == []


@pytest.mark.parametrize("policy", [BindingPolicy.READY, BindingPolicy.SCHEDULER])
def test_pods_are_not_bound_early_where_the_policy_forbids_it(policy: BindingPolicy) -> None:
    world = two_nodes()
    world.policy = LaunchPolicy(binding_policy=policy)
    world.provision()
    assert world.bound == {}
    assert [len(slot.pods) for slot in world.ledger.slots(NAME)] == [1, 1]
    assert world.provision().plans == ()


def test_conditions_say_whether_a_provisioner_can_be_used() -> None:
    bad = InvalidProvisioner(name="bad", uid="u", resource_version="1", reasons=("a", "b"))
    world = World(provisioner(), bad)
    world.provisioning().report_provisioners()
    assert world.cluster.conditions == {
        "bad": (False, "Invalid", "a; b"),
        "default": (True, "Valid", "ready to launch nodes"),
    }
    assert [(kube_event.name, kube_event.message) for kube_event in world.cluster.kube_events] == [
        ("bad", "a; b")
    ]

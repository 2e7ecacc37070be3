"""What holds Dovetail back: pause, shadow mode, ceilings, other autoscalers, runaways."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes
from shared.model.errors import ConflictError
from shared.model.values import replace
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.expiration_timer import Expiration
from shared.packing.problem import PackingSettings
from shared.ports import Rival, RivalKind, TimerKind
from shared.provisioning.provision import Provisioning
from tests.builders import instance, needs, node, pod, provisioner
from tests.unit.nodes.launch.launches import open_intent, two_nodes
from tests.unit.worlds import MINUTE, NAME, SECOND, World, failing, instead

USELESS = "NodesNeverUsable"
KARPENTER = Rival(kind=RivalKind.KARPENTER, where="kube-system/karpenter-leader-election")
AUTOSCALER = Rival(kind=RivalKind.CLUSTER_AUTOSCALER, where="kube-system/cluster-autoscaler")


class Seen:
    """Rivals that a test names."""

    def __init__(self, *rivals: Rival) -> None:
        self.rivals = rivals

    def running(self) -> tuple[Rival, ...]:
        return self.rivals


def braked(world: World, brakes: Brakes) -> World:
    world.ports = replace(world.ports, brakes=brakes)
    return world


# --- pause and shadow


def test_a_paused_cluster_buys_nothing_and_finishes_what_it_bought() -> None:
    world = two_nodes()
    world.cloud.delays.named = 10 * SECOND
    world.provision()
    world.cluster.add(pod("late", cpu=1500))
    braked(world, Brakes(paused=True))
    world.advance(10 * SECOND)
    report = world.provision()
    assert report.held_back == "paused"
    assert report.plans == ()
    assert len(world.alive) == len(world.cluster.nodes()) == 2
    braked(world, Brakes())
    world.provision()
    assert len(world.alive) == 3


def test_a_pause_holds_from_the_next_round_of_an_invocation_on() -> None:
    world = two_nodes()
    open_intent(world)
    world.cluster.add(pod("late", cpu=1500))
    seen = iter([Brakes(), Brakes(paused=True)])
    service = Provisioning(
        world.ports, world.policy, PackingSettings(), lambda: "plan-2", brakes=lambda: next(seen)
    )
    report = service.run("holder", world.clock.now() + 10 * MINUTE, wait_for_batch=False)
    assert (report.rounds, report.held_back) == (2, "paused")
    assert len(world.alive) == 2
    assert world.cluster.conditions["default"][1] == "Paused"


@pytest.mark.parametrize("held", [Brakes(paused=True), Brakes(shadow=True), None])
def test_machines_of_a_launch_whose_outcome_is_unknown_become_nodes_under_a_hold(
    held: Brakes | None,
) -> None:
    world = two_nodes()
    open_intent(world)
    if held is not None:
        braked(world, held)
    else:
        world.ports = replace(world.ports, rivals=Seen(KARPENTER))
    world.provision()
    assert len(world.alive) == len(world.cluster.nodes()) == 2
    assert world.ledger.intents == {}
    assert len(world.cloud.called("create_fleet")) == 1


def test_a_launch_that_brought_nothing_is_given_up_under_a_pause() -> None:
    world = two_nodes()
    world.cloud.throttle_next("create_fleet")
    world.provision()
    braked(world, Brakes(paused=True))
    world.advance(10 * SECOND)
    world.provision()
    assert world.ledger.intents == {}
    assert world.alive == []
    braked(world, Brakes())
    world.provision()
    assert len(world.alive) == 2


def test_a_paused_cluster_says_so_on_provisioners_and_waiting_pods() -> None:
    world = two_nodes()
    braked(world, Brakes(paused=True))
    for _ in range(3):
        world.provision()
        world.advance(MINUTE)
    text = (
        "cluster test is paused by SSM parameter /dovetail/clusters/test/brakes: "
        "no node is launched or removed by choice until it is resumed"
    )
    assert world.cluster.conditions["default"] == (False, "Paused", text)
    told = {(event.kind, event.name): n for event, n in world.cluster.kube_events.items()}
    waiting = {("Pod", name): 1 for name in ("p000", "p001")}
    assert told == {("Provisioner", "default"): 1, **waiting}
    assert {kube_event.message for kube_event in world.cluster.kube_events} == {text}
    assert world.cluster.called("set_provisioner_condition") == ["default"]
    # A Provisioner that is made meanwhile shows it, too.
    world.cluster.add(provisioner("later"))
    world.provisioning().report_provisioners()
    assert world.cluster.conditions["later"][1] == "Paused"
    # It is cleared long after the Events are forgotten.
    world.advance(60 * MINUTE)
    braked(world, Brakes())
    world.provision()
    active = {name: condition[0] for name, condition in world.cluster.conditions.items()}
    assert active == {"default": True, "later": True}


def test_a_pause_that_could_not_be_shown_is_shown_by_a_later_invocation() -> None:
    world = braked(two_nodes(), Brakes(paused=True))
    write = world.cluster.set_provisioner_condition
    instead(world.cluster, "set_provisioner_condition", failing(ConflictError("a webhook")))
    world.provision()
    instead(world.cluster, "set_provisioner_condition", write)
    assert world.sweep().held_back == 1
    assert world.outbox.wakes
    world.provision()
    assert world.cluster.conditions["default"][1] == "Paused"


def test_sweep_wakes_provision_until_conditions_show_the_pause_and_its_end() -> None:
    world = World(provisioner())
    world.sweep()
    assert world.outbox.wakes == []
    for brakes in (Brakes(paused=True), Brakes()):
        braked(world, brakes)
        before = len(world.outbox.wakes)
        world.sweep()
        assert len(world.outbox.wakes) == before + 1
        world.provision()
        world.sweep()
        assert len(world.outbox.wakes) == before + 1
        assert world.cluster.conditions["default"][0] is not brakes.paused


def test_a_paused_provisioner_says_so() -> None:
    world = World(provisioner(paused=True))
    world.provisioning().report_provisioners()
    text = "paused by its annotation dovetail.dev/paused: no node is launched or removed for it"
    assert world.cluster.conditions["default"] == (False, "Paused", text)


def test_a_paused_cluster_ends_nothing_by_a_choice_of_its_own() -> None:
    world = two_nodes()
    open_intent(world)
    braked(world, Brakes(paused=True))
    world.ledger.intents.clear()
    world.advance(10 * MINUTE)
    report = world.sweep()
    assert (report.held_back, report.orphaned_instances) == (1, 0)
    assert world.outbox.timers_of(TimerKind.TERMINATION) == []


def test_in_shadow_mode_decisions_are_recorded_and_reported_without_acting() -> None:
    world = braked(two_nodes(), Brakes(shadow=True))
    report = world.provision()
    assert (report.held_back, report.pods_planned) == ("shadow", 2)
    assert any(key.startswith("decisions/") for key in world.decisions.documents)
    assert world.cloud.called("create_fleet") == []
    assert world.messages("ShadowPlan") == ["would buy 2 nodes for 2 pods at $0.1920/h"]
    assert world.ledger.intents == {}


def test_provisioner_in_shadow_mode_gets_events_and_the_others_launch() -> None:
    world = World(
        provisioner(shadow=True, weight=10, labels={"team": "a"}),
        provisioner(name="real"),
        pod("a", cpu=1500, node_selector=needs("team", "In", "a")),
        pod("b", cpu=1500, node_selector=needs(keys.PROVISIONER_NAME, "In", "real")),
    )
    world.provision()
    assert len(world.alive) == 1
    assert world.bound.keys() == {"b"}
    assert len(world.messages("ShadowPlan")) == 1


@pytest.mark.parametrize("held", [Brakes(paused=True), Brakes(shadow=True), None])
def test_under_a_brake_no_node_expires(held: Brakes | None) -> None:
    owner = provisioner(ttl_until_expired=timedelta(hours=1), paused=held is None)
    old = node("n1", finalizers=(keys.TERMINATION_FINALIZER,))
    world = World(owner, old)
    braked(world, held or Brakes())
    world.advance(timedelta(days=1))
    (there,) = world.cluster.nodes()
    state = {"cluster": NAME, "node": "n1", "uid": there.uid, "next": "wait", "wait_seconds": 0}
    assert Expiration(world.ports).step(state)["result"] == "may not expire"


# --- ceilings


# --- other autoscalers


def test_beside_karpenter_nothing_is_bought_and_every_provisioner_says_so() -> None:
    world = two_nodes()
    seen = Seen(KARPENTER)
    world.ports = replace(world.ports, rivals=seen)
    report = world.provision()
    assert report.held_back == "another autoscaler"
    assert world.alive == []
    active, reason, text = world.cluster.conditions["default"]
    assert (active, reason) == (False, "AnotherAutoscaler")
    assert "Karpenter (lease kube-system/karpenter-leader-election)" in text
    world.provision()
    assert world.cluster.called("set_provisioner_condition") == ["default"]
    assert world.sweep().held_back == 1
    assert world.outbox.wakes == [(NAME, timedelta(0))]
    seen.rivals = ()
    world.provision()
    assert world.cluster.conditions["default"][0] is True
    assert len(world.alive) == 2


def test_beside_karpenter_no_node_is_removed_by_choice_also_without_a_brake() -> None:
    world = World(provisioner(ttl_after_empty=SECOND, ttl_until_expired=MINUTE), node())
    world.cloud.add(instance())
    world.sweep()
    emptiness, expiration = world.outbox.timers
    seen = Seen(KARPENTER)
    world.ports = replace(world.ports, rivals=seen)
    world.advance(5 * MINUTE)
    assert world.sweep().missing_timers == 0
    assert Emptiness(world.ports).step(emptiness.payload)["result"] == "not empty"
    assert Expiration(world.ports).step(expiration.payload)["result"] == "may not expire"
    assert world.sweep().missing_timers == 0
    assert not world.node.unschedulable
    seen.rivals = ()
    world.advance(3 * MINUTE + SECOND)
    assert world.sweep().missing_timers == 2


def test_in_shadow_mode_launches_beside_karpenter_are_only_reported() -> None:
    world = braked(two_nodes(), Brakes(shadow=True))
    world.ports = replace(world.ports, rivals=Seen(KARPENTER))
    report = world.provision()
    assert (report.held_back, report.pods_planned) == ("shadow", 2)
    assert world.messages("ShadowPlan") == ["would buy 2 nodes for 2 pods at $0.1920/h"]
    assert world.cluster.conditions["default"][1] == "AnotherAutoscaler"
    assert world.cloud.called("create_fleet") == []
    assert world.ledger.intents == {}


@pytest.mark.parametrize("in_a_group", [False, True])
def test_cluster_autoscaler_is_a_rival_once_a_machine_of_ours_is_in_a_group(
    *, in_a_group: bool
) -> None:
    world = two_nodes()
    world.provision()
    if in_a_group:
        machine = next(iter(world.cloud.ec2.instances.values()))
        machine.tags["aws:autoscaling:groupName"] = "workers"
    world.ports = replace(world.ports, rivals=Seen(AUTOSCALER))
    world.cluster.add(pod("late", cpu=1500))
    report = world.provision()
    assert bool(report.held_back) is in_a_group
    assert len(world.alive) == (2 if in_a_group else 3)


# --- what is told


def test_the_same_reasons_are_reported_once_in_a_while() -> None:
    world = World(provisioner(), pod(cpu=10**6))
    for _ in range(5):
        world.provision()
        world.advance(MINUTE)
    (told,) = world.cluster.kube_events.items()
    assert told[1] == 1
    world.advance(10 * MINUTE)
    world.provision()
    assert set(world.cluster.kube_events.values()) == {2}


def test_a_nomination_that_bind_overtook_is_planned_again() -> None:
    world = World(provisioner(), pod("first", cpu=500, owner=None))
    world.provision()
    world.cluster.add(pod("second", cpu=500, owner=None))
    original = world.ledger.change_slot
    overtaken: list[Any] = []

    def change_slot(slot: Any) -> bool:
        if not overtaken:
            overtaken.append(slot)
            original(replace(slot, version=0))
        return original(slot)

    instead(world.ledger, "change_slot", change_slot)
    report = world.provision()
    assert report.rounds == 2
    assert len(world.alive) == 1


# --- no catalogue


def test_without_a_catalogue_nothing_is_bought_and_provisioners_and_pods_say_why() -> None:
    world = two_nodes()
    problem = "nothing can be bought in eu-west-1: there is no catalogue"
    world.catalog.missing = problem
    assert world.provision().held_back == "no catalogue"
    assert world.alive == []
    assert world.cluster.conditions["default"] == (False, "NoCatalogue", problem)
    told = world.events("NoCatalogue")
    assert sorted(event.kind for event in told) == ["Pod", "Pod", "Provisioner"]
    assert {event.message for event in told} == {problem}
    world.provisioning().report_provisioners()
    assert world.cluster.conditions["default"][1] == "NoCatalogue"

    world.catalog.missing = ""
    world.provision()
    assert world.cluster.conditions["default"][0] is True
    assert len(world.alive) == 2

"""Each step of a node's life is an Event on the Node; groups of nodes are told to Provisioners."""

from datetime import timedelta

import pytest

from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.dollars_and_counts import first_names
from shared.model.errors import UnavailableError
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.nodes.events.group_events import InstanceSummary, terminated_group
from shared.nodes.events.node_events import (
    node_instance_text,
    nominated,
    registered,
)
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.termination import Termination
from shared.ports import TimerKind
from tests.builders import needs, node, pod, provisioner, ref, selector, slot
from tests.unit.nodes.launch.launches import apart
from tests.unit.nodes.leave.termination.drains import going, step
from tests.unit.worlds import NAME, SECOND, World, instead

TTL = timedelta(seconds=30)


def told(world: World, kind: str, name: str = "") -> dict[str, str]:
    """Return what objects of a kind were told, by reason."""
    return {
        kube_event.reason: kube_event.message
        for kube_event in world.cluster.kube_events
        if kube_event.kind == kind and name in ("", kube_event.name)
    }


def test_every_step_of_a_nodes_life_is_an_event_on_the_node() -> None:
    world = World(provisioner(ttl_after_empty=TTL), *apart(1))
    world.provision()
    made = world.node
    machine = node_instance_text(made)
    launched = told(world, "Node")
    assert launched == {"Launched": f"launched {machine}; waits for its kubelet to join"}
    for part in (made.instance_id, "m5.large", "on-demand", "us-east-1", "$0.0", "/h"):
        assert part in machine

    (promise,) = world.ledger.slots(NAME)
    world.kubelet_joins(made.name, allocatable=promise.allocatable)
    world.bind(made.name)
    assert list(told(world, "Node")) == ["Launched", "Registered", "Initialized"]

    for key in list(world.cluster.pods):
        del world.cluster.pods[key]
    assert Emptiness(world.ports).begin(made.name) == "timer started"
    world.advance(TTL)
    Emptiness(world.ports).step(world.outbox.timers_of(TimerKind.EMPTINESS)[-1].payload)
    drain = world.outbox.timers_of(TimerKind.TERMINATION)[-1].payload
    while drain["next"] == "wait":
        drain = Termination(world.ports, None).step(drain)
        world.advance(2 * SECOND)
    assert told(world, "Node") == {
        **launched,
        "Registered": f"the kubelet of {made.instance_id} joined and is Ready",
        "Initialized": "is initialized and takes pods",
        "Empty": "has no pods but those of DaemonSets; is removed 30 s later unless a pod comes",
        "Cordoned": "cordoned, will be drained and terminated: emptiness",
        "Drained": f"no pod is left to evict; {made.instance_id} is terminated next",
        "Terminated": f"terminated {machine}: emptiness",
    }
    assert set(world.cluster.kube_events.values()) == {1}
    of_group = told(world, "Provisioner")
    assert of_group["Launched"].startswith(
        "launched 1 node for 1 pod: 1 × m5.large on-demand, $0.0"
    )
    assert of_group["Terminated"].startswith(
        "terminated 1 node (emptiness): 1 × m5.large on-demand, $"
    )
    assert of_group["Terminated"].endswith(f"/h; {made.name}")


def test_a_ready_node_says_what_it_waits_for_once() -> None:
    starting = Taint(key="cni/starting", value="", effect=Effect.NO_SCHEDULE)
    world = World(provisioner(startup_taints=(starting,)), *apart(1))
    world.provision()
    name = world.node.name
    assert world.bind(name).waiting_for == "the kubelet to be Ready"
    assert list(told(world, "Node")) == ["Launched"]
    world.kubelet_joins(name, taints=(starting,))
    for _ in range(3):
        world.bind(name)
        world.advance(5 * SECOND)
    expected = "is Ready and not initialized: waits for startup taint cni/starting to go"
    assert told(world, "Node")["NotInitialized"] == expected
    assert set(world.cluster.kube_events.values()) == {1}


def test_pod_nominated_to_a_starting_machine_shows_it_and_what_it_waits_for() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    world.cluster.add(pod("late", cpu=100, memory=64 * 2**20))
    report = world.provision()
    assert (report.pods_placed, report.nodes_launched) == (1, 0)
    (said,) = [kube_event for kube_event in world.cluster.kube_events if kube_event.name == "late"]
    assert (said.reason, said.kind, said.namespace) == ("Nominated", "Pod", "default")
    assert said.message == (
        f"nominated node {world.node.name} (m5.large); its kubelet had not joined yet"
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (None, "nominated instance i-slot0 (m5.large); its Node was not made yet"),
        (
            node(ready=None),
            "nominated node n1 (m5.large); its kubelet had not joined yet",
        ),
        (node(), "nominated node n1 (m5.large); it was Ready and not yet initialized"),
    ],
)
def test_a_nomination_says_how_far_its_node_has_come(made: Node | None, expected: str) -> None:
    assert nominated(ref(pod()), slot(), made).message == expected


def test_pod_whose_nomination_was_lost_meanwhile_gets_no_event() -> None:
    world = World(provisioner(), *apart(1))
    world.provision()
    world.cluster.add(pod("late", cpu=100, memory=64 * 2**20))
    instead(world.ledger, "change_slot", lambda _: False)
    world.provision()
    assert [
        kube_event for kube_event in world.cluster.kube_events if kube_event.name == "late"
    ] == []


def test_machines_that_end_together_are_one_event_of_their_provisioner() -> None:
    machines = [
        InstanceSummary(
            name=f"n{number:02}",
            provisioner="default" if number < 56 else "gone",
            instance_type="m5.large" if number < 40 else "c5.xlarge",
            capacity_type="spot",
            price_micros_per_hour=50_000,
            cause="emptiness",
        )
        for number in range(57)
    ]
    first, second = terminated_group(machines, {"default": provisioner(uid="u")})
    assert first.uid == "u"
    assert first.message == (
        "terminated 56 nodes (emptiness): 16 × c5.xlarge spot, 40 × m5.large spot, $2.8000/h; "
        "n00, n01, n02 and 53 more"
    )
    assert (second.name, second.uid) == ("gone", "")


def test_an_event_about_nodes_is_not_on_the_object_of_another_kind_of_the_same_name() -> None:
    of_pool, of_provisioner = (
        InstanceSummary(
            name="n1",
            provisioner="default",
            kind=kind,
            instance_type="m5.large",
            capacity_type="spot",
            price_micros_per_hour=1,
        )
        for kind in (OwnerKind.NODE_POOL, OwnerKind.PROVISIONER)
    )
    pool = provisioner(uid="u", kind=OwnerKind.NODE_POOL)
    found = terminated_group([of_pool, of_provisioner], {"default": pool})
    assert [(event.kind, event.uid) for event in found] == [("NodePool", "u"), ("Provisioner", "")]


def test_the_budget_that_holds_a_drain_is_named() -> None:
    budget = PodDisruptionBudget(
        namespace="default", name="web", selector=selector(), disruptions_allowed=0
    )
    world = going(pod(node_name="n1"), budget)
    world.cluster.budgeted.add("default/a")
    step(world)
    expected = "drain is held by default/a (PodDisruptionBudget web), since "
    assert told(world, "Node")["DrainBlocked"].startswith(expected)


def test_machine_is_terminated_though_no_event_can_be_recorded() -> None:
    world = going()
    away = UnavailableError("away")
    world.cluster.fail_next("provisioners", away, away)
    step(world)
    assert world.alive == []
    assert told(world, "Provisioner") == {}


def test_a_node_without_price_or_labels_is_described_by_what_is_known() -> None:
    bare = replace(node(), labels={keys.PROVISIONER_NAME: "default"})
    assert node_instance_text(bare) == "i-n1"
    assert node_instance_text(replace(bare, provider_id="")) == "an unknown instance"
    assert registered(bare).severity == "Normal"
    assert first_names("abcd") == "a, b, c and 1 more"


def test_cheaper_provisioner_of_the_same_weight_is_reported_once_in_a_while() -> None:
    dear = provisioner("a", requirements=needs(keys.INSTANCE_TYPE, "In", "m5.2xlarge"))
    cheap = provisioner("b", requirements=needs(keys.INSTANCE_TYPE, "In", "m5.large"))
    world = World(dear, cheap, *apart(1))
    world.provision()
    (said,) = world.events("CheaperProvisioner")
    assert (said.kind, said.name) == ("Provisioner", "a")
    assert "Provisioner b of the same weight could take the same pods for $0.0320/h" in said.message
    world.cluster.add(pod("more", cpu=7000))
    world.provision()
    assert len(world.alive) == 2
    assert world.cluster.kube_events[said] == 1

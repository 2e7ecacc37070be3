"""What a launched machine is asked for as, and what its Node object says."""

from collections.abc import Mapping
from typing import Any

from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.resources import Resources
from shared.nodes.join.node_objects import node_manifest
from shared.planning.decide import decide
from tests import builders as make
from tests.builders import GIB, MIB, needs
from tests.unit.worlds import NAME, World

TEAM = Taint(key="team", value="red", effect=Effect.NO_SCHEDULE)
TOLERANT = (*make.DEFAULT_TOLERATIONS, Toleration(operator="Exists"))


def made(pod: Mapping[str, Any] | None = None, **owner: Any) -> Node:
    """Provision for one pod; return the node."""
    world = World(make.provisioner(**owner), make.pod(**(pod or {})))
    world.provision()
    return world.node


def asked(pod: Mapping[str, Any] | None = None, **owner: Any) -> tuple[World, set[str]]:
    """Provision for one pod; return the world and the types its launch asks for."""
    world = World(make.provisioner(**owner), make.pod(**(pod or {})))
    world.provision()
    (request,) = world.cloud.fleets
    return world, {
        override["InstanceType"]
        for config in request["LaunchTemplateConfigs"]
        for override in config["Overrides"]
    }


def test_a_pod_gets_a_node() -> None:
    world = World(make.provisioner(), make.pod())
    world.provision()
    assert len(world.alive) == 1
    assert world.bound == {"a": world.node.name}


def test_a_node_has_its_makers_labels_and_its_machines() -> None:
    node = made(labels={"example.com/tier": "front"}, also=needs("example.com/team", "In", "red"))
    expected = {
        "example.com/tier": "front",
        "example.com/team": "red",
        keys.PROVISIONER_NAME: "default",
        keys.INSTANCE_TYPE: "m5.large",
        keys.CAPACITY_TYPE: "on-demand",
        keys.ZONE: make.ZONES[0],
    }
    assert expected.items() <= node.labels.items()


def test_a_node_has_labels_of_excepted_domains() -> None:
    labels = {
        "kops.k8s.io/gpu": "1",
        "node.kubernetes.io/role": "web",
        "node-restriction.kubernetes.io/team": "red",
    }
    assert labels.items() <= made(labels=labels).labels.items()


def test_a_node_has_its_makers_annotations() -> None:
    annotations = {"example.com/owner": "red"}
    assert annotations.items() <= made(annotations=annotations).annotations.items()


def test_a_node_has_its_makers_taints() -> None:
    assert TEAM in made({"tolerations": TOLERANT}, taints=(TEAM,)).taints


def test_a_new_node_is_kept_from_other_pods_until_it_is_ready() -> None:
    assert make.NOT_READY in made().taints


def test_what_a_pod_tolerates_puts_no_taint_on_its_node() -> None:
    assert made({"tolerations": TOLERANT}).taints == made().taints


def test_a_startup_taint_is_on_the_node_and_keeps_no_pod_pending() -> None:
    starting = Taint(key="network-agent", effect=Effect.NO_SCHEDULE)
    world = World(make.provisioner(startup_taints=(starting,)), make.pod())
    world.provision()
    assert starting in world.node.taints
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["a"]


def test_a_launch_asks_for_what_fits_in_the_zones_and_way_to_pay_that_are_allowed() -> None:
    also = needs(keys.ZONE, "In", make.ZONES[1])
    world, types = asked({"cpu": 1500}, also=also)
    assert types >= {"m5.large"}
    assert "c6g.large" not in types
    (request,) = world.cloud.fleets
    wanted = request["TargetCapacitySpecification"]
    assert wanted == {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    (machine,) = world.alive
    assert machine.offering.zone == make.ZONES[1]


def test_a_launch_carries_labels_of_the_provisioners_own_to_the_machine() -> None:
    also = needs("example.com/team", "In", "red", "blue")
    pod = {"node_selector": needs("example.com/team", "In", "blue")}
    world, _ = asked(pod, also=also)
    (slot,) = world.ledger.slots(NAME)
    assert slot.labels["example.com/team"] == "blue"
    assert world.node.labels["example.com/team"] == "blue"


def test_a_launch_asks_for_the_architecture_a_pod_needs() -> None:
    arm = make.provisioner(
        requirements=needs(keys.CAPACITY_TYPE, "In", "on-demand"),
    )
    world = World(arm, make.pod(node_selector=needs(keys.ARCH, "In", "arm64")))
    world.provision()
    assert {instance.offering.instance_type for instance in world.alive} == {"c6g.large"}


def test_a_launch_asks_for_types_that_hold_what_is_requested() -> None:
    _, types = asked({"cpu": 6000, "memory": 2 * GIB})
    assert types == {"m5.2xlarge"}


def test_a_node_is_owned_by_its_provisioner() -> None:
    world = World(make.provisioner(), make.pod())
    world.provision()
    (slot,) = world.ledger.slots(NAME)
    manifest = node_manifest(slot, world.alive[0], make.provisioner(), {})
    assert manifest.owner == make.provisioner()
    assert manifest.labels[keys.PROVISIONER_NAME] == "default"


def test_what_pods_of_a_node_request_is_written_down() -> None:
    plan = planned(make.pod("a", cpu=500, memory=256 * MIB), make.pod("b", cpu=250))
    assert plan.requests == Resources.of(cpu=750, memory=768 * MIB, pods=2)


def test_what_daemons_of_a_node_request_is_written_down_too() -> None:
    plan = planned(make.pod("a", cpu=500), daemonsets=(make.daemonset(cpu=100, memory=64 * MIB),))
    assert plan.requests["cpu"] == 500
    assert plan.daemon_requests == Resources.of(cpu=100, memory=64 * MIB, pods=1)


def planned(*pods: Pod, **more: Any) -> PlannedNode:
    (one,) = decide(make.snapshot(*pods, **more)).nodes
    return one


def test_with_binding_left_to_the_scheduler_pods_are_promised_and_never_bound() -> None:
    world = World(make.provisioner(), make.pod())
    world.policy = LaunchPolicy(binding_policy=BindingPolicy.SCHEDULER)
    world.provision()
    world.provision()
    assert world.bound == {}
    assert len(world.alive) == 1
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["a"]

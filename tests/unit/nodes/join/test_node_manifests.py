"""The manifests of Nodes, and the Events about them."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.drift import HASH_VERSION, drift_of, shape_hash
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.ec2.launches import Instance
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.provisioner import InvalidProvisioner
from shared.model.values import replace
from shared.nodes.events.group_events import launched_group
from shared.nodes.join.node_objects import node_manifest, region_of
from tests.builders import (
    node,
    offering,
    pod,
    provisioner,
    ref,
    slot,
)
from tests.unit.nodes.launch.launches import apart
from tests.unit.worlds import NAME, SECOND, World


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1a", "us-east-1"),
        ("us-west-2-lax-1a", "us-west-2"),
        ("us-gov-west-1b", "us-gov-west-1"),
        ("odd", "odd"),
    ],
)
def test_the_region_is_read_from_the_zone(zone: str, region: str) -> None:
    assert region_of(zone) == region


def test_a_launch_is_reported_once_to_provisioners_and_pods() -> None:
    world = World(provisioner(), *apart(4))
    world.provision()
    world.provision()
    told = {
        event: count for event, count in world.cluster.kube_events.items() if event.reason != "x"
    }
    assert set(told.values()) == {1}
    (launched,) = [
        event for event in told if (event.kind, event.reason) == ("Provisioner", "Launched")
    ]
    first = sorted(other_node.name for other_node in world.cluster.nodes())[:3]
    assert launched.name == "default"
    assert launched.message.startswith("launched 4 nodes for 4 pods: 4 × ")
    assert launched.message.endswith(f"/h; {', '.join(first)} and 1 more")
    of_nodes = {event.name for event in told if (event.kind, event.reason) == ("Node", "Launched")}
    assert of_nodes == {other_node.name for other_node in world.cluster.nodes()}
    nominated = {event.name: event.message for event in told if event.reason == "Nominated"}
    assert len(nominated) == 4
    for name, node_name in world.bound.items():
        assert nominated[name].startswith(f"nominated node {node_name} (")


def test_of_very_many_pods_only_the_first_get_their_own_events() -> None:
    made = [(slot(pods=tuple(ref(pod(f"p{n}")) for n in range(40))), node())]
    told = launched_group(made, {})
    assert len([event for event in told if event.kind == "Pod"]) == 25


def test_the_node_carries_the_hash_of_its_provisioner_and_the_nodes_it_replaces() -> None:
    owner = provisioner(annotations={"team": "red"})
    machine = Instance(instance_id="i-1", state="running", offering=offering(), image_id="ami-9")
    manifest = node_manifest(slot(replaces="old,older"), machine, owner, {})
    assert manifest.annotations == {
        "team": "red",
        keys.SLOT: "plan-1/0/0",
        keys.IMAGE_ID: "ami-9",
        keys.PRICE: str(slot().price_micros_per_hour),
        keys.REPLACES: "old,older",
        keys.PROVISIONER_HASH: shape_hash(owner),
        keys.HASH_VERSION: HASH_VERSION,
    }


def test_a_node_whose_owner_is_gone_carries_what_it_was_launched_for() -> None:
    machine = Instance(instance_id="i-1", state="running", offering=offering())
    stamp = {keys.PROVISIONER_HASH: "ab12"}
    made = node_manifest(slot(stamp=stamp), machine, None, {})
    assert made.annotations.items() >= stamp.items()


def test_the_node_of_a_node_pool_carries_the_age_at_which_it_expires() -> None:
    owner = provisioner(kind=OwnerKind.NODE_POOL, ttl_until_expired=timedelta(hours=1))
    machine = Instance(instance_id="i-1", state="running", offering=offering())
    assert node_manifest(slot(), machine, owner, {}).annotations[keys.EXPIRE_AFTER] == "3600"


def test_the_node_carries_how_long_its_drain_may_last() -> None:
    machine = Instance(instance_id="i-1", state="running", offering=offering())
    owner = provisioner(kind=OwnerKind.NODE_POOL, termination_grace_period=timedelta(minutes=5))
    written = node_manifest(slot(), machine, owner, {}).annotations
    assert written[keys.TERMINATION_GRACE_PERIOD] == "300"
    changed = replace(owner, termination_grace_period=timedelta(minutes=6))
    assert drift_of(node(annotations=written), changed) == ""
    forever = replace(owner, termination_grace_period=None)
    assert (
        keys.TERMINATION_GRACE_PERIOD not in node_manifest(slot(), machine, forever, {}).annotations
    )


@pytest.mark.parametrize("invalid", [False, True])
@pytest.mark.parametrize("first", [False, True], ids=["made", "its kubelet's"])
def test_the_node_of_an_owner_that_is_gone_or_invalid_is_its_own_and_has_its_taints(
    *, first: bool, invalid: bool
) -> None:
    gpu = Taint(key="example.com/gpu", effect=Effect.NO_SCHEDULE)
    world = World(provisioner(taints=(gpu,)), pod(tolerations=(Toleration(key=gpu.key),)))
    world.cloud.delays.named = 10 * SECOND
    world.provision()
    world.cluster.provisioner_values.clear()
    if invalid:
        wrong = InvalidProvisioner(name="default", uid="u", resource_version="2", reasons=("x",))
        world.cluster.add(wrong)
    world.advance(10 * SECOND)
    (machine,) = world.alive
    if first:
        bare: dict[str, Any] = {"labels": {}, "finalizers": (), "provider_id": "", "ready": None}
        world.cluster.add(node(machine.private_dns_name, **bare))
    world.provision()
    assert world.node.owners == (provisioner().uid,)
    assert gpu in world.node.taints


def test_the_node_of_a_slot_written_from_tags_whose_owner_is_gone_has_no_owner() -> None:
    world = World(provisioner(), pod())
    world.cloud.delays.named = 10 * SECOND
    world.provision()
    (promised,) = world.ledger.slots(NAME)
    world.ledger.slot_values[NAME, promised.name] = replace(promised, owner=None)
    world.cluster.provisioner_values.clear()
    world.advance(10 * SECOND)
    world.provision()
    assert world.node.owners == ()

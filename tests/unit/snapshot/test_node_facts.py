"""Nodes whose kubelets write what is not so: what EC2 says counts."""

from collections.abc import Mapping
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from shared.model.errors import ThrottledError
from shared.model.kubernetes.nodes import Node
from shared.model.values import replace
from shared.ports import TimerKind
from shared.snapshot.gather import gather
from shared.snapshot.node_facts import cluster_instances, node_facts
from tests import builders as make
from tests.builders import instance, node, pod, provisioner, ref, slot
from tests.unit.provisioning.sweep.settled import machine
from tests.unit.worlds import MINUTE, NAME, World

PLAN = {keys.TAG_PLAN: "plan-1", keys.TAG_GROUP: "2"}
OWNED = {keys.PROVISIONER_NAME: "default", **PLAN}
TRUE = node(annotations={keys.SLOT: "plan-1/2/7"})


def seen(standing: Node, *machines: Instance, **world_values: Any) -> Node:
    """Return the node as a plan sees it."""
    world = World(provisioner(), standing, pod())
    world.cloud.add(*machines)
    for one in world_values.get("slots", ()):
        world.ledger.slot_values[NAME, one.name] = one
    for one in world_values.get("intents", ()):
        world.ledger.intents[NAME, one.plan_id, one.group] = one
    world.ledger.instances.update(dict.fromkeys(world_values.get("had_slots", ()), NAME))
    (found,) = gather(world.ports, "plan").snapshot.nodes
    return found


def test_a_node_that_says_what_ec2_says_stays_as_it_is() -> None:
    assert seen(TRUE, machine("i-n1", **OWNED)) == TRUE


def written(**changes: Any) -> Node:
    labels = {**TRUE.labels, **changes.pop("labels", {})}
    left = {key: value for key, value in labels.items() if value is not None}
    return replace(TRUE, labels=left, **changes)


@pytest.mark.parametrize(
    "lie",
    [
        written(labels={keys.INSTANCE_TYPE: "m5.24xlarge"}),
        written(labels={keys.INSTANCE_TYPE: None}),
        written(labels={keys.ZONE: "us-east-1c"}),
        written(labels={keys.CAPACITY_TYPE: "spot"}),
        written(labels={keys.PROVISIONER_NAME: "other"}),
        written(labels={keys.PROVISIONER_NAME: None, keys.NODE_POOL: "other"}),
        written(labels={keys.PROVISIONER_NAME: None}),
        written(labels={keys.NODE_POOL: "other"}),
        written(finalizers=()),
    ],
    ids=range(9),
)
def test_what_a_kubelet_may_write_is_seen_as_ec2_has_it_on_a_node_that_takes_no_pods(
    lie: Node,
) -> None:
    assert seen(lie, machine("i-n1", **OWNED)) == replace(TRUE, unschedulable=True)


@pytest.mark.parametrize("slot_text", [None, "plan-2/2/7"])
def test_the_mark_of_the_launch_is_that_of_its_tags(slot_text: str | None) -> None:
    lie = replace(TRUE, annotations={} if slot_text is None else {keys.SLOT: slot_text})
    assert seen(lie, machine("i-n1", **OWNED)).annotations == {keys.SLOT: "plan-1/2/0"}


def test_a_machine_without_the_tag_of_its_plan_has_a_mark_all_the_same() -> None:
    lie = replace(TRUE, annotations={})
    tagged = machine("i-n1", **{keys.PROVISIONER_NAME: "default"})
    assert seen(lie, tagged).annotations == {keys.SLOT: "unknown/0/0"}


def test_the_image_of_a_node_is_that_of_its_machine() -> None:
    lie = replace(TRUE, annotations={**TRUE.annotations, keys.IMAGE_ID: "ami-new"})
    old = replace(machine("i-n1", **OWNED), image_id="ami-old")
    assert seen(lie, old).annotations[keys.IMAGE_ID] == "ami-old"


def test_a_node_of_a_node_pool_has_its_label_alone() -> None:
    lie = written(labels={keys.PROVISIONER_NAME: "other", keys.NODE_POOL: "default"})
    found = seen(lie, machine("i-n1", **OWNED, **{keys.TAG_NODE_POOL: "default"}))
    assert found.labels == {
        **{key: value for key, value in TRUE.labels.items() if key != keys.PROVISIONER_NAME},
        keys.NODE_POOL: "default",
    }


def test_without_a_tag_that_names_it_the_provisioner_of_a_node_is_believed() -> None:
    lie = written(labels={keys.PROVISIONER_NAME: "other", keys.ZONE: "us-east-1c"}, finalizers=())
    found = seen(lie, machine("i-n1"))
    assert (found.provisioner, found.labels[keys.ZONE]) == ("other", "us-east-1a")
    assert found.finalizers == ()


def test_a_machine_in_a_capacity_reservation_keeps_its_label() -> None:
    reserved = written(labels={keys.CAPACITY_TYPE: "reserved"})
    assert seen(reserved, machine("i-n1", **OWNED)) == reserved


def test_a_node_that_is_being_deleted_gets_no_finalizer() -> None:
    leaving = replace(TRUE, finalizers=(), deletion_at=make.NOW)
    assert seen(leaving, machine("i-n1", **OWNED)) == leaving


BARE = written(labels={keys.PROVISIONER_NAME: None}, finalizers=(), annotations={})
OPEN = make.intent(plan_id="plan-1", group=2)


def test_a_node_that_is_still_to_be_adopted_is_left_to_its_launch() -> None:
    ours = machine("i-n1", **OWNED)
    waiting = slot(instance_id="i-n1", pods=(ref(pod()),))
    assert seen(BARE, ours, slots=[waiting]) == BARE
    assert seen(BARE, ours, intents=[OPEN]) == BARE
    adopted = replace(waiting, node_name="n1")
    assert seen(BARE, ours, slots=[adopted]).is_ours


def test_a_node_is_not_left_to_another_group_of_its_plan() -> None:
    other = replace(OPEN, group=1)
    assert seen(BARE, machine("i-n1", **OWNED), intents=[other]).is_ours


def test_a_complete_node_is_not_left_to_a_launch_that_asks_for_others_of_its_group() -> None:
    ours = machine("i-n1", **OWNED)
    assert seen(BARE, ours, intents=[OPEN], had_slots=["i-n1"]).is_ours
    made = slot(instance_id="i-n1", node_name="n1")
    assert seen(BARE, ours, intents=[OPEN], had_slots=["i-n1"], slots=[made]).is_ours


def test_a_node_whose_slot_is_filled_after_slots_were_read_is_left_to_its_launch() -> None:
    world = World(provisioner(), BARE)
    waiting = slot(instance_id="i-n1", pods=(ref(pod()),))
    world.ledger.slot_values[NAME, waiting.name] = waiting
    world.ledger.instances["i-n1"] = NAME
    facts = node_facts(world.ports, [BARE], [machine("i-n1", **OWNED)], (), [OPEN])
    assert facts.nodes == (BARE,)


def test_a_node_that_changes_hands_with_karpenter_is_left_alone() -> None:
    plan = f"{keys.TAKE_OVER_PLAN}i-n1"
    tagged = machine("i-n1", **{**OWNED, keys.TAG_PLAN: plan})
    on_its_way = replace(TRUE, annotations={keys.NODE_CLAIM: "{}"}, finalizers=())
    assert seen(on_its_way, tagged) == on_its_way
    ours = replace(on_its_way, annotations={keys.NODE_CLAIM: "{}", keys.SLOT: f"{plan}/2/0"})
    assert seen(ours, tagged).is_ours
    assert seen(on_its_way, machine("i-n1", **OWNED)).is_ours


def test_a_node_on_a_machine_without_the_clusters_tag_is_not_ours() -> None:
    found = seen(TRUE, instance("i-n1", tags={**OWNED, keys.TAG_CLUSTER: "prod"}))
    assert not found.is_ours
    assert found.instance_id == "i-n1"


def test_a_node_that_names_the_machine_of_another_has_none() -> None:
    named = replace(machine("i-n1", **OWNED), private_dns_name="ip-10-0-0-1.ec2.internal")
    found = seen(TRUE, named)
    assert (found.is_ours, found.instance_id) == (False, "")
    nobodys = seen(written(labels={keys.PROVISIONER_NAME: None}), named)
    assert (nobodys.is_ours, nobodys.instance_id) == (False, "")
    by_id = replace(named, private_dns_name="i-n1.ec2.internal")
    standing = replace(TRUE, name="i-n1")
    assert seen(standing, by_id) == standing


def test_a_node_whose_machine_ec2_does_not_show_is_believed() -> None:
    assert seen(TRUE) == TRUE


def test_what_a_slot_names_needs_no_tag() -> None:
    untagged = instance("i-n1", tags={})
    open_slot = slot(instance_id="i-n1", node_name="n1")
    assert seen(TRUE, untagged, slots=[open_slot]) == TRUE


def test_a_machine_of_the_cluster_whose_kubelet_lies_is_found_by_the_next_sweep() -> None:
    world = World(provisioner(), TRUE, pod("x", node_name="n1"))
    world.cloud.add(machine("i-n1", **OWNED))
    world.kubelet_writes(
        "n1",
        {keys.PROVISIONER_NAME: None, keys.INSTANCE_TYPE: "m5.24xlarge"},
        {keys.SLOT: None},
        (),
    )
    world.advance(2 * MINUTE)
    assert world.sweep().contradicted_nodes == 1
    assert world.node.is_ours
    assert world.node.labels == TRUE.labels
    (text,) = world.messages("NodeCorrected", "Node")
    assert "node.kubernetes.io/instance-type m5.24xlarge (EC2: m5.large)" in text
    assert world.sweep().contradicted_nodes == 0
    world.kubelet_writes("n1", {keys.PROVISIONER_NAME: None})
    world.advance(15 * MINUTE)
    world.sweep()
    assert len(world.messages("NodeCorrected", "Node")) == 2


@pytest.mark.parametrize("deleted", [False, True])
def test_a_node_whose_kubelet_lied_just_before_its_machine_ended_is_removed(
    *, deleted: bool
) -> None:
    on_it = pod("x", node_name="n1")
    world = World(provisioner(), replace(TRUE, ready=None), on_it)
    world.cloud.add(machine("i-n1", **OWNED))
    world.kubelet_writes("n1", {keys.PROVISIONER_NAME: None}, {keys.SLOT: None})
    world.cloud.end("i-n1")
    if deleted:
        world.cluster.delete_node(world.node)
    world.advance(2 * MINUTE)
    assert world.sweep().contradicted_nodes == 1
    world.sweep()
    assert world.node.deletion_at is not None
    (timer,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert timer.payload["node"] == "n1"


def test_ec2_is_not_asked_about_nodes_of_karpenter_that_are_ready() -> None:
    world = World(provisioner(), replace(TRUE, annotations={}, ready=True))
    world.sweep()
    assert world.cloud.called("instances") == []


def test_a_node_that_names_the_machine_of_another_is_told_and_never_drained() -> None:
    liar = node("n2", provider_id=TRUE.provider_id)
    world = World(provisioner(ttl_after_empty=MINUTE), TRUE, pod("x", node_name="n1"), liar)
    world.cloud.add(replace(machine("i-n1", **OWNED), private_dns_name="n1"))
    world.advance(2 * MINUTE)
    report = world.sweep()
    assert (report.contradicted_nodes, report.missing_timers) == (1, 0)
    (text,) = world.messages("NotOurInstance", "Node")
    assert text.endswith("i-n1 is the instance of node n1: Dovetail neither counts nor changes it")


@pytest.mark.parametrize(("throttled", "answers"), [(2, True), (3, False)])
def test_a_throttled_list_of_instances_is_asked_for_twice_more(
    throttled: int, *, answers: bool
) -> None:
    world = World(provisioner())
    left = iter([ThrottledError("slow down")] * throttled)
    asked = world.cloud.tagged_instances

    def list_instances(tags: Mapping[str, str]) -> tuple[Instance, ...]:
        for error in left:
            raise error
        return asked(tags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.cloud, "tagged_instances", list_instances)
        if answers:
            assert cluster_instances(world.ports) == ()
        else:
            with pytest.raises(ThrottledError):
                cluster_instances(world.ports)

"""Drift per owner: which nodes are replaced, and what the owner says of the others."""

from datetime import timedelta
from typing import Any

import pytest

from functions.cli.doctor.why import Why
from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.policy import KarpenterBehavior, Trigger
from shared.model.values import replace
from shared.nodes.launch.ami_canary import IMAGE_NOTES, ImageCanary
from shared.ports import TimerKind
from shared.snapshot.images import resolve_images
from tests.builders import CATALOG, OTHER_SHAPE, instance, node_of, pod, provisioner
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.worlds import MINUTE, NAME, World, instead

HOUR = timedelta(hours=1)
OLD = OTHER_SHAPE
POOL = "NodePool/default"
CHANGED = "nodepool default has changed"


def pooled(*names: str, says: str | None = None, **disruption: Any) -> World:
    """Return a NodePool whose nodes are of another shape than it asks for now."""
    raw = named_pool(disruption={"consolidateAfter": "Never", **disruption})
    raw["metadata"]["annotations"] = {} if says is None else {"dovetail.dev/drift": says}
    there = world(raw)
    for name in names:
        stand(there, name, annotations=OLD)
        there.cluster.add(pod(f"on-{name}", node_name=name))
    there.advance(HOUR)
    return there


def told(there: World) -> str:
    """Return what the condition of the NodePool says of outdated nodes, empty for nothing."""
    fine, reason, text = there.cluster.nodes_current.get(POOL, (True, "UpToDate", ""))
    assert reason == ("UpToDate" if fine else "Drifted")
    return "" if fine else text


def test_drifted_nodes_of_a_node_pool_are_replaced_by_default() -> None:
    there = pooled("n1")
    assert there.provision(look=True).nodes_disrupted == 1
    assert told(there) == f"1 of 1 node is outdated: n1: {CHANGED} (it is being replaced)"
    (event,) = there.events("Drifted")
    assert (event.kind, event.message) == ("NodePool", told(there))


def test_a_node_pool_may_leave_drifted_nodes_and_says_so() -> None:
    there = pooled("n1", "n2", "n3", "n4", says="off")
    assert there.provision(look=True).nodes_disrupted == 0
    assert told(there) == (
        f"4 of 4 nodes are outdated: n1, n2, n3 and 1 more: {CHANGED} "
        "(dovetail.dev/drift of nodepool default is off: the node stays)"
    )
    assert there.events("DisruptionBlocked") == []
    # It is looked at until it is no longer so, and told once.
    there.outbox.evaluations.clear()
    there.sweep()
    assert there.outbox.evaluations == [NAME]
    there.provision(look=True)
    assert len(there.events("Drifted")) == 1
    for name in ("n1", "n2", "n3", "n4"):
        del there.cluster.node_values[name]
    there.provision(look=True)
    assert there.cluster.nodes_current[POOL] == (True, "UpToDate", "no node is outdated")


def test_what_holds_a_drifted_node_is_in_the_condition() -> None:
    there = pooled("n1", "n2", "n3", "n4", budgets=[{"nodes": "0"}])
    held = {"annotations": {keys.DO_NOT_DISRUPT: "true"}}
    there.cluster.add(pod("on-n2", node_name="n2", **held))
    node = there.cluster.node_values["n3"]
    there.cluster.add(replace(node, annotations={**node.annotations, keys.DO_NOT_DISRUPT: "true"}))
    node = there.cluster.node_values["n4"]
    there.cluster.add(replace(node, labels={**node.labels, keys.INITIALIZED: ""}, ready=None))
    assert there.provision(look=True).nodes_disrupted == 0
    text = told(there)
    assert text.startswith(f"4 of 4 nodes are outdated: n4: {CHANGED} (it is not initialized); ")
    assert f"n3: {CHANGED} (its annotation karpenter.sh/do-not-disrupt forbids it); n2: " in text
    assert text.endswith("; and 1 reasons more")
    for name in ("n2", "n3", "n4"):
        del there.cluster.node_values[name]
    there.provision(look=True)
    assert told(there).endswith("(the disruption budgets of default allow none)")


def test_provisioners_leave_drifted_nodes_unless_cluster_or_annotation_say_otherwise() -> None:
    for on_in_cluster, says, goes in (
        (False, None, 0),
        (True, None, 1),
        (True, False, 0),
        (False, True, 1),
    ):
        triggers = {} if says is None else {Trigger.DRIFT: says}
        there = World(
            provisioner(triggers=triggers),
            node_of("n1", annotations=OLD),
            pod("a", node_name="n1"),
        )
        there.disruption = replace(there.disruption, drift=on_in_cluster)
        there.advance(HOUR)
        assert there.provision(look=True).nodes_disrupted == goes
        assert bool(there.cluster.nodes_current) == bool(goes)


# --- images


def images(*names: str, good: str = "", **memo: Any) -> World:
    """Nodes of a NodePool with one image, while another is the newest."""
    there = world(named_pool(disruption={"consolidateAfter": "Never"}))
    for name in names:
        stand(there, name)
        there.cluster.add(pod(f"on-{name}", node_name=name, cpu=1500))
        there.cloud.add(instance(f"i-{name}", image_id="ami-1"))
    instead(there.cloud, "image_ids", lambda asked: dict.fromkeys(asked, "ami-2"))
    if good:
        owner = there.cluster.provisioners()[0][0]
        kinds = resolve_images(there.cloud, owner.template, "1.33", CATALOG).ids
        ImageCanary(there.ports).save_first_images("default", _table(dict.fromkeys(kinds, good)))
    there.advance(HOUR)
    return there


def _table(ids: dict[str, str]) -> Any:
    return resolve_images(World().cloud, provisioner().template, "1.33", ()).__class__(ids=ids)


def test_a_new_image_is_tried_though_no_pod_asks_for_a_node() -> None:
    there = images("n1", "n2", good="ami-1")
    assert there.provision(look=True).nodes_disrupted == 1
    (fresh,) = (machine for machine in there.alive if machine.image_id == "ami-2")
    assert fresh.launched_at == there.clock.now()
    text = told(there)
    assert "n1: image ami-1 is no longer current (it is being replaced)" in text
    there.advance(MINUTE)
    there.provision(look=True)
    waits = "image ami-2 is tried on one node first"
    assert f"n2: image ami-1 is no longer current ({waits})" in told(there)
    assert any(waits in line for line in Why(there.ports).node("n2").outlook)


def test_a_node_that_differs_in_more_than_its_image_does_not_wait_for_that() -> None:
    there = images("n1", "n2", good="ami-1")
    there.provision(look=True)
    node = there.cluster.node_values["n2"]
    there.cluster.add(replace(node, annotations={**node.annotations, **OLD}))
    there.provision(look=True)
    assert f"n2: {CHANGED} (the disruption budgets of default allow none)" in told(there)
    (why,) = (line for line in Why(there.ports).node("n2").outlook if "outdated" in line)
    assert why.startswith(f"is outdated: {CHANGED}; it is replaced as soon as ")


def test_an_image_that_did_not_register_replaces_no_node_for_six_hours() -> None:
    there = images("n1", good="ami-1")
    memo = there.ledger.note(NAME, f"{IMAGE_NOTES}default")
    at = there.clock.now().isoformat()
    bad = {kind: {**row, "bad": "ami-2", "bad_at": at} for kind, row in memo.value.items()}
    there.ledger.change_note(NAME, replace(memo, value=bad), there.clock.now() + HOUR)
    assert there.provision(look=True).nodes_disrupted == 0
    assert told(there).endswith(
        "(image ami-2 did not register a node: it is tried again after 07:00 UTC)"
    )
    there.advance(6 * HOUR)
    assert there.provision(look=True).nodes_disrupted == 1


def test_where_nothing_is_tried_first_all_nodes_with_another_image_have_drifted() -> None:
    there = images("n1", good="ami-1")
    (owner,), _ = there.cluster.provisioners()
    at_once = replace(owner, as_karpenter=frozenset({KarpenterBehavior.IMAGES}))
    table = resolve_images(there.cloud, owner.template, "1.33", CATALOG)
    assert ImageCanary(there.ports).waiting_reasons(at_once, table) == {}


@pytest.mark.parametrize("kept", [True, False])
def test_a_node_that_is_being_replaced_is_no_reason_to_wait(*, kept: bool) -> None:
    there = pooled("n1")
    there.provision(look=True)
    assert len(there.outbox.timers_of(TimerKind.REPLACEMENT)) == 1
    node: Node = there.cluster.node_values["n1"]
    if not kept:
        there.cluster.add(replace(node, deletion_at=there.clock.now()))
    there.advance(30 * MINUTE if not kept else MINUTE)
    there.provision(look=True)
    assert "(it is being replaced)" in told(there)


def test_a_node_that_was_launched_as_its_node_pool_asks_has_not_drifted() -> None:
    there = world(named_pool(disruption={"consolidateAfter": "Never"}))
    there.cluster.add(pod("a", cpu=1500))
    there.provision()
    there.kubelet_joins(there.node.name)
    there.bind(there.node.name)
    there.advance(HOUR)
    assert there.provision(look=True).nodes_disrupted == 0
    assert (there.cluster.nodes_current, there.node.deletion_at) == ({}, None)
    assert there.cloud.instances([there.node.instance_id])[0].image_id

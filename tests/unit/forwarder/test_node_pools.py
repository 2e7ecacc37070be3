"""What is worth saying of NodePools and their nodes."""

from typing import Any

import pytest

from functions.forwarder.views import View, view_node, view_node_pool
from shared.model import labels as keys
from tests.unit.forwarder.views import Cluster, provisioner

NODES = "karpenter.k8s.aws"


def pool(generation: int = 1, *, group: str = NODES, **disruption: Any) -> View:
    reference = {"group": group, "kind": "EC2NodeClass", "name": "default"}
    return view_node_pool(
        {
            "metadata": {"name": "default", "uid": "pool", "generation": generation},
            "spec": {
                "template": {"spec": {"nodeClassRef": reference}},
                "disruption": disruption,
            },
        }
    )


def node(
    *,
    marked: bool = True,
    taints: tuple[str, ...] = (),
    joined: bool = True,
    label: str = keys.NODE_POOL,
) -> View:
    return view_node(
        {
            "metadata": {
                "name": "n1",
                "uid": "n1",
                "labels": {label: "default"}
                | ({"karpenter.sh/initialized": "true"} if joined else {}),
                "annotations": {"dovetail.dev/slot": "p/0/0"} if marked else {},
            },
            "spec": {"taints": [{"key": taint} for taint in taints]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )


def test_a_pool_is_announced_when_it_changes() -> None:
    cluster = Cluster()
    assert cluster.see(pool()) == [("provisioner-changed", "default")]
    assert cluster.see(pool()) == []
    assert cluster.see(pool(2)) == [("provisioner-changed", "default")]
    assert cluster.lose(pool(2)) == []
    assert cluster.see(pool(group="eks.amazonaws.com")) == []


def test_the_same_name_of_both_kinds_is_told_apart() -> None:
    cluster = Cluster()
    cluster.see(pool(consolidationPolicy="WhenEmpty", consolidateAfter="30s"))
    cluster.see(provisioner(ttl=900))
    cluster.lose(provisioner(ttl=900))
    assert cluster.see(node()) == [("node-empty", "n1")]


@pytest.mark.parametrize("label", [keys.NODE_POOL, keys.PROVISIONER_NAME])
def test_nodes_of_karpenter_are_not_announced(label: str) -> None:
    cluster = Cluster()
    cluster.see(pool() if label == keys.NODE_POOL else provisioner())
    assert cluster.see(node(marked=False, label=label)) == []
    assert cluster.see(node(label=label)) == [("node-empty", "n1")]


def test_a_node_is_held_by_the_taint_of_its_version() -> None:
    cluster = Cluster()
    cluster.see(pool())
    held = node(taints=("karpenter.sh/unregistered",), joined=False)
    assert cluster.see(held) == [("node-ready", "n1")]
    assert cluster.see(node()) == [("node-empty", "n1")]


def test_the_time_of_an_empty_node_is_that_of_its_pool() -> None:
    empty = {"consolidationPolicy": "WhenEmpty"}
    found = [view_node_pool({"spec": {"disruption": more}}) for more in ({}, empty)]
    assert [view.ttl_seconds for view in found] == [None, 0]

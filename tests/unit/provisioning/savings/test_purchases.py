"""Purchases of Karpenter beside what Dovetail would have spent the same pods."""

from datetime import timedelta

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.provisioning.savings.purchases import Tally, compare, pool_name, purchases
from tests.builders import NOW, node_of, pod, snapshot

SECOND = timedelta(seconds=1)
DAEMON = ControllerRef(kind="DaemonSet", name="logs", uid="d")


def bought(name: str, kind: str = "m5.large", *, age: float = 60, ready: float = 20) -> Node:
    """A node as Karpenter leaves it: of a NodePool, without Dovetail's annotation."""
    made = node_of(name, kind, created_at=NOW - age * SECOND)
    labels = {k: v for k, v in made.labels.items() if k != keys.PROVISIONER_NAME}
    return replace(
        made,
        labels={**labels, keys.NODE_POOL: "general"},
        annotations={},
        ready_changed_at=NOW - ready * SECOND,
    )


def on(node: str, name: str, **overrides: object) -> Pod:
    return pod(name, node_name=node, **overrides)


def names(*groups: tuple[Node, ...]) -> list[list[str]]:
    return [[node.name for node in group] for group in groups]


def test_nodes_that_join_together_are_one_purchase() -> None:
    nodes = (bought("b", age=95), bought("a", age=100), bought("c", age=60))
    pods = (on("a", "one"), on("c", "two"))
    assert names(*purchases(nodes, pods, (), NOW)) == [["a", "b"], ["c"]]
    assert names(*purchases(nodes, pods, {nodes[0].uid, nodes[1].uid}, NOW)) == [["c"]]


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(bought("a", age=25), id="others may still join"),
        pytest.param(bought("a", ready=10), id="pods may still come"),
        pytest.param(replace(bought("a"), ready=False), id="not ready"),
        pytest.param(bought("a", age=3600), id="too old"),
        pytest.param(replace(bought("a"), created_at=None), id="age unknown"),
        pytest.param(replace(bought("a"), annotations={keys.SLOT: "p/0/0"}), id="of Dovetail"),
        pytest.param(replace(bought("a"), labels={}), id="without a NodePool"),
    ],
)
def test_a_purchase_is_compared_once_its_nodes_stand_and_are_filled(node: Node) -> None:
    assert purchases(filter(pool_name, (node,)), (on("a", "one"),), (), NOW) == ()


def test_a_purchase_without_pods_waits_for_them() -> None:
    idle = (on("a", "logs", owner=DAEMON), on("a", "leaving", deletion_at=NOW))
    assert purchases((bought("a"),), idle, (), NOW) == ()


def test_both_sides_are_told_in_dollars() -> None:
    nodes = (bought("a", "m5.2xlarge"), bought("b", "m5.2xlarge"))
    scene = snapshot(nodes=nodes, bound=(on("a", "one", cpu=500), on("b", "two", cpu=500)))
    found = compare(scene, nodes, PackingSettings())
    assert found.text == (
        "Karpenter bought 2 nodes for 2 pods at $0.7680/h (2 × m5.2xlarge on-demand); Dovetail "
        "would have bought 1 node at $0.0960/h (1 × m5.large on-demand), $0.6720/h less"
    )
    assert found.is_comparable


def test_only_nodes_that_were_there_before_have_room() -> None:
    nodes = (bought("before", age=500), bought("a"), bought("after", age=20))
    pods = (on("a", "one", cpu=500), on("before", "old", cpu=100))
    found = compare(snapshot(nodes=nodes, bound=pods), (nodes[1],), PackingSettings())
    assert (found.planned, found.planned_micros_per_hour) == ((), 0)
    assert found.text.endswith("Dovetail would have bought none, $0.0960/h less")
    later = compare(snapshot(nodes=nodes[1:], bound=pods[:1]), (nodes[1],), PackingSettings())
    assert len(later.planned) == 1
    assert later.text.endswith("would have bought 1 node at $0.0960/h (1 × m5.large on-demand)")


def test_what_cannot_be_compared_is_told_and_in_no_sum() -> None:
    node = bought("a")
    odd = replace(node, labels={**node.labels, keys.INSTANCE_TYPE: "z9.huge"})
    unknown = compare(snapshot(nodes=(odd,), bound=(on("a", "one"),)), (odd,), PackingSettings())
    assert "for 1 pod at an unknown price (1 × z9.huge on-demand)" in unknown.text
    assert unknown.text.endswith(" on-demand)")
    node = bought("b")
    scene = snapshot(nodes=(node,), bound=(on("b", "two", cpu=500_000),))
    homeless = compare(scene, (node,), PackingSettings())
    assert "would have bought none, and has no node for 1 pod: default/two: " in homeless.text
    tally = Tally(since=NOW).plus(unknown).plus(homeless)
    assert (tally.purchases, tally.left_out) == (0, 2)
    assert tally.text.endswith("; 2 left out: see Events ShadowPurchase")


def test_purchases_are_summed_up() -> None:
    node = bought("a", "m5.2xlarge")
    scene = snapshot(nodes=(node,), bound=(on("a", "one", cpu=500),))
    found = compare(scene, (node,), PackingSettings())
    assert Tally(since=NOW).plus(found).plus(found).text == (
        f"in shadow mode since {NOW:%Y-%m-%d %H:%M} UTC: Karpenter spent $0.7680/h in 2 "
        "purchases for 2 pods; Dovetail would have spent $0.1920/h, $0.5760/h less"
    )
    more = replace(Tally(since=NOW), bought_micros_per_hour=1, planned_micros_per_hour=10_001)
    assert more.text.endswith("spent $0.0100/h, $0.0100/h more")

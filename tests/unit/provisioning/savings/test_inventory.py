"""Nodes with their pools and prices, and which namespace pays for them."""

import pytest

from functions.cli.report.shares import DAEMONSETS, UNUSED, shares_by_namespace
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.pods import ControllerRef
from shared.model.resources import Resources
from shared.provisioning.savings.inventory import FilledNode, by_pool, cost, inventory
from shared.provisioning.savings.pools import Pool, PoolKind, capacity_type_of, pool_of
from tests.builders import GIB, node, pod, snapshot

DAEMON = ControllerRef(kind="DaemonSet", name="logs", uid="d")
GROUP = "eks.amazonaws.com/nodegroup"


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        ({keys.NODE_POOL: "a", GROUP: "g"}, Pool(PoolKind.NODE_POOL, "a")),
        ({keys.PROVISIONER_NAME: "p"}, Pool(PoolKind.PROVISIONER, "p")),
        ({GROUP: "g", "alpha.eksctl.io/nodegroup-name": "g"}, Pool(PoolKind.MANAGED, "g")),
        ({"alpha.eksctl.io/nodegroup-name": "e"}, Pool(PoolKind.EKSCTL, "e")),
        (
            {keys.NODE_POOL: "system", "eks.amazonaws.com/compute-type": "auto"},
            Pool(PoolKind.AUTO_MODE, "system"),
        ),
        ({"eks.amazonaws.com/compute-type": "fargate"}, Pool(PoolKind.FARGATE)),
        ({}, Pool(PoolKind.NONE)),
    ],
)
def test_a_pool_is_recognised_by_labels(labels: dict[str, str], pool: Pool) -> None:
    assert pool_of(node(labels=labels)) == pool


@pytest.mark.parametrize(
    ("labels", "how"),
    [
        ({keys.CAPACITY_TYPE: "spot"}, CapacityType.SPOT),
        ({"eks.amazonaws.com/capacityType": "SPOT"}, CapacityType.SPOT),
        ({"node-lifecycle": "spot"}, CapacityType.SPOT),
        ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, CapacityType.ON_DEMAND),
        ({keys.CAPACITY_TYPE: "reserved"}, CapacityType.ON_DEMAND),
        ({}, CapacityType.ON_DEMAND),
    ],
)
def test_a_capacity_type_is_read_from_the_labels_of_each_tool(
    labels: dict[str, str], how: CapacityType
) -> None:
    assert capacity_type_of(node(labels=labels)) == how


def test_names_of_pools_are_for_people() -> None:
    assert str(Pool(PoolKind.MANAGED, "system")) == "managed node group system"
    assert str(Pool(PoolKind.NONE)) == "nodes without a pool"


def of_zone(zone: str, **labels: str) -> dict[str, str]:
    return {keys.INSTANCE_TYPE: "m5.large", keys.ZONE: zone, **labels}


def test_a_node_in_an_unknown_zone_has_the_median_price_of_its_type() -> None:
    nodes = (
        node("a", labels=of_zone("us-east-1b")),
        node("b", labels=of_zone("us-east-1-atl-1a")),
        node("c", labels={**of_zone("us-east-1b"), keys.INSTANCE_TYPE: "x9.huge"}),
        node("d", labels=of_zone("us-east-1b", **{"eks.amazonaws.com/compute-type": "fargate"})),
        node("e", labels=of_zone("us-east-1b", **{keys.OS: "windows"})),
    )
    found = {entry.name: entry.price_micros_per_hour for entry in inventory(snapshot(nodes=nodes))}
    assert found == {"a": 96_001, "b": 96_001, "c": None, "d": None, "e": None}
    assert cost(inventory(snapshot(nodes=nodes))) == 192_002


def test_nodes_are_grouped_by_pool_in_order() -> None:
    nodes = (node("b", labels={GROUP: "y"}), node("a", labels={GROUP: "x"}), node("c", labels={}))
    grouped = by_pool(inventory(snapshot(nodes=nodes)))
    assert [(str(pool), len(listed)) for pool, listed in grouped.items()] == [
        ("managed node group x", 1),
        ("managed node group y", 1),
        ("nodes without a pool", 1),
    ]


def split(allocatable: Resources, price: int | None, *pods: object) -> dict[str, int]:
    labels = of_zone("us-east-1a")
    scene = snapshot(nodes=(node(labels=labels, allocatable=allocatable),), bound=pods)
    (listed,) = inventory(scene)
    filled = FilledNode(
        pool=listed.pool,
        instance_type=listed.instance_type,
        zone=listed.zone,
        capacity_type=listed.capacity_type,
        price_micros_per_hour=price,
        allocatable=listed.allocatable,
        pods=listed.pods,
        daemons=listed.daemons,
    )
    return dict(shares_by_namespace((filled,)))


def test_a_pod_pays_the_mean_of_its_shares_and_the_rest_is_unused() -> None:
    paid = split(
        Resources.of(cpu=2000, memory=8 * GIB, pods=29),
        100_000,
        pod("a", namespace="shop", node_name="n1", cpu=1000, memory=2 * GIB),
        pod("b", namespace="tools", node_name="n1", cpu=200, memory=0),
        pod("c", namespace="kube-system", node_name="n1", cpu=100, memory=0, owner=DAEMON),
    )
    assert paid == {DAEMONSETS: 2_500, "shop": 37_500, "tools": 5_000, UNUSED: 55_000}


def test_devices_count_like_cpu_and_memory_but_attachments_do_not() -> None:
    extra = {"nvidia.com/gpu": 4, "attachable-volumes-ebs": 25, "hugepages-2Mi": 2**21}
    room = Resources.from_mapping({"cpu": 4000, "memory": 8 * GIB, "pods": 29, **extra})
    paid = split(
        room,
        120_000,
        pod("a", namespace="ml", node_name="n1", cpu=2000, memory=4 * GIB,
            extra={"nvidia.com/gpu": 2}),
    )  # fmt: skip
    assert paid["ml"] == 60_000


def test_requests_above_what_a_node_has_never_cost_more_than_the_node() -> None:
    paid = split(
        Resources.of(cpu=1000, memory=GIB, pods=29),
        90_000,
        pod("a", namespace="x", node_name="n1", cpu=2000, memory=2 * GIB),
        pod("b", namespace="y", node_name="n1", cpu=1000, memory=GIB),
    )
    assert paid == {DAEMONSETS: 0, "x": 60_000, "y": 30_000, UNUSED: 0}


def test_a_node_without_price_or_room_costs_nothing() -> None:
    paid = split(Resources(), None, pod("a", namespace="x", node_name="n1"))
    assert paid == {DAEMONSETS: 0, "x": 0, UNUSED: 0}

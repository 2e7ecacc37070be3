"""Why the node of a pod is of no cheaper instance type."""

import pytest

from functions.cli.plan.cheaper_types import why_not_cheaper
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.pods import Pod
from shared.model.plan import Placement, Plan
from shared.packing.problem import PackingSettings
from tests import builders as make

PLAIN = PackingSettings(growth_percent=0, small_batch_pods=0)


def told(
    *pods: Pod, node: PlannedNode, types: tuple[InstanceType, ...] = make.CATALOG
) -> list[str]:
    snapshot = make.snapshot(*pods, nodes=(make.node_of("roomy"),), instance_types=types)
    return list(why_not_cheaper(snapshot, Plan(nodes=(node,)), pods[0], PLAIN))


def on_2xlarge(*pods: Pod, zone: str = make.ZONES[0]) -> PlannedNode:
    return make.planned(*pods, options=(make.option(384_000, name="m5.2xlarge", zone=zone),))


def test_cheaper_types_are_told_that_lack_something_and_what_their_nodes_would_cost() -> None:
    pods = [*make.pods(3, cpu=1800), make.pod("large", memory=7 * make.GIB)]
    assert told(*pods, node=on_2xlarge(*pods)) == [
        "not on a cheaper type, m5.xlarge: too little cpu for 4 pods",
        "not on a cheaper type, m5.large: too little cpu, memory for 4 pods",
        "on cheaper types alone its 4 pods would be on 2 nodes for $0.3840/h, as now",
    ]


def test_a_cheaper_zone_that_a_pod_may_not_be_in_is_told() -> None:
    pod = make.pod(cpu=7000, node_selector=make.needs(keys.ZONE, "In", make.ZONES[1]))
    types = (make.instance_type("m5.2xlarge", cpu=8000, price=384_000),)
    node = make.planned(pod, options=(make.option(384_001, name="m5.2xlarge"),))
    assert told(pod, node=node, types=types) == [
        "not on a cheaper type, m5.2xlarge: labels or zones that not all its pods accept",
        "on cheaper types alone its 1 pod would not all have a place: 1 of them fit none",
    ]


def test_what_cheaper_types_cost_more_is_told() -> None:
    pods = make.pods(3, cpu=2500)
    assert told(*pods, node=on_2xlarge(*pods))[-1] == (
        "on cheaper types alone its 3 pods would be on 3 nodes for $0.5760/h, $0.1920/h more"
    )


def test_a_cheaper_type_that_has_room_is_told_with_what_it_saves() -> None:
    pod = make.pod(cpu=100)
    types = make.CATALOG[1:3]
    room, saved = told(pod, node=on_2xlarge(pod), types=types)
    assert room == "cheaper ones could hold its pods: m5.large"
    assert saved.startswith("on cheaper types alone its 1 pod would be on 1 node for $0.0960/h, ")
    assert saved.endswith("less: the plan keeps room for pods to come, or rules forbid it")
    spread = make.pod(cpu=100, spreads=(make.spread(),))
    assert told(spread, node=on_2xlarge(spread), types=types)[-1].endswith(
        ", or rules forbid it: topology spread over topology.kubernetes.io/zone"
    )


@pytest.mark.parametrize("new", [True, False])
def test_nothing_is_said_of_types_for_the_cheapest_node_and_for_one_that_is_there(
    *,
    new: bool,
) -> None:
    pod = make.pod(cpu=100)
    plan = Plan(
        nodes=(make.planned(pod),) if new else (),
        placements=(Placement(node="n1", slot="", pods=(make.ref(pod),)),),
    )
    lines = list(why_not_cheaper(make.snapshot(pod), plan, pod, PLAIN))
    assert lines == ["no instance type that Provisioner default may launch is cheaper"] * new

"""Options of a launch offer as many values of a label as its owner asks for (minValues)."""

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.launches import PlannedNode
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.provisioner_problems import launch_problem
from tests import builders as make
from tests.builders import GIB, instance_type, needs, pod, pods, provisioner, snapshot
from tests.unit.planning.asking import DB, QUICK, A, B, C, in_zone, why

# From the cheapest upwards; the last one is above the ceiling on prices of options.
WIDE = (
    instance_type("c5.large", memory=4 * GIB, price=85_000),
    instance_type("m5.large", price=96_000),
    instance_type("m5.xlarge", cpu=4000, memory=16 * GIB, price=192_000),
    instance_type("r5.large", memory=16 * GIB, price=126_000),
    instance_type("x1.xlarge", cpu=4000, memory=122 * GIB, price=900_000),
)


def flexible(families: int = 0, **more: int) -> Provisioner:
    least = {keys.INSTANCE_FAMILY: families} if families else {}
    return provisioner(least_values=least | {getattr(keys, key): n for key, n in more.items()})


def planned(*waiting: object, owner: Provisioner, settings: PackingSettings = QUICK) -> Plan:
    seen = snapshot(*waiting, provisioners=(owner,), instance_types=WIDE)  # type: ignore[arg-type]
    return decide(seen, settings)


def families_of(node: PlannedNode) -> set[str]:
    return {option.offering.instance_type.partition(".")[0] for option in node.options}


def test_options_above_the_price_ceiling_are_kept_where_their_values_are_asked_for() -> None:
    (few,) = planned(pod(), owner=provisioner()).nodes
    assert "x1" not in families_of(few)
    (node,) = planned(pod(), owner=flexible(4)).nodes
    assert families_of(node) == {"c5", "m5", "r5", "x1"}
    prices = [option.price_micros_per_hour for option in node.options]
    assert prices == sorted(prices)
    assert node.price_micros_per_hour == few.price_micros_per_hour


def test_values_come_before_cheaper_options_where_a_request_has_no_room_for_both() -> None:
    settings = PackingSettings(improve_iterations=2, max_options=4)
    (node,) = planned(pod(), owner=flexible(4), settings=settings).nodes
    assert families_of(node) == {"c5", "m5", "r5", "x1"}
    assert len(node.options) == 4


def test_a_node_is_no_larger_than_enough_options_are() -> None:
    """Alone they would share the cheapest machine, which only one family has."""
    waiting = pods(4, cpu=900, memory=3 * GIB)
    assert len(planned(*waiting, owner=provisioner()).nodes) < 4
    apart = planned(*waiting, owner=flexible(3))
    assert all(len(families_of(node)) >= 3 for node in apart.nodes)
    assert sum(len(node.pods) for node in apart.nodes) == 4


def test_pod_too_large_for_enough_options_gets_none_and_is_told_why() -> None:
    plan = planned(pod(memory=10 * GIB), owner=flexible(4))
    assert plan.nodes == ()
    assert why(plan) == {
        "a": "default: minValues requirement is not met: "
        "karpenter.k8s.aws/instance-family has 3 of 4"
    }


def test_limits_are_blamed_only_where_they_leave_out_a_machine_that_would_hold_the_pod() -> None:
    # The zone of the pod that it must be near sells one of the two families asked for.
    types = (WIDE[0], instance_type("m5.large", zones=(A, B)))
    owner = replace(flexible(2), limits=Resources.of(cpu=1_000_000))
    near = pod(affinity=(make.affinity(keys.ZONE, selector=DB),))
    db = pod("db", labels={"app": "db"}, node_name="n1")
    full = in_zone(C, "n1", unschedulable=True)
    seen = snapshot(near, provisioners=(owner,), instance_types=types, nodes=(full,), bound=(db,))
    assert why(decide(seen, QUICK)) == {
        "a": "default: its topology rules leave no place: "
        "pod affinity over topology.kubernetes.io/zone to pods with app=db"
    }
    # Smaller machines are within the limits, those that would hold it are not.
    large = pod(cpu=3000, affinity=(make.affinity(),))
    plan = planned(large, owner=provisioner(limits=Resources.of(cpu=3000)))
    assert why(plan) == {"a": "default: its limits are in the way: cpu 3 left of 3"}


def test_capacity_types_are_counted_over_all_that_a_node_may_become() -> None:
    both = provisioner(
        requirements=needs(keys.ARCH, "In", "amd64"), least_values={keys.CAPACITY_TYPE: 2}
    )
    (node,) = planned(pod(), owner=both).nodes
    assert {option.offering.capacity_type for option in node.options} == {CapacityType.SPOT}
    assert planned(pod(), owner=flexible(CAPACITY_TYPE=2)).nodes == ()


def test_options_of_the_other_capacity_type_are_asked_for_where_the_cheaper_ones_are_too_few() -> (
    None
):
    owner = provisioner(
        requirements=needs(keys.ARCH, "In", "amd64"), least_values={keys.INSTANCE_FAMILY: 4}
    )
    gone = frozenset(make.offering("x1.xlarge", zone, CapacityType.SPOT) for zone in make.ZONES)
    seen = snapshot(pod(), provisioners=(owner,), instance_types=WIDE, unavailable=gone)
    (node,) = decide(seen, QUICK).nodes
    assert {option.offering.capacity_type for option in node.options} == {CapacityType.ON_DEMAND}
    assert node.fallback == ()


def test_pods_spread_over_zones_keep_enough_options_in_each() -> None:
    waiting = pods(3, labels={"app": "db"}, spreads=(make.spread(),))
    plan = planned(*waiting, owner=flexible(4))
    assert sum(len(node.pods) for node in plan.nodes) == 3
    assert all(len(families_of(node)) == 4 for node in plan.nodes)


def test_owner_whose_requirements_never_leave_enough_values_launches_nothing() -> None:
    problem = launch_problem(flexible(6), make.site(), WIDE)
    assert problem == (
        "minValues requirement is not met: karpenter.k8s.aws/instance-family has 4 of 6"
    )
    assert launch_problem(flexible(4), make.site(), WIDE) == ""


@pytest.mark.parametrize("closed", [True, False])
def test_node_that_is_dropped_leaves_those_of_other_owners_and_nodes_that_are_there(
    *, closed: bool
) -> None:
    owners = (flexible(3), provisioner("spare"))
    other = pod("other", node_selector=needs(keys.PROVISIONER_NAME, "In", "spare"))
    waiting = (*pods(4, cpu=900, memory=3 * GIB), other)
    there = make.node(unschedulable=closed)
    seen = snapshot(*waiting, provisioners=owners, instance_types=WIDE, nodes=(there,))
    plan = decide(seen, QUICK)
    assert sorted({node.provisioner for node in plan.nodes}) == ["default", "spare"]
    placed = [found.pods for found in plan.nodes] + [found.pods for found in plan.placements]
    assert sum(map(len, placed)) == len(waiting)


def test_label_that_no_instance_type_has_offers_no_value() -> None:
    owner = provisioner(least_values={keys.INSTANCE_GPU_NAME: 1})
    assert planned(pod(), owner=owner).nodes == ()

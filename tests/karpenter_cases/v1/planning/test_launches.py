"""What NodePools launch, from the document to the machine."""

from datetime import datetime
from typing import Any

import pytest

from shared.disruption.drift import drift_of, launch_stamp, shape_hash
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef, Pod
from tests.builders import CATALOG, NOW, budget, instance_type, pod
from tests.karpenter_cases.lifecycle.births import bought, subnets_asked, with_two_subnets
from tests.karpenter_cases.v1.worlds import (
    apart,
    changed_class,
    is_ready,
    named_pool,
    stand,
    world,
)
from tests.unit.worlds import MINUTE, World, instead

SMALL = (instance_type("m5.large"),)


def test_a_pool_that_is_not_ready_gets_no_nodes() -> None:
    there = world(named_pool())
    there.cloud.subnets = ()
    assert not is_ready(there)
    assert bought(there).alive == []
    wrong = world(named_pool(replicas=1))
    assert not is_ready(wrong)
    assert bought(wrong).alive == []


def test_a_third_pod_waits_at_a_limit_of_two_nodes() -> None:
    there = world(named_pool(limits={"nodes": "2"}), types=SMALL)
    for number, member in enumerate(apart(3), 1):
        bought(there, member)
        assert len(there.alive) == min(number, 2)
    assert len(there.bound) == 2


def test_one_batch_keeps_to_a_limit_on_nodes() -> None:
    there = bought(world(named_pool(limits={"nodes": "2"}), types=SMALL), *apart(5))
    assert len(there.alive) == 2


def test_nodes_planned_before_an_edit_have_the_shape_of_before() -> None:
    there = world(named_pool())
    (before,), _ = there.cluster.provisioners()
    original = there.cloud.create_fleet

    def edited_meanwhile(*arguments: object, **more: object) -> object:
        there.cluster.apply(named_pool(metadata={"labels": {"team": "red"}}))
        return original(*arguments, **more)  # type: ignore[arg-type] # passed on as it came

    instead(there.cloud, "create_fleet", edited_meanwhile)
    bought(there)
    (after,), _ = there.cluster.provisioners()
    assert shape_hash(after) != shape_hash(before)
    assert there.node.annotations[keys.PROVISIONER_HASH] == shape_hash(before)


def test_a_node_made_after_an_edit_has_shape_and_life_of_its_launch() -> None:
    there = world(named_pool(spec={"expireAfter": "1h"}))
    (before,), _ = there.cluster.provisioners()
    there.cloud.delays.running = MINUTE
    bought(there)
    script = "#!/bin/bash\ntouch /of-another-time\n"
    there.cluster.apply(named_pool(spec={"expireAfter": "2h"}), changed_class(userData=script))
    there.advance(MINUTE)
    there.provision()
    assert there.node.annotations.items() >= launch_stamp(before).items()
    (after,), _ = there.cluster.provisioners()
    assert drift_of(there.node, after) == "nodepool default has changed"


def in_two_subnets() -> World:
    return with_two_subnets(world(named_pool(), types=CATALOG[2:]))


def test_the_subnet_with_most_free_addresses_is_first_and_promises_count() -> None:
    assert subnets_asked(bought(in_two_subnets())) == [{"subnet-many"}]
    there = bought(in_two_subnets(), pod("a", cpu=1800), pod("b", cpu=3800))
    assert sorted(map(sorted, subnets_asked(there))) == [["subnet-few"], ["subnet-many"]]


@pytest.mark.parametrize("replicas", [0, 3])
def test_a_fixed_pool_gets_no_nodes_for_pods(replicas: int) -> None:
    there = world(named_pool("fixed", weight=9, replicas=replicas), named_pool("open"))
    bought(there)
    assert there.node.labels[keys.NODE_POOL] == "open"


def test_health_of_registration_changes_no_plan() -> None:
    # A pool whose first machine never joined gets the next pod's node all the same.
    there = bought(world(named_pool(), types=SMALL), *apart(1))
    there.advance(20 * MINUTE)
    bought(there, apart(2)[1])
    assert len(there.cloud.fleets) == 2
    assert request_types(there) == ["default", "default"]


def request_types(there: World) -> list[str]:
    return [machine.tags[keys.TAG_NODE_POOL] for machine in there.cloud.all_instances]


# --- pods of nodes that go


def leaving(*members: Pod, reason: str = "spot-interruption") -> World:
    """Return a world with a node of the NodePool that goes, and these pods on it."""
    going: dict[str, Any] = {"deletion_at": NOW, "annotations": {keys.REMOVAL_REASON: reason}}
    there = world(named_pool(), types=SMALL)
    there.cluster.add(*members)
    stand(there, **going)
    there.provision(look=True)
    return there


@pytest.mark.parametrize(
    ("kind", "deletion_at", "count"),
    [
        ("ReplicaSet", None, 1),
        ("DaemonSet", None, 0),
        ("ReplicaSet", NOW, 0),
        ("StatefulSet", NOW, 1),
    ],
    ids=["active", "daemon", "terminating", "terminating-of-a-set"],
)
def test_pods_of_a_node_that_goes_are_planned_for(
    kind: str, deletion_at: datetime | None, count: int
) -> None:
    owner = ControllerRef(kind=kind, name="o", uid="o")
    there = leaving(pod(node_name="n1", owner=owner, deletion_at=deletion_at))
    assert len(there.cloud.fleets) == count


def test_pods_that_a_budget_keeps_are_not_planned_for() -> None:
    there = world(named_pool(), types=SMALL)
    there.cluster.add(pod(node_name="n1"), budget(0))
    stand(there, deletion_at=NOW)
    there.provision(look=True)
    assert there.cloud.fleets == []


def test_a_pod_that_must_stay_is_not_planned_for() -> None:
    held = {keys.DO_NOT_DISRUPT: "true"}
    members = (pod("a", node_name="n1", annotations=held), pod("b"))
    there = leaving(*members, reason="")
    assert len(there.cloud.fleets) == 1
    assert there.bound.keys() == {"a", "b"}

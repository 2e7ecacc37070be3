"""Nodes of NodePools whose time is over, and those that are being replaced."""

from typing import Any

import pytest

from shared.manifests.custom_resources.pool_lifetimes import read_lifetime
from shared.model import labels as keys
from shared.model.kubernetes.pods import ControllerRef
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.replacement import Replacement, start_replacement
from shared.ports import TimerKind
from tests.builders import OTHER_SHAPE, SHAPES, budget, pod
from tests.karpenter_cases.v1.worlds import named_pool, stand, world
from tests.unit.worlds import MINUTE, SECOND, World

EMPTY = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s", "budgets": []}
SAVING = {"consolidateAfter": "0s", "budgets": []}
NEVER = {**SAVING, "consolidateAfter": "Never"}


def emptying(*members: Any, **disruption: Any) -> World:
    there = world(named_pool(disruption={**EMPTY, **disruption}))
    there.cluster.add(*members)
    stand(there)
    return there


def begun(there: World) -> World:
    assert Emptiness(there.ports).begin("n1") == "timer started"
    return there


def empty_step(there: World) -> Any:
    timer = there.outbox.timers_of(TimerKind.EMPTINESS)[-1]
    return Emptiness(there.ports).step(timer.payload)


@pytest.mark.parametrize("after", ["30s", "5m"])
def test_an_empty_node_goes_once_its_wait_is_over(after: str) -> None:
    there = begun(emptying(consolidateAfter=after))
    there.advance(29 * SECOND)
    assert empty_step(there)["next"] == "wait"
    assert there.node.deletion_at is None
    there.advance(5 * MINUTE)
    assert empty_step(there)["result"] == "removed"


@pytest.mark.parametrize("ready", [False, None])
def test_a_node_that_may_not_count_as_empty_stays(*, ready: bool | None) -> None:
    there = world(named_pool(disruption=EMPTY))
    stand(there, ready=ready, labels={keys.INITIALIZED: ""})
    assert Emptiness(there.ports).begin("n1") != "timer started"
    stand(there, ready=ready)
    assert Emptiness(there.ports).begin("n1") == "timer started"
    never = emptying(consolidateAfter="Never")
    assert Emptiness(never.ports).begin("n1") != "timer started"


def test_a_pod_that_comes_meanwhile_keeps_the_node() -> None:
    there = begun(emptying())
    there.advance(30 * SECOND)
    there.cluster.add(pod(node_name="n1"))
    assert empty_step(there)["result"] == "not empty"
    assert there.node.deletion_at is None


@pytest.mark.parametrize(
    "held",
    [{"annotations": {keys.DO_NOT_DISRUPT: "true"}, "labels": {}}, {"labels": {"app": "web"}}],
)
def test_a_daemon_that_must_stay_keeps_an_empty_node(held: dict[str, Any]) -> None:
    daemon = pod(node_name="n1", owner=ControllerRef(kind="DaemonSet", name="d", uid="d"), **held)
    there = emptying(daemon)
    there.cluster.add(budget(0))
    assert Emptiness(there.ports).begin("n1") == "not empty"
    there.cluster.pods.clear()
    begun(there)
    there.advance(30 * SECOND)
    there.cluster.add(daemon)
    assert empty_step(there)["next"] == "done"
    assert there.node.deletion_at is None


def test_both_policies_remove_empty_nodes() -> None:
    there = begun(emptying())
    there.advance(30 * SECOND)
    assert empty_step(there)["result"] == "removed"
    wider = world(named_pool(disruption=SAVING))
    stand(wider)
    wider.advance(60 * MINUTE)
    wider.provision(look=True)
    replacement_step(wider)
    assert wider.node.deletion_at is not None


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized"])
def test_a_fixed_pools_empty_node_stays(policy: str) -> None:
    disruption = {**EMPTY, "consolidationPolicy": policy}
    there = world(named_pool(disruption=disruption, replicas=1))
    stand(there)
    assert Emptiness(there.ports).begin("n1") != "timer started"
    there.advance(60 * MINUTE)
    there.provision(look=True)
    assert there.node.deletion_at is None


def test_a_fixed_pools_nodes_are_never_consolidated() -> None:
    raw = named_pool(disruption=SAVING, replicas=3)
    assert not read_lifetime(raw).consolidation
    assert read_lifetime(named_pool(disruption=SAVING)).consolidation


# --- replacement


def half_empty(*more: Any, **annotations: str) -> World:
    """Return a world whose one large instance holds what a small one could."""
    there = world(named_pool(disruption=NEVER if annotations else SAVING))
    shape = SHAPES["m5.2xlarge"]
    room = {"capacity": shape.capacity, "allocatable": shape.allocatable}
    labels = {keys.INSTANCE_TYPE: shape.name}
    stand(there, "big", labels=labels, annotations=annotations, **room)
    there.cluster.add(pod("a", node_name="big"), pod("b", node_name="big"), *more)
    there.advance(60 * MINUTE)
    there.provision(look=True)
    return there


def replacement_step(there: World) -> Any:
    (timer,) = there.outbox.timers_of(TimerKind.REPLACEMENT)
    return Replacement(there.ports).step(timer.payload)


def new_joins(there: World) -> None:
    (fresh,) = (node for node in there.cluster.nodes() if node.name != "big")
    shape = SHAPES[fresh.labels[keys.INSTANCE_TYPE]]
    there.kubelet_joins(fresh.name, capacity=shape.capacity, allocatable=shape.allocatable)
    there.bind(fresh.name)


def big(there: World) -> Any:
    return there.cluster.node_values["big"]


def test_while_the_new_node_is_not_ready_the_old_stays() -> None:
    there = half_empty()
    assert replacement_step(there)["next"] == "wait"
    assert big(there).deletion_at is None
    assert len(there.cluster.nodes()) == 2


def test_once_the_new_node_is_ready_the_old_goes() -> None:
    there = half_empty()
    new_joins(there)
    replacement_step(there)
    assert big(there).deletion_at is not None


def test_without_a_new_node_the_old_goes_at_once() -> None:
    there = world(named_pool(disruption=SAVING))
    stand(there)
    there.advance(60 * MINUTE)
    there.provision(look=True)
    assert there.cloud.fleets == []
    replacement_step(there)
    assert there.node.deletion_at is not None


@pytest.mark.parametrize("drifted", [False, True], ids=["consolidation", "drift"])
def test_when_the_new_node_is_gone_the_old_is_open(*, drifted: bool) -> None:
    old = OTHER_SHAPE if drifted else {}
    there = half_empty(**old)
    (fresh,) = (node for node in there.cluster.nodes() if node.name != "big")
    there.cloud.end(fresh.instance_id)
    del there.cluster.node_values[fresh.name]
    there.advance(30 * MINUTE)
    assert replacement_step(there)["next"] == "done"
    assert (big(there).unschedulable, big(there).deletion_at) == (False, None)


def test_pods_that_came_and_fit_nowhere_keep_the_old() -> None:
    there = half_empty()
    new_joins(there)
    there.cluster.add(*(pod(f"late{n}", node_name="big", cpu=1800) for n in range(3)))
    assert replacement_step(there)["result"] == "pods came that fit nowhere else"
    assert (big(there).unschedulable, big(there).deletion_at) == (False, None)


@pytest.mark.parametrize("hold", ["pod", "budget"])
def test_a_hold_that_came_meanwhile_keeps_the_old(hold: str) -> None:
    there = half_empty()
    new_joins(there)
    if hold == "pod":
        kept = {keys.DO_NOT_DISRUPT: "true"}
        there.cluster.add(pod("late", node_name="big", annotations=kept))
    else:
        there.cluster.add(budget(0))
    replacement_step(there)
    assert big(there).deletion_at is None


def test_two_changes_wait_each_for_its_own_node() -> None:
    there = world(named_pool(disruption=SAVING))
    for name in ("old1", "old2"):
        stand(there, name)
        there.cluster.add(pod(f"of-{name}", node_name=name))
        old = there.cluster.node_values[name]
        start_replacement(
            there.ports, f"plan-{name}", [old], 1, "consolidation", registration=5 * MINUTE
        )
    for number, ready in ((1, True), (2, None)):
        slot = {keys.SLOT: f"plan-old{number}/0"}
        stand(there, f"new{number}", annotations=slot, ready=ready)
    states = [timer.payload for timer in there.outbox.timers_of(TimerKind.REPLACEMENT)]
    for state in states:
        assert Replacement(there.ports).step(state)["next"] == "wait"
    going = {node.name for node in there.cluster.nodes() if node.deletion_at is not None}
    assert going == {"old1"}


def test_a_mark_of_an_earlier_round_is_removed() -> None:
    there = world(named_pool())
    marks = {keys.REMOVAL_REASON: "consolidation"}
    stand(there, unschedulable=True, annotations=marks)
    for _ in range(2):
        there.advance(10 * MINUTE)
        there.sweep()
    assert not there.node.unschedulable

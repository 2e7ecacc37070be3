"""Which nodes may be disrupted, and what it would cost their pods."""

from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.candidates import Candidate, eviction_cost, find_candidates
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from tests.builders import (
    NOT_READY,
    NOW,
    node_of,
    pod,
    provisioner,
    ref,
    slot,
    snapshot,
)
from tests.unit.disruption.clusters import LATER


def node(name: str = "n1", **changes: Any) -> Node:
    return node_of(name, **changes)


def _look(
    *nodes: Node,
    bound: tuple[Pod, ...] = (),
    budgets: tuple[PodDisruptionBudget, ...] = (),
    **more: Any,
) -> tuple[tuple[Candidate, ...], dict[str, str]]:
    owner = more.pop("owner", provisioner(consolidation=True))
    seen = snapshot(nodes=nodes, bound=bound, provisioners=(owner,), **more)
    return find_candidates(seen, budgets, LATER)


def test_an_initialized_node_of_a_consolidating_provisioner_is_a_candidate() -> None:
    ((candidate,), refused) = _look(node(), bound=(pod("a", node_name="n1"),))

    assert candidate.price_micros_per_hour == 96_000
    assert candidate.disruption_cost == 1000
    assert [other_pod.name for other_pod in candidate.pods] == ["a"]
    assert not candidate.is_empty
    assert refused == {}


def test_a_pod_of_the_lowest_priority_needs_its_node() -> None:
    ((candidate,), _) = _look(node(), bound=(pod("a", node_name="n1", priority=-(2**31)),))
    assert not candidate.is_empty


@pytest.mark.parametrize("ready", [False, None])
def test_a_node_whose_kubelet_stopped_is_a_candidate_and_empty_without_running_pods(
    *, ready: bool | None
) -> None:
    last = ControllerRef(kind="StatefulSet", name="db", uid="db")
    leaves = pod("a", node_name="n1", deletion_at=NOW, owner=last)
    ((empty,), _) = _look(node(ready=ready), bound=(leaves,))
    ((used,), _) = _look(node(ready=ready), bound=(leaves, pod("b", node_name="n1", owner=last)))
    assert (empty.is_empty, used.is_empty) == (True, False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"deletion_at": LATER}, "it is being removed"),
        (
            {"unschedulable": True, "annotations": {keys.REMOVAL_REASON: "emptiness"}},
            "it is cordoned to be removed",
        ),
        ({"ready": False, "labels": {keys.INITIALIZED: ""}}, "it is not initialized"),
        ({"ready": False, "taints": (NOT_READY,)}, "it is not initialized"),
        ({"labels": {keys.INITIALIZED: ""}}, "it is not initialized"),
        (
            {"annotations": {keys.REPLACES: "n0"}},
            "it was launched for pods that are on their way",
        ),
        (
            {"annotations": {keys.DO_NOT_CONSOLIDATE: "true"}},
            "its annotation karpenter.sh/do-not-consolidate forbids it",
        ),
        (
            {"annotations": {keys.DO_NOT_DISRUPT: "true"}},
            "its annotation karpenter.sh/do-not-disrupt forbids it",
        ),
        (
            {"labels": {**node().labels, keys.INSTANCE_TYPE: "x9.huge"}},
            "its price is not known",
        ),
    ],
)
def test_a_node_is_left_alone_and_says_why(change: dict[str, Any], reason: str) -> None:
    assert _look(node(**change)) == ((), {"n1": reason})


def test_a_cordon_of_a_user_does_not_keep_a_node() -> None:
    ((candidate,), refused) = _look(node(unschedulable=True))
    assert (candidate.is_empty, refused) == (True, {})


def test_a_node_on_which_the_scheduler_makes_room_is_left_alone_by_consolidation() -> None:
    waiting = (pod("important", nominated_node="n1"),)
    seen = snapshot(
        *waiting,
        nodes=(node(),),
        provisioners=(provisioner(consolidation=True),),
        taken_at=LATER,
    )

    found, refused = find_candidates(seen, (), LATER)
    assert (found, refused) == ((), {"n1": "kube-scheduler makes room on it for a pod"})
    found, refused = find_candidates(seen, (), LATER, among=["default"])
    assert ([candidate.node.name for candidate in found], refused) == (["n1"], {})


def test_a_paused_provisioner_keeps_its_nodes() -> None:
    owner = provisioner(consolidation=True, paused=True)

    assert _look(node(), owner=owner) == ((), {"n1": "Provisioner default is paused"})
    owner = provisioner(consolidation=True, shadow=True)
    assert _look(node(), owner=owner) == ((), {"n1": "Provisioner default is in shadow mode"})


def test_a_node_that_pods_are_promised_to_is_left_alone() -> None:
    promised = slot(instance_id="i-n1", node_name="n1", pods=(ref(pod("b")),))

    assert _look(node(), slots=(promised,)) == ((), {"n1": "pods are promised to it"})


@pytest.mark.parametrize(
    ("annotation", "priority", "cost"),
    [
        (None, 0, 1000),
        (str(2**27), 0, 2000),
        (str(-(2**27)), 0, 0),
        ("1000", 0, 1000),
        (str(-(2**31)), 0, -10_000),
        (None, 2**25, 2000),
        (None, -(2**25), 0),
        (None, 2_000_000_000, 10_000),
        ("much", 0, 1000),
    ],
)
def test_deletion_cost_and_priority_raise_the_cost_of_moving_a_pod(
    annotation: str | None, priority: int, cost: int
) -> None:
    annotations = {} if annotation is None else {keys.POD_DELETION_COST: annotation}

    assert eviction_cost(pod(annotations=annotations, priority=priority)) == cost


def test_a_node_that_expires_soon_is_cheaper_to_disrupt() -> None:
    owner = provisioner(consolidation=True, ttl_until_expired=timedelta(hours=4))
    bound = (pod("a", node_name="n1"), pod("b", node_name="n2"))
    old = node("n2", created_at=NOW - timedelta(days=1))
    (first, second), _ = _look(node("n1"), old, bound=bound, owner=owner)

    assert (first.node.name, first.disruption_cost) == ("n2", 0)
    assert (second.node.name, second.disruption_cost) == ("n1", 750)


def test_a_clock_that_is_behind_the_pods_keeps_no_node_that_is_due() -> None:
    seen = snapshot(
        nodes=(node(),), bound=(pod(node_name="n1", created_at=LATER + timedelta(minutes=1)),)
    )
    assert len(find_candidates(seen, (), LATER, among=("default",))[0]) == 1


def test_nodes_of_named_provisioners_are_candidates_without_consolidation() -> None:
    seen = snapshot(nodes=(node(),))

    assert len(find_candidates(seen, (), LATER, among=("default",))[0]) == 1
    assert find_candidates(seen, (), LATER, among=("other",)) == ((), {})

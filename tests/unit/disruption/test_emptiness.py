"""Whether nodes are empty, and how old they are."""

from datetime import timedelta

import pytest

from shared.disruption.emptiness import (
    EmptinessDecision,
    EmptinessStep,
    decide_emptiness,
    empty_since,
    is_empty,
)
from shared.model import labels as keys
from shared.model.ec2.launches import Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from tests.builders import NOT_READY, NOW, node, node_of, pod, ref, slot

TTL = timedelta(seconds=30)


def stamped(ago: timedelta) -> Node:
    return node(annotations={keys.EMPTINESS_TIMESTAMP: (NOW - ago).isoformat()})


def decide(
    wrong_node: Node, *pods: Pod, promised: Slot | None = None, ttl: timedelta | None = TTL
) -> EmptinessDecision:
    return decide_emptiness(wrong_node, pods, promised, ttl, NOW)


@pytest.mark.parametrize(
    ("pods", "promised", "empty"),
    [
        ((), None, True),
        ((pod(node_name="n1"),), None, False),
        ((pod(node_name="n1", phase="Failed"),), None, True),
        (
            (pod(node_name="n1", owner=ControllerRef(kind="DaemonSet", name="d", uid="d")),),
            None,
            True,
        ),
        ((), slot(), True),
        ((), slot(pods=(ref(pod()),)), False),
    ],
)
def test_only_pods_that_count_or_are_promised_keep_a_node(
    pods: tuple[Pod, ...], promised: Slot | None, *, empty: bool
) -> None:
    assert is_empty(node(), pods, promised) is empty


def test_a_promise_is_over_when_the_node_is_initialized() -> None:
    labels = {**node().labels, keys.INITIALIZED: "true"}
    assert is_empty(node(labels=labels), (), slot(pods=(ref(pod()),)))


@pytest.mark.parametrize(
    ("ready", "leaves", "empty"),
    [(True, True, False), (None, True, True), (False, True, True), (None, False, False)],
)
def test_a_pod_of_a_statefulset_that_leaves_keeps_no_node_that_is_not_ready(
    *, ready: bool | None, leaves: bool, empty: bool
) -> None:
    last = ControllerRef(kind="StatefulSet", name="db", uid="db")
    found = pod(node_name="n1", owner=last, deletion_at=NOW if leaves else None)
    one = node_of("n1", ready=ready)
    assert is_empty(one, (found,), None) is empty
    assert (decide(one, found).step == EmptinessStep.STAMP) is empty


def test_a_node_that_replaces_others_waits_for_their_pods() -> None:
    one = node(annotations={keys.REPLACES: "old"})
    assert not is_empty(one, (), None)
    assert decide(one).step == EmptinessStep.FORGET


@pytest.mark.parametrize(
    ("wrong_node", "ttl"),
    [
        (node(finalizers=()), TTL),
        (node(deletion_at=NOW), TTL),
        (node(), None),
        (node(ready=False), TTL),
        (node(taints=(NOT_READY,)), TTL),
        (node_of("n1", ready=False, taints=(NOT_READY,)), TTL),
    ],
)
def test_nodes_that_dovetail_may_not_remove_lose_their_stamp(
    wrong_node: Node, ttl: timedelta | None
) -> None:
    assert decide(wrong_node, ttl=ttl).step == EmptinessStep.FORGET


def test_an_empty_node_is_stamped_waited_for_and_removed() -> None:
    assert decide(node()) == EmptinessDecision(step=EmptinessStep.STAMP, wait=TTL)
    wait = EmptinessDecision(step=EmptinessStep.WAIT, wait=timedelta(seconds=20))
    assert decide(stamped(timedelta(seconds=10))) == wait
    assert decide(stamped(TTL)) == EmptinessDecision(step=EmptinessStep.REMOVE)


@pytest.mark.parametrize("seconds", [0, 1, 19])
def test_a_short_ttl_leaves_kube_scheduler_the_time_to_bind_pods(seconds: int) -> None:
    least, ttl = timedelta(seconds=20), timedelta(seconds=seconds)
    assert decide(node(), ttl=ttl) == EmptinessDecision(step=EmptinessStep.STAMP, wait=least)
    wait = EmptinessDecision(step=EmptinessStep.WAIT, wait=timedelta(seconds=1))
    assert decide(stamped(timedelta(seconds=19)), ttl=ttl) == wait
    assert decide(stamped(least), ttl=ttl).step == EmptinessStep.REMOVE


def test_a_stamp_from_the_future_is_written_anew() -> None:
    assert decide(stamped(timedelta(seconds=-1))).step == EmptinessStep.STAMP


def test_a_stamp_without_a_zone_is_utc_as_karpenter_wrote_it() -> None:
    for text in ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"):
        assert empty_since(node(annotations={keys.EMPTINESS_TIMESTAMP: text})) == NOW


def test_a_node_that_is_not_to_be_disrupted_is_not_removed_when_it_is_empty() -> None:
    assert decide(node(annotations={keys.DO_NOT_DISRUPT: "true"})).step == EmptinessStep.FORGET
    assert decide(node(annotations={keys.DO_NOT_DISRUPT: "yes"})).step == EmptinessStep.STAMP

"""What the forwarder says, and when."""

from typing import Any

import pytest

from functions.forwarder.observer import Collection
from functions.forwarder.views import View, view_node, view_pod, view_provisioner
from tests.unit.forwarder.views import (
    HELD,
    T0,
    UNSCHEDULABLE,
    Cluster,
    at,
    node,
    pod,
    provisioner,
    said,
)

# --- pods


def test_a_pod_is_announced_when_it_is_marked_unschedulable_and_once() -> None:
    cluster = Cluster()
    assert cluster.see(pod()) == []
    assert cluster.see(pod(waits=True, version="2")) == [("pod-pending", "p")]
    assert cluster.see(pod(waits=True, version="3")) == []


def test_a_pod_that_still_waits_is_announced_every_minute_with_its_newest_version() -> None:
    cluster = Cluster()
    cluster.see(pod(waits=True))
    cluster.see(pod(waits=True, version="7"))
    assert cluster.tick(59) == []
    (announcement,) = cluster.observer.announcements_due(at(60))
    assert announcement.ref is not None
    assert announcement.ref.version == "7"
    assert cluster.tick(119) == []
    assert cluster.tick(120) == [("pod-pending", "p")]
    assert cluster.observer.waiting_pods == 1


def test_pods_fall_due_one_after_the_other() -> None:
    cluster = Cluster()
    cluster.see(pod("a", waits=True), at(0))
    cluster.see(pod("b", waits=True), at(30))
    assert cluster.tick(60) == [("pod-pending", "a")]
    assert cluster.tick(90) == [("pod-pending", "b")]
    assert cluster.tick(120) == [("pod-pending", "a")]


@pytest.mark.parametrize(
    "view",
    [
        pod(node="n1"),
        pod(waits=True, node="n1"),
        pod(waits=True, phase="Failed"),
        pod(waits=True, owner="DaemonSet"),
        pod(waits=True, owner="Node"),
        pod(waits=True, deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
)
def test_a_pod_that_no_longer_waits_is_forgotten(view: View) -> None:
    cluster = Cluster()
    assert cluster.see(view) == []
    cluster.see(pod(waits=True))
    cluster.see(view)
    assert cluster.tick(60) == []


@pytest.mark.parametrize(
    "more",
    [
        {"spec": {"schedulingGates": [{}]}},
        {"spec": {"schedulerName": "fargate-scheduler"}},
        {"status": {"nominatedNodeName": "n1"}},
    ],
)
def test_gated_and_preempting_pods_do_not_wait_for_capacity(more: dict[str, Any]) -> None:
    raw: dict[str, Any] = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {},
        "status": {"conditions": [UNSCHEDULABLE]},
    }
    for key, value in more.items():
        raw[key] = {**raw[key], **value}
    assert Cluster().see(view_pod(raw)) == []


def test_a_pod_that_is_gone_is_forgotten() -> None:
    cluster = Cluster()
    cluster.see(pod(waits=True))
    assert cluster.lose(pod()) == []
    assert cluster.tick(60) == []


# --- empty nodes


def test_a_node_is_empty_when_its_last_pod_that_counts_leaves() -> None:
    cluster = Cluster()
    cluster.see(pod("a", node="n1"))
    cluster.see(pod("b", node="n1"))
    cluster.see(pod("daemon", node="n1", owner="DaemonSet"))
    assert cluster.see(node()) == []
    assert cluster.lose(pod("a")) == []
    assert cluster.see(pod("b", node="n1", phase="Succeeded")) == [("node-empty", "n1")]
    assert cluster.lose(pod("b")) == []
    assert cluster.lose(pod("daemon")) == []


def test_a_node_without_pods_is_empty_once_it_is_initialized() -> None:
    cluster = Cluster()
    assert cluster.see(node(ready=False, taints=HELD)) == []
    assert cluster.see(node(taints=HELD)) == [("node-ready", "n1")]
    assert cluster.see(node()) == [("node-empty", "n1")]
    assert cluster.see(node()) == []


@pytest.mark.parametrize(("joined", "said_then"), [(True, [("node-empty", "n1")]), (False, [])])
def test_a_node_that_was_initialized_is_empty_though_it_is_not_ready(
    *, joined: bool, said_then: list[tuple[str, str]]
) -> None:
    cluster = Cluster()
    cluster.see(pod("a", node="n1"))
    cluster.see(node(ready=False, joined=joined))
    assert cluster.lose(pod("a")) == said_then
    assert cluster.see(node(joined=joined))[0] == ("node-ready", "n1")


def test_pods_that_were_never_bound_empty_no_node() -> None:
    cluster = Cluster()
    cluster.see(node())
    cluster.see(pod("a"))
    assert cluster.lose(pod("a")) == []


@pytest.mark.parametrize("view", [node(ours=False), node(deleting=True)])
def test_a_node_that_is_not_ours_or_going_is_never_empty(view: View) -> None:
    cluster = Cluster()
    cluster.see(pod("a", node="n1"))
    cluster.see(view)
    assert cluster.lose(pod("a")) == []


def test_a_pod_of_an_unknown_node_is_counted_until_the_node_is_known() -> None:
    cluster = Cluster()
    cluster.see(pod("a", node="n1"))
    assert cluster.see(node()) == []
    cluster.see(pod("b", node="elsewhere"))
    assert cluster.lose(pod("b")) == []


# --- ready, deleted


def test_a_held_node_that_shows_something_new_is_announced_again() -> None:
    cluster = Cluster()
    assert cluster.see(node(taints=(*HELD, "startup"), cpu="2")) == [("node-ready", "n1")]
    assert cluster.see(node(taints=(*HELD, "startup"), cpu="2")) == []
    assert cluster.see(node(taints=HELD, cpu="2")) == [("node-ready", "n1")]
    assert cluster.see(node(taints=HELD, cpu="2", gpu="1")) == [("node-ready", "n1")]
    assert cluster.see(node(cpu="2")) == [("node-empty", "n1")]
    assert cluster.see(node(cpu="3")) == []


def test_open_node_that_shows_a_device_is_announced_until_it_is_initialized() -> None:
    cluster = Cluster()
    cluster.see(pod("a", node="n1"))
    cluster.see(node(taints=HELD, cpu="2"))
    assert cluster.see(node(joined=False, cpu="2")) == [("node-ready", "n1")]
    assert cluster.see(node(joined=False, cpu="2", gpu="1")) == [("node-ready", "n1")]
    assert cluster.see(node(cpu="2", gpu="1")) == []
    assert cluster.see(node(cpu="2", gpu="2")) == []


def test_a_node_that_becomes_ours_is_announced() -> None:
    cluster = Cluster()
    assert cluster.see(node(ours=False, taints=HELD)) == []
    assert cluster.see(node(taints=HELD)) == [("node-ready", "n1")]


def test_a_node_is_deleted_when_its_deletion_begins_and_not_when_it_is_gone() -> None:
    cluster = Cluster()
    cluster.see(node())
    assert cluster.see(node(deleting=True)) == [("node-deleted", "n1")]
    assert cluster.see(node(deleting=True, cpu="1")) == []
    assert cluster.lose(node()) == []
    assert cluster.see(node(ours=False, deleting=True)) == []


# --- provisioners, heartbeat, start


def test_a_provisioner_is_announced_when_it_changes() -> None:
    cluster = Cluster()
    changed = [("provisioner-changed", "default")]
    assert cluster.see(provisioner()) == changed
    assert cluster.see(provisioner(resourceVersion="2")) == []
    assert cluster.see(provisioner(2)) == changed
    assert cluster.see(provisioner(2, annotations={"dovetail.dev/paused": "true"})) == changed
    assert cluster.see(provisioner(2)) == changed
    assert cluster.see(provisioner(2, deletionTimestamp="2026-01-01T00:00:00Z")) == changed
    assert cluster.lose(provisioner()) == []


HEARTBEAT = [("heartbeat", "")]


def test_the_heartbeat_comes_once_all_is_read_and_every_five_minutes() -> None:
    observer = Cluster(synced=False).observer
    for collection in Collection:
        assert observer.announcements_due(T0) == []
        observer.collection_synced(collection, T0)
    assert said(observer.announcements_due(T0)) == HEARTBEAT
    assert observer.announcements_due(at(299)) == []
    assert said(observer.announcements_due(at(300))) == HEARTBEAT


def test_no_heartbeat_is_sent_while_a_collection_was_never_read() -> None:
    observer = Cluster(synced=False).observer
    for collection in set(Collection) - {Collection.PODS}:
        observer.collection_synced(collection, T0)
    assert [said(observer.announcements_due(at(60 * minute))) for minute in range(61)] == [[]] * 61
    assert not observer.is_current(T0)


def test_no_heartbeat_is_sent_while_a_collection_is_no_longer_served_and_again_once_it_is() -> None:
    cluster = Cluster()
    for collection in set(Collection) - {Collection.PODS}:
        cluster.observer.collection_served(collection, at(599))
    assert cluster.tick(300) == HEARTBEAT
    assert cluster.observer.is_current(at(599))
    assert not cluster.observer.is_current(at(600))
    assert cluster.tick(600) == []
    cluster.observer.collection_served(Collection.PODS, at(700))
    assert cluster.observer.is_current(at(700))
    assert cluster.tick(700) == HEARTBEAT


def test_nothing_is_announced_before_the_first_sync_and_then_everything_is() -> None:
    cluster = Cluster(synced=False)
    for view in (
        node("empty"),
        node("busy"),
        node("held", taints=HELD),
        node("booting", ready=False, taints=HELD),
        node("going", deleting=True),
        node("foreign", ours=False),
        pod("a", waits=True),
        pod("b", node="busy"),
        provisioner(),
    ):
        assert cluster.see(view) == []
    assert cluster.tick(100) == []
    assert not cluster.observer.is_synced
    assert sorted(cluster.sync()) == [
        ("node-deleted", "going"),
        ("node-empty", "empty"),
        ("node-ready", "held"),
        ("pod-pending", "a"),
        ("provisioner-changed", "default"),
    ]
    assert cluster.observer.is_synced
    assert cluster.tick(4) == []
    assert sorted(cluster.tick(59)) == [("node-deleted", "going"), ("node-ready", "held")]
    assert cluster.tick(60) == [("pod-pending", "a")]


def test_a_strange_object_is_viewed_without_harm() -> None:
    assert view_pod({"metadata": None, "spec": [], "status": 3}).name == ""
    assert view_node({}).shown_resources == ""
    assert view_provisioner({"metadata": {"generation": "x"}}).generation == 0

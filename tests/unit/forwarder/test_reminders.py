"""What nodes still need is said again until it is done."""

import pytest

from functions.forwarder.views import View
from tests.unit.forwarder.views import HELD, T0, Cluster, at, node, pod, provisioner

PAUSED = {"dovetail.dev/paused": "true"}
SHADOW = {"dovetail.dev/shadow": "true"}


def spoken(cluster: Cluster, until: int, begin: int = 1) -> list[int]:
    """Return at which seconds something is said of a node."""
    return [
        second
        for second in range(begin, until + 1)
        if any(kind.startswith("node-") for kind, _ in cluster.tick(second))
    ]


@pytest.mark.parametrize("view", [node(deleting=True), node(taints=HELD)])
def test_what_a_node_needs_is_said_again_at_growing_distances(view: View) -> None:
    cluster = Cluster()
    cluster.see(view)
    assert spoken(cluster, 260) == [5, 10, 18, 30, 47, 73, 111, 168, 228]


def test_open_node_is_said_to_be_ready_again_until_it_is_initialized() -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=30))
    cluster.see(pod("a", node="n1"))
    cluster.see(node(taints=HELD))
    cluster.see(node(joined=False, taints=("startup",)), at(1))
    assert cluster.tick(5) == [("node-ready", "n1")]
    assert cluster.see(node(joined=False), at(6)) == [("node-ready", "n1")]
    assert cluster.tick(10) == [("node-ready", "n1")]
    assert cluster.lose(pod("a"), at(11)) == [("node-empty", "n1")]
    assert cluster.tick(18) == [("node-ready", "n1"), ("node-empty", "n1")]
    assert cluster.see(node(), at(19)) == []
    assert cluster.tick(60) == [("node-empty", "n1")]


def test_open_node_that_is_not_initialized_is_announced_at_the_start() -> None:
    cluster = Cluster(synced=False)
    cluster.see(pod("a", node="n1"))
    cluster.see(node(joined=False))
    assert cluster.sync() == [("node-ready", "n1")]


def test_deleted_or_released_node_is_not_announced_again() -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=30))
    for name in ("goes", "joins", "leaves"):
        cluster.see(node(name, taints=HELD))
    cluster.see(pod("a", node="joins"))
    assert len(cluster.tick(5)) == 3
    cluster.see(node("joins"), at(6))
    cluster.see(node("leaves", ours=False), at(6))
    cluster.lose(node("goes"), at(6))
    assert spoken(cluster, 50, 6) == []


def test_node_that_reuses_a_name_is_announced_though_the_deletion_is_seen_later() -> None:
    """A list that was read anew tells what is new before what is gone."""
    cluster = Cluster()
    cluster.see(provisioner(ttl=30))
    cluster.see(node())
    cluster.see(node(uid="another"), at(20))
    cluster.lose(node(), at(20))
    cluster.see(provisioner(uid="another", ttl=30), at(20))
    cluster.lose(provisioner(), at(20))
    assert cluster.tick(25) == [("node-empty", "n1")]
    assert cluster.see(node(uid="another", deleting=True), at(26)) == [("node-deleted", "n1")]
    cluster.see(node(), at(27))
    cluster.lose(node(), at(27))
    cluster.lose(node(uid="another"), at(27))
    assert spoken(cluster, 60, 28) == []


def test_empty_node_without_a_stamp_is_announced_again() -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=30))
    cluster.see(pod("a", node="n1"))
    cluster.see(node())
    cluster.lose(pod("a"), at(2))
    assert spoken(cluster, 12, 3) == [7, 12]


def test_stamped_empty_node_is_announced_again_when_its_time_is_over() -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=30))
    assert cluster.see(node()) == [("node-empty", "n1")]
    cluster.see(node(emptied=at(1).isoformat()), at(1))
    assert spoken(cluster, 50) == [36, 41, 49]


def test_node_in_use_again_is_announced_until_its_stamp_is_removed() -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=300))
    cluster.see(node(emptied=T0.isoformat()))
    assert cluster.see(pod("a", node="n1"), at(10)) == [("node-empty", "n1")]
    assert cluster.see(pod("b", node="n1"), at(11)) == []
    assert spoken(cluster, 19, 11) == [11, 16]
    cluster.see(node(), at(20))
    assert spoken(cluster, 100, 20) == []
    cluster.lose(pod("a"), at(100))
    assert cluster.lose(pod("b"), at(101)) == [("node-empty", "n1")]


@pytest.mark.parametrize(
    "owner",
    [
        None,
        provisioner(),
        provisioner(ttl=30, annotations=PAUSED),
        provisioner(ttl=30, annotations=SHADOW),
    ],
)
def test_node_that_may_stay_empty_is_announced_once(owner: View | None) -> None:
    cluster = Cluster()
    if owner is not None:
        cluster.see(owner)
    assert cluster.see(node()) == [("node-empty", "n1")]
    assert spoken(cluster, 200) == []
    cluster.see(provisioner(2, ttl=30))
    assert spoken(cluster, 201, 201) == [201]


@pytest.mark.parametrize(("ttl", "due"), [(-5, 6), (10**30, None)])
def test_absurd_times_to_live_do_no_harm(ttl: int, due: int | None) -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=ttl))
    cluster.see(node())
    cluster.see(node(emptied=at(1).isoformat()), at(1))
    assert spoken(cluster, 8) == ([due] if due is not None else [])


def test_invalid_time_on_a_node_is_ignored() -> None:
    cluster = Cluster()
    cluster.see(provisioner(ttl=30))
    cluster.see(node(emptied="9999-12-31T23:59:59Z"))
    cluster.see(node("strange", emptied="0001-01-01T00:00:00+14:00"))
    assert spoken(cluster, 20) == [5, 10, 18]

"""What a cluster's pods cost at least: Dovetail's nodes planned anew, the others staying."""

from functions.cli.watch.rebuilt import cluster_bound, rebuilt_snapshot
from shared.model.values import replace
from tests.builders import CATALOG, NOW, daemonset, instance_type, node, pod, pods, provisioner


def test_pods_on_dovetails_nodes_wait_anew_and_others_stay_where_they_are() -> None:
    other = node("n2", finalizers=())
    running = pod("a", node_name="n1")
    elsewhere = pod("b", node_name="n2")
    agent = pod("agent", node_name="n1", owner=None, labels={})
    snapshot = rebuilt_snapshot(
        [node("n1"), other],
        [running, elsewhere, agent, pod("c")],
        [provisioner()],
        [],
        CATALOG,
        NOW,
    )
    assert [found.name for found in snapshot.pending] == ["a", "agent", "c"]
    assert all(found.is_provisionable for found in snapshot.pending)
    assert [found.name for found in snapshot.bound] == ["b"]
    assert snapshot.nodes == (other,)


def test_pods_that_end_and_pods_that_nothing_is_launched_for_are_left_out() -> None:
    many = [
        pod("a", node_name="n1", deletion_at=NOW),
        pod("b", node_name="n1", phase="Succeeded"),
        pod("c", gated=True),
        pod("d", node_name="unknown"),
    ]
    snapshot = rebuilt_snapshot([node("n1")], many, [provisioner()], [daemonset()], CATALOG, NOW)
    assert not snapshot.pending
    assert not snapshot.bound
    assert len(snapshot.daemonsets) == 1


def test_daemonsets_that_nodes_are_not_chosen_for_do_not_raise_the_bound() -> None:
    huge = replace(daemonset(cpu=10**9), namespace="tenant")
    snapshot = rebuilt_snapshot([], [], [provisioner()], [huge, daemonset()], CATALOG, NOW)
    assert [found.namespace for found in snapshot.daemonsets] == ["kube-system"]


def test_pods_on_a_node_of_others_that_is_being_deleted_are_left_out() -> None:
    leaving = node("n2", finalizers=("karpenter.sh/termination",), labels={}, deletion_at=NOW)
    many = [pod("a", node_name="n1"), pod("b", node_name="n2")]
    snapshot = rebuilt_snapshot([node("n1"), leaving], many, [provisioner()], [], CATALOG, NOW)
    assert [found.name for found in (*snapshot.pending, *snapshot.bound)] == ["a"]
    assert not snapshot.nodes


def test_limits_and_claims_do_not_raise_the_bound() -> None:
    claiming = pod("a", node_name="n1", claims=("data",))
    owner = provisioner(limits=CATALOG[0].capacity)
    snapshot = rebuilt_snapshot([node("n1")], [claiming], [owner], [], CATALOG, NOW)
    assert snapshot.provisioners[0].limits is None
    assert snapshot.pending[0].scheduling.claims == ()


def test_pods_of_one_workload_still_share_what_they_ask_for() -> None:
    asked = pod().scheduling
    alike = pods(2, node_name="n1", scheduling=asked)
    first, second = rebuilt_snapshot([node("n1")], alike, [provisioner()], [], CATALOG, NOW).pending
    assert first.scheduling is second.scheduling


def test_the_bound_is_no_more_than_the_plan_and_counts_what_has_a_place() -> None:
    running = [*pods(6, node_name="n1"), pod("huge", cpu=10**9)]
    found = cluster_bound(
        rebuilt_snapshot([node("n1")], running, [provisioner()], [], CATALOG, NOW)
    )
    assert 0 < found.bound <= found.planned
    assert (found.pods, found.left_out) == (6, 1)


def test_types_that_no_image_boots_do_not_lower_the_bound() -> None:
    types = (instance_type("a1.large"), *CATALOG)
    snapshot = rebuilt_snapshot([], [pod()], [provisioner()], [], types, NOW)
    assert [site.without_image for site in snapshot.sites] == [{"a1.large"}]

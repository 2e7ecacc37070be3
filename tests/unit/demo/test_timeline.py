"""The timeline keeps the first moment of each state, and only what the APIs showed."""

from infra.local.demo.timeline import Timeline
from tests.unit.demo.readings import instance, node, pod

NOT_READY = "karpenter.sh/not-ready"


def test_a_pod_keeps_the_first_moment_of_each_state() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [pod("1", unschedulable=True)], [], [])
    timeline.observe(2.0, [pod("1", node="a")], [node("a", ready=False)], [instance("a")])
    timeline.observe(3.0, [pod("1", node="a", phase="Running")], [node("a")], [instance("a")])
    timeline.observe(4.0, [pod("1", node="a", phase="Running")], [node("a")], [instance("a")])
    seen = timeline.pods["1"]
    assert (seen.seen, seen.unschedulable, seen.bound, seen.running) == (1.0, 1.0, 2.0, 3.0)
    assert (seen.node, seen.requests["cpu"], seen.gone) == ("a", 1000, None)


def test_what_is_no_longer_listed_is_gone_from_that_moment() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [pod("1", node="a")], [node("a")], [instance("a")])
    timeline.observe(2.0, [], [], [])
    timeline.observe(3.0, [], [], [])
    assert timeline.pods["1"].gone == timeline.nodes["uid-a"].gone == 2.0
    assert timeline.instances == {"i-a": "terminated"}
    assert not timeline.living_pods({})
    assert not timeline.living_nodes()
    assert [our_node.name for our_node in timeline.our_nodes()] == ["a"]


def test_a_node_of_the_same_name_is_another_node() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [], [node("a")], [])
    timeline.observe(2.0, [], [node("a", metadata={"uid": "second"})], [])
    assert timeline.nodes["uid-a"].gone == 2.0
    assert timeline.nodes["second"].created == 2.0


def test_a_node_is_initialized_when_it_is_ready_and_its_taint_is_gone() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [], [node("a", ready=False, taints=[NOT_READY])], [])
    timeline.observe(2.0, [], [node("a", taints=[NOT_READY])], [])
    timeline.observe(3.0, [], [node("a", allocatable={"nvidia.com/gpu": "1"})], [])
    timeline.observe(4.0, [], [node("a", allocatable={"nvidia.com/gpu": "2"})], [])
    track = timeline.nodes["uid-a"]
    assert (track.created, track.ready, track.initialized) == (1.0, 2.0, 3.0)
    assert track.shown["nvidia.com/gpu"] == 3.0
    assert track.allocatable == {"nvidia.com/gpu": "2"}


def test_a_node_is_empty_since_the_last_pod_that_counts_left() -> None:
    timeline = Timeline()
    daemon = pod("d", node="a", owner="DaemonSet")
    timeline.observe(1.0, [pod("1", node="a"), daemon], [node("a")], [])
    timeline.observe(2.0, [pod("1", node="a", phase="Succeeded"), daemon], [node("a")], [])
    timeline.observe(3.0, [daemon], [node("a")], [])
    assert timeline.nodes["uid-a"].emptied == 2.0
    timeline.observe(4.0, [pod("2", node="a"), pod("3", node="a")], [node("a")], [])
    assert timeline.nodes["uid-a"].emptied is None
    assert timeline.nodes["uid-a"].most_pods == 2


def test_a_node_that_boots_is_not_called_empty() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [], [node("a", ready=False, taints=[NOT_READY])], [])
    assert timeline.nodes["uid-a"].emptied is None


def test_a_pod_bound_before_its_node_was_ready_is_early_and_may_be_refused() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [pod("1", node="a"), pod("2", node="a")], [node("a", ready=False)], [])
    refused = pod("2", node="a", phase="Failed")
    timeline.observe(2.0, [pod("1", node="a", phase="Running"), refused], [node("a")], [])
    timeline.observe(3.0, [pod("3", node="a", phase="Failed")], [node("a")], [])
    assert {pod_track.name: pod_track.refused for pod_track in timeline.bound_early()} == {
        timeline.pods["1"].name: False,
        timeline.pods["2"].name: True,
    }


def test_a_pod_that_failed_after_it_ran_was_not_refused() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [pod("1", node="a", phase="Running")], [node("a", ready=False)], [])
    timeline.observe(2.0, [pod("1", node="a", phase="Failed")], [node("a")], [])
    assert not timeline.pods["1"].refused


def test_cordon_and_deletion_are_seen() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [], [node("a", cordoned=True)], [])
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    timeline.observe(2.0, [], [node("a", cordoned=True, metadata=leaving)], [])
    track = timeline.nodes["uid-a"]
    assert (track.cordoned, track.deleting, track.gone) == (1.0, 2.0, None)


def test_a_change_of_a_foreign_node_is_noticed() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [], [node("static", ours=False)], [])
    assert not timeline.nodes["uid-static"].changed_by_others
    assert timeline.nodes["uid-static"].instance_id == ""
    held = {"finalizers": ["karpenter.sh/termination"]}
    timeline.observe(2.0, [], [node("static", ours=False, metadata=held)], [])
    assert timeline.nodes["uid-static"].changed_by_others


def test_a_pod_that_its_kubelet_refused_is_not_counted() -> None:
    timeline = Timeline()
    refused = pod("1") | {"status": {"phase": "Failed", "reason": "OutOfpods"}}
    timeline.observe(1.0, [refused, pod("2")], [], [])
    assert [living_pod.name for living_pod in timeline.living_pods({})] == ["web-2"]


def test_pods_are_selected_by_all_labels_and_sorted_by_name() -> None:
    timeline = Timeline()
    timeline.observe(1.0, [pod("2"), pod("1")], [], [])
    assert [living_pod.name for living_pod in timeline.living_pods({"app": "web"})] == [
        "web-1",
        "web-2",
    ]
    assert timeline.living_pods({"app": "web", "tier": "front"}) == []

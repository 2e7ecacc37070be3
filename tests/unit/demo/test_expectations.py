"""Each expectation holds where it should, and fails when what it names is falsified."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from infra.local.cluster_simulator.kubelet.kubelet import STOPPED
from infra.local.demo.expectations import CHECKS, Situation, check
from infra.local.demo.prices import price_of
from infra.local.demo.scenario import load_scenario, scenario_names
from infra.local.demo.timeline import NodeTrack, PodTrack, Timeline
from infra.local.harm import KILLED_AT_LAUNCH

TYPE = "node.kubernetes.io/instance-type"
BOUGHT = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
OWNER = "karpenter.sh/provisioner-name"


def node(name: str, *, ours: bool = True, **changes: Any) -> NodeTrack:
    labels = {TYPE: "m5.large", BOUGHT: "spot", OWNER: "default"} if ours else {TYPE: "m5.xlarge"}
    track = NodeTrack(
        name=name,
        labels=labels,
        provider_id=f"aws:///us-east-1a/i-{name}" if ours else f"static:///{name}",
        ours=ours,
        shown={"nvidia.com/gpu": 5.5},
        created=1.0,
        ready=5.0,
        initialized=6.0,
    )
    for key, value in changes.items():
        setattr(track, key, value)
    return track


def pod(name: str, on: str, **changes: Any) -> PodTrack:
    track = PodTrack(name=name, labels={"app": "web"}, seen=0.0, bound=7.0, running=8.0, node=on)
    for key, value in changes.items():
        setattr(track, key, value)
    return track


def situation(nodes: list[NodeTrack], pods: list[PodTrack], **instances: str) -> Situation:
    timeline = Timeline(
        pods={pod_track.name: pod_track for pod_track in pods},
        nodes={node_track.name: node_track for node_track in nodes},
        instances={f"i-{name}": state for name, state in instances.items()},
    )
    return Situation(timeline=timeline, known_nodes=frozenset({"static"}), speed=1.0)


def zoned() -> Situation:
    """A pod that was on one node of a zone and then, under the same name, on another."""
    labels = {ZONE: "x"}
    nodes = [node(name, labels={**node(name).labels, **labels}) for name in "ab"]
    at = situation(nodes, [pod("p1", "a", gone=9.0)], a="running", b="running")
    at.timeline.pods["later"] = pod("p1", "b")
    return at


def running() -> Situation:
    return situation(
        [node("a"), node("static", ours=False)],
        [pod("p1", "a"), pod("p2", "a"), pod("p3", "static", labels={"app": "old"})],
        a="running",
    )


def replaced() -> Situation:
    """Two nodes that had pods went one after the other, each for one that stands."""
    nodes = [
        node("a", cordoned=10.0, deleting=10.0, gone=14.0, most_pods=2),
        node("b", cordoned=20.0, deleting=20.0, gone=24.0, most_pods=2),
        node("c", created=4.0, initialized=9.0),
        node("d", created=12.0, initialized=19.0),
        node("e", created=22.0, initialized=29.0),
    ]
    for node_track in nodes:
        node_track.labels = {**node_track.labels, "topology.kubernetes.io/zone": "us-east-1a"}
    return replace(situation(nodes, []), bound_micros_per_hour=3 * price_of(nodes[0].labels))


def held() -> Situation:
    """A node is drained, and a budget blocks the drain."""
    said = {"dovetail.dev/drain-blocked": "since 2026-01-01T00:00:00+00:00 by web (a budget)"}
    at = situation([node("a", deleting=10.0, annotations=said)], [pod("p1", "a")], a="running")
    return replace(at, events=frozenset({("DrainBlocked", "a")}))


def ended() -> Situation:
    gone = node("a", emptied=10.0, cordoned=40.0, deleting=40.2, gone=44.0)
    return situation([gone, node("static", ours=False)], [], a="terminated")


def drained() -> Situation:
    """A pod has held a node, and left it."""
    gone = node("a", cordoned=10.0, deleting=10.0, gone=41.0, most_pods=1)
    return situation([gone], [pod("p1", "a", gone=39.0)], a="terminated")


def stopped(**changes: Any) -> Situation:
    """The kubelet of a node was stopped; its Event and its owner say that it is not Ready."""
    at = situation([node("a", annotations={STOPPED: "true"}, **changes)], [], a="running")
    return replace(at, events=frozenset({("NotReady", "a")}), health={"default": "False"})


_WEB = {"app": "web"}
DEFAULT = {"owner": "default", "at_least": 1}
WEB = {"selector": _WEB}


def handed() -> Situation:
    """Two machines that were launched as Karpenter does, and are Dovetail's."""
    timeline = Timeline(instances={"i-a": "running", "i-b": "running"})
    return Situation(
        timeline=timeline,
        known_nodes=frozenset(),
        speed=1.0,
        hands={"i-a": "dovetail", "i-b": "dovetail"},
        launched=("i-a", "i-b"),
    )


HOLDS: list[tuple[str, Callable[[], Situation], dict[str, Any], Callable[[Situation], None]]] = [
    ("pods_running", running, {**WEB, "count": 2}, lambda s: _pod(s, "p1", running=None)),
    ("pods_on_new_nodes", running, WEB, lambda s: _pod(s, "p1", node="static")),
    (
        "pods_on_known_nodes",
        running,
        {"selector": {"app": "old"}, "at_least": 1},
        lambda s: _pod(s, "p3", node="a"),
    ),
    (
        "pods_per_node",
        running,
        {**WEB, "at_most": 2},
        lambda s: _pod(s, "p3", labels=_WEB, node="a"),
    ),
    ("skew", running, {**WEB, "at_most": 2}, lambda s: _pod(s, "p3", labels=_WEB, node="a")),
    (
        "our_nodes",
        running,
        {"at_least": 1, "at_most": 1, "instance_types": ["m5.large"], "capacity_type": "spot"},
        lambda s: _node(s, "a", labels={TYPE: "m5.large", BOUGHT: "on-demand"}),
    ),
    (
        "instances_match_nodes",
        running,
        {},
        lambda s: s.timeline.instances.update({"i-x": "running"}),
    ),
    (
        "killed_at_launch",
        lambda: replace(running(), harm={(KILLED_AT_LAUNCH, "dovetail-provision"): 1}),
        {"function": "provision"},
        lambda s: cast("dict[tuple[str, str], int]", s.harm).clear(),
    ),
    (
        "in_hands_of",
        handed,
        {"owner": "dovetail"},
        lambda s: cast("dict[str, str]", s.hands).update({"i-b": "karpenter"}),
    ),
    (
        "instances_untouched",
        handed,
        {},
        lambda s: s.timeline.instances.update({"i-b": "shutting-down"}),
    ),
    ("everything_gone", ended, {}, lambda s: s.timeline.instances.update({"i-a": "running"})),
    ("instances_in_all", ended, {"count": 1}, lambda s: s.timeline.instances.update({"i-b": "x"})),
    ("cost_near_bound", replaced, {"percent": 5}, lambda s: _node(s, "a", gone=None)),
    ("replaced_first", replaced, {}, lambda s: _node(s, "a", deleting=3.0)),
    ("one_at_a_time", replaced, {"at_least": 2}, lambda s: _node(s, "a", gone=21.0)),
    ("launched_before_gone", replaced, {}, lambda s: _node(s, "e", created=25.0)),
    ("cordoned_before_gone", ended, {}, lambda s: _node(s, "a", cordoned=None)),
    ("removed_after_empty", ended, {"ttl_seconds": 30}, lambda s: _node(s, "a", deleting=20.0)),
    ("untouched", ended, {}, lambda s: _node(s, "static", changed_by_others=True)),
    (
        "bound_after_resource",
        running,
        {**WEB, "resource": "nvidia.com/gpu"},
        lambda s: _pod(s, "p1", bound=4.0),
    ),
    (
        "volumes_in_zone_of_their_pods",
        zoned,
        {**WEB, "zones": 1},
        lambda s: _node(s, "b", labels={**s.timeline.nodes["b"].labels, ZONE: "y"}),
    ),
    ("drain_blocked", held, {"by": "a budget"}, lambda s: _node(s, "a", annotations={})),
    (
        "event",
        held,
        {"reason": "DrainBlocked", "about": "a"},
        lambda s: object.__setattr__(s, "events", frozenset()),
    ),
    (
        "pods_on_kind",
        running,
        {**WEB, "kind": "Provisioner", "name": "default"},
        lambda s: _node(s, "a", labels={"karpenter.sh/nodepool": "default"}),
    ),
    (
        "removed_after_schedule",
        lambda: replace(ended(), closed_until=40.0),
        {**DEFAULT, "ttl_seconds": 20},
        lambda s: _node(s, "a", deleting=31.0),
    ),
    (
        "expired_in_time",
        replaced,
        {**DEFAULT, "life_seconds": 9},
        lambda s: _node(s, "c", initialized=15.0),
    ),
    (
        "held_for_its_time",
        drained,
        {**DEFAULT, **WEB, "hold_seconds": 30},
        lambda s: _pod(s, "p1", gone=20.0),
    ),
    (
        "ended_by_force",
        drained,
        {**DEFAULT, **WEB, "grace_seconds": 28},
        lambda s: _pod(s, "p1", gone=20.0),
    ),
    (
        "stopped_nodes_gone",
        lambda: stopped(gone=30.0),
        DEFAULT,
        lambda s: _node(s, "a", gone=None),
    ),
    (
        "stopped_nodes_told",
        stopped,
        DEFAULT,
        lambda s: cast("dict[str, str]", s.health).update({"default": "True"}),
    ),
    ("deleted_node_drained", ended, {}, lambda s: s.timeline.pods.update({"p": pod("p", "a")})),
]


def _pod(at: Situation, name: str, **changes: Any) -> None:
    for key, value in changes.items():
        setattr(at.timeline.pods[name], key, value)


def _node(at: Situation, name: str, **changes: Any) -> None:
    for key, value in changes.items():
        setattr(at.timeline.nodes[name], key, value)


@pytest.mark.parametrize(("name", "make", "argument", "falsify"), HOLDS, ids=[h[0] for h in HOLDS])
def test_an_expectation_holds_until_the_world_is_falsified(
    name: str,
    make: Callable[[], Situation],
    argument: dict[str, Any],
    falsify: Callable[[Situation], None],
) -> None:
    at = make()
    assert check(at, name, argument) == ""
    falsify(at)
    assert check(at, name, argument) != ""


def test_every_expectation_is_tested_here() -> None:
    assert {name for name, *_ in HOLDS} == set(CHECKS)


def test_machines_change_hands_only_when_there_are_any_and_nothing_else_moves() -> None:
    assert "no instance was launched" in check(running(), "in_hands_of", {"owner": "karpenter"})
    besides = handed()
    besides.timeline.instances["i-c"] = "running"
    assert check(besides, "instances_untouched", {}) == "i-c was launched besides"
    moved = handed()
    moved.timeline.pods["p"] = PodTrack(name="p", labels={}, gone=3.0)
    assert check(moved, "instances_untouched", {}) == "p was removed from its node"


def test_a_held_drain_needs_a_drain_and_an_event_about_it() -> None:
    argument = {"by": "a budget"}
    assert "being drained" in check(running(), "drain_blocked", argument)
    at = replace(held(), events=frozenset({("DrainBlocked", "b")}))
    assert "there is no Event" in check(at, "drain_blocked", argument)
    assert "reports since" in check(held(), "drain_blocked", {"by": "another budget"})


def test_a_node_whose_kubelet_was_stopped_must_stay_with_its_event_where_that_is_expected() -> None:
    for changes in ({"deleting": 9.0}, {"gone": 9.0}):
        assert "was removed" in check(stopped(**changes), "stopped_nodes_told", DEFAULT)
    at = replace(stopped(), events=frozenset())
    assert "no Event NotReady about a" in check(at, "stopped_nodes_told", DEFAULT)
    assert "were stopped, expected" in check(running(), "stopped_nodes_gone", DEFAULT)


def test_a_node_that_was_removed_too_late_is_noticed() -> None:
    at = ended()
    _node(at, "a", deleting=90.0)
    expected = {"ttl_seconds": 30, "slack_seconds": 10}
    assert "waited" in check(at, "removed_after_empty", expected)
    busy = replace(at, slowness=9.0)
    assert check(busy, "removed_after_empty", expected) == ""


def test_at_any_speed_a_node_is_empty_for_as_long_as_kube_scheduler_may_need() -> None:
    at = replace(ended(), speed=10.0)
    _node(at, "a", deleting=25.0)
    assert "ttl is 20.0 s" in check(at, "removed_after_empty", {"ttl_seconds": 30})


def test_why_a_node_ended_otherwise_than_its_owner_says_is_told() -> None:
    """What did not happen, or would have happened anyway, shows nothing."""
    ttl = {**DEFAULT, "ttl_seconds": 20}
    assert "no step has applied" in check(ended(), "removed_after_schedule", ttl)
    for closed, why in ((25.0, "nothing held it"), (60.0, "before the schedule was over")):
        at = replace(ended(), closed_until=closed)
        assert why in check(at, "removed_after_schedule", ttl)
    at = replace(ended(), closed_until=50.0)
    assert "was not yet due" in check(at, "removed_after_schedule", {**ttl, "ttl_seconds": 35})
    life = {**DEFAULT, "life_seconds": 20, "slack_seconds": 1}
    assert "it may live for 20 s" in check(replaced(), "expired_in_time", life)
    span = {**DEFAULT, **WEB, "hold_seconds": 10, "slack_seconds": 1}
    assert "left after 31.0 s" in check(drained(), "held_for_its_time", span)
    over = {**span, "hold_seconds": 1, "slack_seconds": 60}
    assert "held nothing any more" in check(drained(), "held_for_its_time", over)
    grace = {**DEFAULT, **WEB, "grace_seconds": 10, "slack_seconds": 1}
    assert "was drained for 31.0 s" in check(drained(), "ended_by_force", grace)
    assert "without a pod" in check(ended(), "ended_by_force", grace)
    for name, argument in (("expired_in_time", life), ("ended_by_force", grace)):
        assert "expected 1" in check(running(), name, argument)


def test_pod_bound_to_a_node_that_never_shows_its_gpu_is_noticed() -> None:
    at = running()
    _node(at, "a", shown={})
    assert "was bound before a showed nvidia.com/gpu" in check(
        at, "bound_after_resource", {**WEB, "resource": "nvidia.com/gpu"}
    )


def test_what_has_not_happened_yet_does_not_hold() -> None:
    for name in ("replaced_first", "launched_before_gone"):
        assert check(running(), name, {}) != ""
    assert "expected 1" in check(running(), "one_at_a_time", {"at_least": 1})
    assert "no step has asked" in check(running(), "cost_near_bound", {"percent": 5})


def test_an_unknown_expectation_never_holds() -> None:
    assert "is not known" in check(running(), "pods_flying", {})


@pytest.mark.parametrize("name", scenario_names())
def test_scenarios_use_known_expectations_only(name: str) -> None:
    scenario = load_scenario(name)
    used = {expectation for step in scenario.steps for expectation in step.expects}
    assert used <= set(CHECKS)
    assert used
    assert (scenario.folder / "README.md").exists()


@pytest.mark.parametrize("name", scenario_names())
def test_numbers_in_expectations_bind(name: str) -> None:
    """An expectation with a number fails for some other number: it is not idle text."""
    for step in load_scenario(name).steps:
        for expectation, argument in step.expects.items():
            for key in ("count", "at_least"):
                if key in (argument or {}):
                    wrong = copy.deepcopy(argument)
                    wrong[key] = 10_000
                    assert check(running(), expectation, wrong) != ""

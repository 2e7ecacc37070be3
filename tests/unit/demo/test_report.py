"""The pieces of the summary, and how it reads."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.panel import Panel

from infra.local.demo.prices import prices
from infra.local.demo.report import STAGES, Moment, _in_order, _judged, _node
from infra.local.demo.screen import fill_of, node_table, print_summary, say, state_of
from infra.local.demo.timeline import NodeTrack, PodTrack, Timeline

ZONE = "topology.kubernetes.io/zone"
TYPE = "node.kubernetes.io/instance-type"
BOUGHT = "karpenter.sh/capacity-type"


STEP = {
    "title": "scale it [up]",
    "seconds": 9.5,
    "failures": [],
    "nodes": 4,
    "dollars_per_hour": 0.271,
}


def track(**changes: Any) -> NodeTrack:
    labels = {TYPE: "m5.large", ZONE: "us-east-1a", BOUGHT: "on-demand"}
    found = NodeTrack(name="a", labels=labels, provider_id="aws:///us-east-1a/i-1", ours=True)
    for key, value in changes.items():
        setattr(found, key, value)
    return found


def report(**changes: Any) -> dict[str, Any]:
    return {
        "scenario": "inflate",
        "instance_types": {"m5.2xlarge": 1, "m5.large": 3},
        "capacity_types": {"spot": 4},
        "pods": 10,
        "nodes": [{"gone": True}, {"gone": False}],
        "dollars_per_hour_bought": 0.271,
        "plans": 1,
        "changes": 2,
        "plan_dollars_per_hour": 0.271,
        "lower_bound_dollars_per_hour": 0.2,
        "gap_percent": 35.5,
        "seconds_by_stage": dict.fromkeys(STAGES, 1.5) | {"event": None},
        "prices": "prices of 2025-03-02",
        "survived": [],
        "passed": True,
        "steps": [STEP],
        **changes,
    }


@pytest.mark.parametrize(("columns", "bars"), [(80, 0), (120, 1)])
def test_nodes_keep_name_type_and_state_on_a_narrow_terminal(columns: int, bars: int) -> None:
    labels = {TYPE: "m5ad.24xlarge", BOUGHT: "on-demand"}
    node = track(name="ip-10-0-132-14.ec2.internal", labels=labels, created=1.0)
    console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)
    table = node_table([node] * 19, {}, 48.0, columns)
    console.print(Panel(table))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for whole in ("ip-10-0-132-14 ", "m5ad.24xlarge ", "on-demand", "launched, 47 s", "0%"):
        assert whole in shown
    assert len(table.columns) == 7 + bars
    assert "… and 1 more" in shown


def printed(document: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_summary(console, document)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_wall_time_becomes_the_observers_time() -> None:
    wall = datetime(2026, 1, 1, tzinfo=UTC)
    moment = Moment(wall=wall, observed=4.0)
    assert moment.seconds_of(wall + timedelta(seconds=2.5)) == 6.5


def test_what_went_wrong_is_listed_and_only_a_play_that_passed_survived_it() -> None:
    lines = ["EC2 had no capacity for m5.2xlarge, asked 3 times"]
    assert printed(report(survived=lines)).endswith(f"Survived:\n  {lines[0]}\n")
    assert printed(report(survived=lines, passed=False)).endswith(f"Went wrong:\n  {lines[0]}\n")
    assert "Survived" not in printed(report())


def test_no_stage_comes_before_the_one_it_follows() -> None:
    moments = {"seen": 0.0, "event": -0.2, "batch": 1.34, "plan": 0.9, "launch": None, "node": 2.0}
    assert _in_order(moments) == {
        "seen": 0.0,
        "event": 0.0,
        "batch": 1.3,
        "plan": 1.3,
        "launch": None,
        "node": 2.0,
    }


def test_a_plan_that_died_with_its_function_is_not_held_against_the_bound() -> None:
    plans = [{"id": name, "plan": {"cost_micros_per_hour": 10}} for name in ("died", "again")]
    reports = [
        {"plans": ["again"], "lower_bound_micros_per_hour": 9},
        {"plans": ["fits-nothing"], "lower_bound_micros_per_hour": 0},
    ]
    assert _judged(plans, reports) == (1, 10, 9)


def test_a_node_has_the_price_of_its_offering() -> None:
    timeline = Timeline(instance_types={"i-1": "m5.large"})
    known = prices()
    row = _node(track(created=1.0, initialized=3.5, gone=9.0, most_pods=3), timeline)
    assert row["initialized_after"] == 2.5
    assert row["price_micros_per_hour"] == known["m5.large", "us-east-1a", "on-demand"] > 0
    assert (row["instance_id"], row["instance_type"], row["most_pods"]) == ("i-1", "m5.large", 3)
    assert row["gone"]


def test_a_node_of_an_unknown_offering_has_no_price() -> None:
    row = _node(track(labels={}), Timeline())
    assert (row["price_micros_per_hour"], row["gone"]) == (0, False)


def test_the_state_of_a_node_is_the_furthest_it_has_come() -> None:
    assert state_of(track(created=2.0), 9.4) == "launched, 7 s"
    assert state_of(track(ready=1.0), 9.0) == "registered"
    assert state_of(track(ready=1.0, initialized=2.0), 9.0) == "initialized"
    assert state_of(track(initialized=2.0, cordoned=3.0), 9.0) == "cordoned"
    assert state_of(track(cordoned=3.0, deleting=4.0), 9.0) == "draining"


def test_the_summary_shows_pods_nodes_types_money_bound_and_stages() -> None:
    text = printed(report())
    for piece in (
        "inflate",
        "1 × m5.2xlarge, 3 × m5.large",
        "4 × spot",
        "$0.2710/h",
        "1 for waiting pods, $0.2710/h; no plan can cost less than $0.2000/h: at most 35.5 % above",
        "seen 1.5 → event ? → batch 1.5",
        "prices of 2025-03-02",
        "✓ scale it [up] (9.5 s): 4 nodes, $0.2710/h",
    ):
        assert piece in text


def test_a_failed_step_says_why() -> None:
    failures = [{"expectation": "pods_running", "why": "9 of 10 pods run, expected 10"}]
    text = printed(report(steps=[{**STEP, "seconds": 75.0, "failures": failures}]))
    assert "✗ scale it [up] (75.0 s)" in text
    assert "pods_running: 9 of 10 pods run" in text


def test_burst_that_launched_nothing_is_reported() -> None:
    text = printed(report(instance_types={}, capacity_types={}, nodes=[]))
    assert text.count("none") == 2


def test_summary_says_what_stood_before_and_after() -> None:
    last = {**STEP, "nodes": 1, "dollars_per_hour": 0.0349}
    text = printed(report(steps=[STEP, last]))
    assert "4 nodes, $0.2710/h → 1 node, $0.0349/h: $0.2361/h below the peak" in text
    assert "replacements included" in text
    nothing = {**STEP, "nodes": 0, "dollars_per_hour": 0.0}
    assert "below the peak" not in printed(report(steps=[STEP, nothing]))


def test_lines_are_whole_where_there_is_no_terminal() -> None:
    console = Console(file=io.StringIO(), width=20)
    say(console, "10 pods [of one cpu] wait for capacity")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "• 10 pods [of one cpu] wait for capacity\n"


def test_fill_is_the_larger_share_of_cpu_and_memory_that_is_requested() -> None:
    node = track(allocatable={"cpu": "2", "memory": "4Gi"})
    pod = PodTrack(name="p", labels={}, requests={"cpu": 500, "memory": 2 << 30})
    assert fill_of(node, [pod]) == 0.5
    assert fill_of(node, [pod, replace(pod, requests={"cpu": 1000})]) == 0.75
    assert fill_of(track(), [pod]) == 0.0

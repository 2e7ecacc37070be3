"""Findings are cut down, told with their seed, and added up."""

import pytest

from shared.model.plan import Plan, Unschedulable
from shared.model.values import replace
from tests.scheduler_oracle import opinion
from tests.scheduler_oracle.by_hand import bare_case, simple_plan
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.generate import draw
from tests.scheduler_oracle.clusters.seeded_random import FEATURES
from tests.scheduler_oracle.opinion import judge
from tests.scheduler_oracle.running import describe, shows, summary
from tests.scheduler_oracle.shrinking import shrink


def silent(plan: Plan) -> Plan:
    gone = (Unschedulable(pod=plan.order[0], reasons=()),)
    return replace(plan, nodes=plan.nodes[1:], order=plan.order[1:], unschedulable=gone)


def test_a_failing_case_is_cut_down_to_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = "planned: node(s) didn't match Pod's node affinity/selector"
    case = bare_case(
        {}, {"nodeSelector": {keys.ARCH: "arm64", keys.OS: "linux"}, "priority": 3}, {}
    )
    monkeypatch.setattr(opinion, "decide", lambda snapshot, _: simple_plan(snapshot))
    smaller = shrink(case, lambda entry: shows(entry, kind))
    assert [pod["metadata"]["name"] for pod in smaller["pods"]] == ["p1"]
    assert smaller["pods"][0]["spec"]["nodeSelector"] == {keys.ARCH: "arm64"}
    assert "priority" not in smaller["pods"][0]["spec"]
    assert not shows({"pods": []}, kind)


def test_finding_is_reported_with_its_seed_and_the_command_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opinion, "decide", lambda snapshot, _: silent(simple_plan(snapshot)))
    case = draw(3, frozenset())
    finding = next(finding for finding in judge(case).findings if finding.kind == "no reason")
    text = describe(3, finding, frozenset())
    assert text.splitlines()[0] == "seed 3: no reason"
    assert "-m tests.scheduler_oracle --seed 3" in text
    assert "\n  pods:\n" in text


def test_a_seed_always_gives_the_same_case() -> None:
    everything = frozenset(FEATURES)
    assert draw(7, everything) == draw(7, everything)
    assert draw(7, everything) != draw(8, everything)


def test_every_feature_comes_up() -> None:
    everything = frozenset(FEATURES)
    seen = {feature for seed in range(120) for feature in draw(seed, everything)["features"]}
    assert seen == everything


def test_the_summary_says_the_rates() -> None:
    counts = {
        "clusters": 4,
        "pairs": 9,
        "tried": 8,
        "missed": 2,
        "with_placements": 3,
        "by_itself": 3,
    }
    lines = summary(counts, 17)
    assert lines[0] == (
        "second opinion: 4 random clusters from seed 17, 9 placements asked about: all accepted"
    )
    assert "2 (25.0 %) had a place" in lines[1]
    assert "3 (100.0 %) of the clusters" in lines[2]

"""Scenario files are read strictly, and only ttls are scaled."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infra.local.demo.cluster_client import Object, path_of, read_documents
from infra.local.demo.problem import Problem, last_words
from infra.local.demo.scenario import (
    load_scenario,
    manifests,
    scaled,
    scenario_names,
    whole_minute_after,
    within_schedule,
)


def write(folder: Path, text: str) -> Path:
    (folder / "mine" / "expect").mkdir(parents=True)
    (folder / "mine" / "expect" / "scenario.yaml").write_text(text, encoding="utf-8")
    return folder


def test_a_scenario_is_read_from_a_folder_of_ones_own(tmp_path: Path) -> None:
    write(tmp_path, "title: Mine\nsteps:\n- title: one\n  expect: {untouched: {}}\n")
    scenario = load_scenario("mine", tmp_path)
    assert (scenario.name, scenario.title) == ("mine", "Mine")
    (step,) = scenario.steps
    assert (step.title, step.within_seconds) == ("one", 60.0)
    assert (dict(step.does), dict(step.expects)) == ({}, {"untouched": {}})


def test_an_unknown_scenario_names_those_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path, "title: Mine\nsteps: []\n")
    with pytest.raises(Problem, match=r"'other' does not exist: use one of mine$"):
        load_scenario("other", tmp_path)
    with pytest.raises(Problem, match="holds no scenario: name a folder"):
        load_scenario("other", tmp_path / "mine")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "title: [x",
        "- a list",
        "title: x\n",
        "title: x\nsteps: [text]\n",
        "title: x\nsteps:\n- expect: {}\n",
        "title: x\nsteps:\n- title: y\n  within_seconds: soon\n",
        "title: x\nsteps:\n- title: y\n  do: apply\n",
        "title: x\nsteps: []\n---\ntitle: y\nsteps: []\n",
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    with pytest.raises(Problem, match=r"mine/expect/scenario\.yaml") as caught:
        load_scenario("mine", tmp_path)
    assert "\n" not in str(caught.value)


def test_ttls_end_sooner_at_a_higher_speed_and_nothing_else_changes() -> None:
    spec = {"ttlSecondsAfterEmpty": 30, "ttlSecondsUntilExpired": 3, "weight": 10}
    document: Object = {"kind": "Provisioner", "metadata": {"name": "default"}, "spec": spec}
    fast = scaled(document, 10)
    assert fast["spec"] == {"ttlSecondsAfterEmpty": 3, "ttlSecondsUntilExpired": 1, "weight": 10}
    assert document["spec"]["ttlSecondsAfterEmpty"] == 30
    assert scaled(document, 1) is document
    deployment = {"kind": "Deployment", "spec": {"ttlSecondsAfterEmpty": 30}}
    assert scaled(deployment, 10) == deployment


def test_the_spans_of_a_node_pool_end_sooner_too() -> None:
    spec: Object = {
        "disruption": {"consolidateAfter": "1m30s", "budgets": [{"duration": "8h", "nodes": "0"}]},
        "template": {"spec": {"expireAfter": "Never", "terminationGracePeriod": "4s"}},
    }
    document: Object = {"kind": "NodePool", "spec": spec}
    fast = scaled(document, 10)["spec"]
    assert fast["disruption"]["consolidateAfter"] == "9s"
    assert fast["template"]["spec"] == {"expireAfter": "Never", "terminationGracePeriod": "1s"}
    # The schedule of a budget knows whole minutes.
    assert fast["disruption"]["budgets"] == [{"duration": "8h", "nodes": "0"}]
    assert spec["disruption"]["consolidateAfter"] == "1m30s"
    sparse: Object = {"kind": "NodePool", "spec": {"disruption": {"consolidateAfter": "0s"}}}
    assert scaled(sparse, 10) == sparse


@pytest.mark.parametrize(("written", "played"), [("2m", "12s"), ("true", "true")])
def test_pods_hold_their_node_for_a_shorter_time(written: str, played: str) -> None:
    key = "karpenter.sh/do-not-disrupt"
    document: Object = {
        "kind": "Deployment",
        "spec": {"template": {"metadata": {"annotations": {key: written}}}},
    }
    fast = scaled(document, 10)
    assert fast["spec"]["template"]["metadata"]["annotations"] == {key: played}


def test_schedules_are_active_from_now_until_a_whole_minute() -> None:
    budgets = [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}, {"nodes": "50%"}]
    document: Object = {"kind": "NodePool", "spec": {"disruption": {"budgets": budgets}}}
    now = datetime(2026, 3, 1, 23, 58, 59, 5, tzinfo=UTC)
    ends = whole_minute_after(now + timedelta(seconds=75))
    assert ends == datetime(2026, 3, 2, 0, 1, tzinfo=UTC)
    assert whole_minute_after(ends) == ends
    played = within_schedule(document, now, ends)["spec"]["disruption"]["budgets"]
    assert played == [{"nodes": "0", "schedule": "58 23 * * *", "duration": "3m"}, {"nodes": "50%"}]
    assert budgets[0]["duration"] == "8h"
    plain: Object = {"kind": "EC2NodeClass", "spec": {}}
    assert within_schedule(plain, now, ends) == plain


@pytest.mark.parametrize("name", scenario_names())
def test_every_manifest_a_step_names_is_of_a_kind_the_demo_can_apply(name: str) -> None:
    scenario = load_scenario(name)
    files = [
        file
        for step in scenario.steps
        for verb in ("apply", "delete", "stand")
        for file in step.does.get(verb, ())
    ]
    files += [
        file
        for step in scenario.steps
        for file in step.does.get("apply_within_schedule", {}).get("files", ())
    ]
    documents = manifests(scenario, files, 5)
    assert len(documents) >= len(files) > 0
    assert all(path_of(document) for document in documents)


def test_paths_follow_kind_and_namespace() -> None:
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    assert path_of(web) == "apis/apps/v1/namespaces/default/deployments/web"
    web["metadata"] = {"name": "web", "namespace": "shop"}
    assert path_of(web) == "apis/apps/v1/namespaces/shop/deployments/web"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    assert path_of(node) == "api/v1/nodes/a"
    with pytest.raises(Problem, match="kind Widget of v1 is not known here: use one of"):
        path_of({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a"}})


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"absent\.yaml: cannot be read"):
        read_documents([tmp_path / "absent.yaml"])


def test_the_last_words_of_a_log_are_its_last_line_with_text(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first\nOSError: address in use\n\n", encoding="utf-8")
    assert last_words(log) == "OSError: address in use"
    log.write_text("", encoding="utf-8")
    assert last_words(log) == "it said nothing"
    assert "No such file" in last_words(tmp_path / "absent.log")

"""`dovetail doctor` and `dovetail why` on the whole embedded world."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from functions.cli.main import main
from infra.local.demo.children import ROOT
from infra.local.demo.cluster_client import read_documents
from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import load_scenario
from infra.local.demo.world import CLUSTER, World, WorldOptions
from tests.e2e.conftest import TestCluster
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]

_SPEED = 10
_FOREIGN = {"pk": {"S": f"cluster#{CLUSTER}"}, "sk": {"S": "slot#of#another#tool"}}


@pytest.fixture
def world(cluster: TestCluster, tmp_path: Path) -> Iterator[tuple[World, Mapping[str, str]]]:
    """A world with running nodes, whose sweep is switched off; and the functions' variables."""
    options = WorldOptions(
        speed=_SPEED,
        keep_logs=tmp_path,
        kubeconfig=cluster.kubeconfig,
        bare=cluster.bare,
    )
    say = Console(file=io.StringIO()).print
    with World(options, say) as running:
        observer = Observer(running.cluster, running.client("ec2"))
        observer.start()
        scenario = load_scenario("inflate")
        first = replace(scenario, steps=scenario.steps[:1])
        try:
            (result,) = Player(running.cluster, observer, _SPEED, say).play(first)
        finally:
            observer.stop()
        assert result.failures == ()
        events = running.client("events")
        for rule in events.list_rules()["Rules"]:
            if rule.get("ScheduleExpression"):
                events.disable_rule(Name=rule["Name"])
        found = running.client("lambda").get_function_configuration(
            FunctionName="dovetail-provision"
        )
        yield running, found["Environment"]["Variables"]


def doctor(
    world: tuple[World, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: str,
) -> Mapping[str, Any]:
    """Run the command as people do, with keys and nothing else; return what it prints."""
    running, variables = world
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    for name, value in running.aws_environment.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    code = main(["doctor", "--output", "json", *arguments])
    (report,) = json.loads(capsys.readouterr().out)
    assert code == (1 if report["findings"] else 0)
    assert report["cluster"] == CLUSTER
    found: Mapping[str, Any] = report
    return found


def why(
    world: tuple[World, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    subject: str,
) -> Mapping[str, Any]:
    """Ask about a pod or node as people do, with keys and nothing else; return what is printed."""
    running, variables = world
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    for name, value in running.aws_environment.items():
        monkeypatch.setenv(name, value)
    capsys.readouterr()
    code = main(["why", subject, "--output", "json"])
    told = capsys.readouterr()
    assert code == 0, told.err
    found: Mapping[str, Any] = json.loads(told.out)
    assert found["subject"] == subject
    return found


def kinds(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(finding["kind"] for finding in findings if finding["kind"] != "silent-forwarder")


def machines(running: World) -> dict[str, str]:
    return {
        instance["InstanceId"]: instance["State"]["Name"]
        for page in running.client("ec2").describe_instances()["Reservations"]
        for instance in page["Instances"]
        if instance["State"]["Name"] in ("pending", "running")
    }


def lose_the_ledger(running: World, table: str) -> None:
    dynamo = running.client("dynamodb")
    for row in dynamo.scan(TableName=table)["Items"]:
        dynamo.delete_item(TableName=table, Key={"pk": row["pk"], "sk": row["sk"]})


def rows(running: World, table: str, prefix: str) -> list[dict[str, Any]]:
    found = running.client("dynamodb").scan(TableName=table)["Items"]
    return [entry for entry in found if entry["pk"]["S"].startswith(prefix)]


def test_why_shows_for_nodes_and_pods_what_happened_and_what_they_wait_for(
    world: tuple[World, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    running, _ = world
    pod = running.cluster.items("/api/v1/namespaces/default/pods")[0]
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    # Pods that were bound early run before their node is initialized.
    of_node = until(
        lambda: (
            (told := why(world, monkeypatch, capsys, f"node/{node}"))["state"] != "starts" and told
        )
    )
    assert of_node["state"].startswith("takes pods, and has ")
    assert of_node["waits_for"] == []
    assert "was launched" in of_node["history"][0]
    reasons = [event["reason"] for event in of_node["events"] if event["source"] == "dovetail"]
    assert {"Launched", "Registered", "Initialized"} <= set(reasons)

    of_pod = why(world, monkeypatch, capsys, f"pod/default/{name}")
    assert of_pod["state"] == f"is Running on node {node}"
    assert of_pod["history"][0].startswith(f"decision decisions/{CLUSTER}/")
    assert any("goes to new node" in line for line in of_pod["history"])
    assert "Nominated" in {event["reason"] for event in of_pod["events"]}

    too_big = dict(read_documents([ROOT / "docs" / "walk-through" / "too-big.yaml"])[0])
    too_big["metadata"] = {**too_big["metadata"], "namespace": "default"}
    running.cluster.apply(too_big)
    until(
        lambda: (
            why(world, monkeypatch, capsys, "pod/default/too-big")["waits_for"]
            == ["a change: it fits no node that could be launched"]
        )
    )
    running.cluster.delete(too_big)


def test_a_lost_ledger_is_written_anew_from_tags_and_nodes(
    world: tuple[World, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    running, variables = world
    table = variables["DOVETAIL_TABLE"]
    before = machines(running)
    assert before
    assert kinds(doctor(world, monkeypatch, capsys)["findings"]) == []

    lose_the_ledger(running, table)
    # What is not ours is left alone.
    running.client("dynamodb").put_item(TableName=table, Item={**_FOREIGN, "what": {"S": "?"}})
    lost = ["instance-not-in-ledger"] * len(before)
    assert kinds(doctor(world, monkeypatch, capsys)["findings"]) == lost
    assert kinds(doctor(world, monkeypatch, capsys, "--repair")["repaired"]) == lost
    assert kinds(doctor(world, monkeypatch, capsys)["findings"]) == []

    written = rows(running, table, "instance#")
    assert {entry["pk"]["S"].removeprefix("instance#") for entry in written} == before.keys()
    assert running.client("dynamodb").get_item(TableName=table, Key=_FOREIGN)["Item"]
    assert machines(running) == before


def test_node_with_the_finalizer_and_no_machine_is_reported(
    world: tuple[World, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    running, _ = world
    before = machines(running)
    left_over = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "left-over",
            "labels": {"karpenter.sh/provisioner-name": "default"},
            "annotations": {"dovetail.dev/slot": "plan/0/0"},
            "finalizers": ["karpenter.sh/termination"],
        },
        # Without a provider id the cloud controller leaves it alone.
        "spec": {},
    }
    running.cluster.apply(left_over)
    # A new one is given a minute and a half: its machine may not be shown yet.
    assert kinds(doctor(world, monkeypatch, capsys)["findings"]) == []
    found = until(lambda: kinds(doctor(world, monkeypatch, capsys)["findings"]), seconds=200)
    assert found == ["node-without-instance"]
    assert machines(running) == before


def test_an_unknown_machine_with_dovetail_tags_is_reported_and_kept(
    world: tuple[World, Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    running, _ = world
    ec2 = running.client("ec2")
    image = ec2.describe_instances()["Reservations"][0]["Instances"][0]["ImageId"]
    tags = [
        {"Key": "dovetail.dev/cluster", "Value": CLUSTER},
        # Of no Provisioner that is there: none whose ttl would end it.
        {"Key": "karpenter.sh/provisioner-name", "Value": "gone"},
        {"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"},
    ]
    stranger = ec2.run_instances(
        ImageId=image,
        InstanceType="m5.large",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )["Instances"][0]["InstanceId"]
    told = doctor(world, monkeypatch, capsys)["findings"]
    assert stranger in {
        entry["subject"] for entry in told if entry["kind"] == "instance-not-in-ledger"
    }
    doctor(world, monkeypatch, capsys, "--repair")
    assert machines(running)[stranger] in ("pending", "running")
    assert stranger not in {
        finding["subject"] for finding in doctor(world, monkeypatch, capsys)["findings"]
    }

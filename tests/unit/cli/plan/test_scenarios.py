"""`dovetail plan --at`, `--no-spot` and others: what it would cost if."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.running import (
    catalogue_of,
    container,
    cron_job,
    deployment,
    node,
    pod,
    run,
    written,
)

Columns = Callable[..., list[dict[str, Any]]]

POOL = {
    "apiVersion": "karpenter.sh/v1alpha5",
    "kind": "Provisioner",
    "metadata": {"name": "default"},
    "spec": {
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}
        ]
    },
}
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {"maxReplicas": 9, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
}
SCALED_OBJECT = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "web"},
    "spec": {"maxReplicaCount": 7, "scaleTargetRef": {"name": "web"}},
}


@pytest.fixture
def columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Columns:
    """Plans three pods of `web` and other documents; returns the columns."""

    def plan(*options: str, also: tuple[Mapping[str, object], ...] = ()) -> list[dict[str, Any]]:
        name = written(tmp_path / "a.yaml", POOL, deployment(), *also)
        assert run("plan", "-f", name, "--output", "json", *options) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["scenarios"]
        return found

    return plan


@pytest.mark.parametrize(
    ("autoscaler", "moment", "pods"),
    [
        (HPA, "hpa-max", 9),
        (HPA, "hpa-min", 1),
        (SCALED_OBJECT, "hpa-max", 7),
        (SCALED_OBJECT, "hpa-min", 0),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_workloads_have_the_replicas_of_their_autoscalers(
    autoscaler: dict[str, object], moment: str, pods: int, columns: Columns
) -> None:
    today, scaled = columns("--at", moment, also=(autoscaler,))
    assert (today["name"], today["placed"]) == ("today", 3)
    assert scaled["placed"] == pods


def test_each_replicas_option_is_a_column_of_its_own(columns: Columns) -> None:
    also = (deployment("api", 2), {**deployment("db"), "kind": "StatefulSet"})
    options = ("--replicas", "default/web=5,default/api=1", "--replicas", "default/db=0")
    found = columns(*options, also=also)
    assert [(one["name"], one["placed"]) for one in found] == [
        ("today", 8),
        ("default/web=5,default/api=1", 9),
        ("default/db=0", 5),
    ]


@pytest.mark.parametrize(
    ("schedules", "peak", "pods"),
    [
        (("0 3 * * *", "30 3 * * 1", "0 9 * * *"), "CronJobs of Monday 03:00 UTC", 4),
        (("0 3 * * *", "0 4 24 12 *", "0 5 24 12 *"), "03:00 UTC", 1),
    ],
)
def test_the_busiest_hour_has_the_cron_jobs_that_start_in_it(
    schedules: tuple[str, str, str], peak: str, pods: int, columns: Columns
) -> None:
    also = [cron_job(f"j{n}", when, pods=n) for n, when in zip((1, 3, 2), schedules, strict=True)]
    today, busiest = columns("--at", "cron-peak", also=tuple(also))
    assert today["placed"] == 3 + 6
    assert peak in busiest["name"]
    assert busiest["placed"] == 3 + pods


def test_the_hours_of_cron_jobs_are_those_of_their_time_zone(columns: Columns) -> None:
    tokyo = cron_job("a", "0 3 * * *", pods=2, timeZone="Asia/Tokyo")
    suspended = cron_job("b", "0 1 * * *", pods=9, suspend=True)
    _, busiest = columns("--at", "cron-peak", also=(tokyo, suspended))
    assert busiest["name"].endswith("18:00 UTC")
    assert busiest["placed"] == 5


def test_cron_jobs_that_never_run_are_not_planned(columns: Columns) -> None:
    never = cron_job("a", "0 0 * * *", pods=2, suspend=True)
    _, busiest = columns("--at", "cron-peak", also=(never,))
    assert (busiest["name"], busiest["placed"]) == ("no CronJob", 3)


def test_without_spot_nodes_are_on_demand(columns: Columns) -> None:
    today, dearer = columns("--no-spot")
    assert dearer["cost_micros_per_hour"] > today["cost_micros_per_hour"]
    assert dearer["placed"] == 3


def test_pods_of_a_lost_zone_need_nodes_elsewhere(columns: Columns) -> None:
    zone = {"topology.kubernetes.io/zone": "us-east-1a"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
    owned = {"name": "owned", "ownerReferences": [{**owner, "controller": True}]}
    there = (
        node("n1", labels=zone),
        {**pod(nodeName="n1"), "metadata": owned},
        pod("bare", nodeName="n1"),
    )
    today, lost = columns("--without-zone", "us-east-1a", also=there)
    assert (today["nodes"], today["placed"]) == (0, 3)
    assert lost["nodes"] > 0
    assert lost["placed"] == 4


def test_other_prices_are_a_column(tmp_path: Path, columns: Columns) -> None:
    other = catalogue_of(tmp_path / "m5.json", "m5")
    today, dearer = columns("--other-catalog", other)
    assert dearer["name"] == other
    assert dearer["cost_micros_per_hour"] > today["cost_micros_per_hour"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--at", "hpa-max"), "--at hpa-max: the manifests have no HorizontalPodAutoscaler"),
        (("--at", "cron-peak"), "--at cron-peak: the manifests have no CronJob"),
        (("--replicas", "web=3"), "--replicas web=3: write NAMESPACE/NAME=N, more after commas"),
        (("--replicas", "default/wbe=3"), "no such workload; did you mean default/web?"),
        (("--replicas", "x/y=3"), "no such workload; there are: default/web"),
        (("--without-zone", "us-east-1z"), "no such zone; did you mean us-east-1"),
        (("--no-spot", "--svg", "a.svg"), "--svg: is for one plan: leave it out with"),
        (("--diff", "a", "b", "--no-spot"), "--no-spot: is for one plan: leave it out with --diff"),
        (("--output", "markdown"), "--output markdown: is for plans that are compared"),
    ],
)
def test_what_is_not_there_is_refused(
    options: tuple[str, ...], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = written(tmp_path / "a.yaml", POOL, deployment())
    assert run("plan", "-f", name, *options) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({**HPA, "spec": {"scaleTargetRef": {"name": "web"}}}, "spec.maxReplicas: "),
        ({**HPA, "spec": {"maxReplicas": 3, "scaleTargetRef": {}}}, "spec.scaleTargetRef.name: "),
        (
            {**HPA, "spec": {**HPA["spec"], "minReplicas": 10}},  # type: ignore[dict-item]
            "spec.maxReplicas: 9: write 10 or more, which is minReplicas",
        ),
        (cron_job("a", "61 * * * *", 1), "spec.schedule: 61 * * * *: write five fields of cron"),
        (cron_job("a", "@hourly", 1, timeZone="Mars"), "spec.timeZone: Mars: write a name such as"),
    ],
)
def test_a_wrong_field_is_refused(
    document: dict[str, object], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = written(tmp_path / "a.yaml", POOL, deployment(), document)
    at = "cron-peak" if document["kind"] == "CronJob" else "hpa-max"
    assert run("plan", "-f", name, "--at", at) == 2
    assert text in capsys.readouterr().err


def test_the_table_says_how_much_more_each_costs_and_which_pods_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = written(tmp_path / "a.yaml", POOL, deployment(replicas=1))
    options = ("--replicas", "default/web=2", "--no-spot", "--replicas", "default/web=0")
    assert run("plan", "-f", name, *options) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["today", "default/web=2", "default/web=0", "no", "spot"]
    (against,) = [line for line in lines if line.startswith("against today")]
    assert against.split()[2] == "–"
    assert against.split()[-2].startswith("+")
    large = written(tmp_path / "b.yaml", POOL, deployment(containers=[container(cpu="900")]))
    assert run("plan", "-f", large, "--replicas", "default/web=1", "--output", "markdown") == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "| --- | ---: | ---: |"
    assert [line.partition(" large enough")[0] for line in lines[-2:]] == [
        "today: no place for 3 pods of default/web: default: no instance type is",
        "default/web=1: no place for 1 pod of default/web: default: no instance type is",
    ]


def test_a_pool_of_spot_alone_launches_nothing_without_spot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spot = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
    pool = {**POOL, "spec": {"requirements": [spot]}}
    name = written(tmp_path / "a.yaml", pool, deployment())
    assert run("plan", "-f", name, "--no-spot") == 3
    out = capsys.readouterr().out
    assert "capacity-type: no instance type here has spot" in out
    assert "tried again" not in out

"""CronJobs start Jobs when they are due, and an Event names pods that find no node."""

from datetime import UTC, datetime
from typing import Any

import pytest

from infra.local.cluster_simulator.controllers.cronjobs import moments
from tests.local.cluster_simulator.bench import DEPLOYMENTS, JOBS, Bench, template, workload
from tests.waiting import until

CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
EVENTS = "/api/v1/namespaces/default/events"
NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def cron_job(**spec: Any) -> dict[str, Any]:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    return {
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}, **spec},
    }


def make_due(bench: Bench, **spec: Any) -> None:
    """Make a CronJob whose last Job was started long ago: one is due at once."""
    bench.create(CRON_JOBS, cron_job(suspend=True, **spec))
    long_ago = {"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}
    bench.patch(f"{CRON_JOBS}/nightly/status", long_ago)
    bench.patch(f"{CRON_JOBS}/nightly", {"spec": {"suspend": False}})


@pytest.mark.parametrize(
    ("schedule", "zone", "last", "wait"),
    [
        ("*/5 * * * *", None, NOON, 300),
        ("30 * * * *", None, NOON.replace(hour=11, minute=30), 1800),
        ("@hourly", None, NOON, 3600),
        ("0 13 * * *", "Europe/Berlin", NOON, 86400),
    ],
)
def test_the_last_and_the_next_time_of_a_schedule(
    schedule: str, zone: str | None, last: datetime, wait: float
) -> None:
    spec = {"schedule": schedule, **({"timeZone": zone} if zone else {})}
    assert moments(spec, NOON) == (last, wait)


@pytest.mark.parametrize(
    "spec", [{"schedule": "every day"}, {"schedule": "@daily", "timeZone": "?"}]
)
def test_a_schedule_that_cannot_be_read_starts_nothing(spec: dict[str, str]) -> None:
    assert moments(spec, NOON) == (None, None)


def test_a_cron_job_that_is_due_starts_one_job_and_tells_when_it_ended(bench: Bench) -> None:
    bench.add_node("n0")
    make_due(bench)
    (job,) = until(lambda: bench.items(JOBS), "a job")
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("CronJob", "nightly")
    assert job["metadata"]["name"].startswith("nightly-")

    def status() -> dict[str, Any]:
        found: dict[str, Any] = bench.get(f"{CRON_JOBS}/nightly")["status"]
        return found

    until(lambda: status().get("lastSuccessfulTime"), "the job has succeeded")
    assert status()["lastScheduleTime"] > "2026-01-01T00:00:00Z"
    bench.call("DELETE", f"{CRON_JOBS}/nightly")
    until(lambda: not bench.items(JOBS), "its jobs are collected")


def test_a_cron_job_that_is_suspended_or_too_late_starts_nothing(bench: Bench) -> None:
    make_due(bench, startingDeadlineSeconds=0)
    until(
        lambda: (
            bench.get(f"{CRON_JOBS}/nightly")["status"]["lastScheduleTime"] > "2026-01-01T00:00:00Z"
        ),
        "the time was skipped",
    )
    assert bench.items(JOBS) == []


def test_a_pod_without_a_node_is_told_of_by_one_event(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload("Deployment", "web", template("web", cpu="64")))

    def told() -> list[dict[str, Any]]:
        return [event for event in bench.items(EVENTS) if event["reason"] == "FailedScheduling"]

    (event,) = until(told, "an event")
    (waiting,) = bench.pods("web")
    assert event["involvedObject"]["name"] == waiting["metadata"]["name"]
    assert (event["type"], event["source"]["component"]) == ("Warning", "default-scheduler")
    assert event["message"] == "no nodes available to schedule pods"
    bench.add_node("n0")
    until(lambda: "Insufficient cpu" in told()[0]["message"], "the message is renewed")
    assert len(told()) == 1
    assert told()[0]["count"] > 1

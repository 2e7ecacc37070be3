"""What Jobs and CronJobs cost, apart from what runs always."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.running import PROVISIONER, container, cron_job, deployment, run, written

HUGE = container("60")
NOT_KNOWN = "while it runs, how long is not known (activeDeadlineSeconds is not set)"
AT_MOST = "while it runs, {} s at most (activeDeadlineSeconds)"
Diff = Callable[..., tuple[int, str]]


def job(name: str = "load", **spec: object) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [HUGE]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def cron(schedule: str, **spec: object) -> dict[str, object]:
    found: dict[str, Any] = cron_job("nightly", schedule)
    found["spec"]["jobTemplate"]["spec"] = {**job()["spec"], **spec}
    return found


@pytest.fixture
def added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Diff:
    """Compares `web` with `web` and one document more; returns exit code and output."""

    def compare(document: dict[str, object], *options: str) -> tuple[int, str]:
        old = written(tmp_path / "old.yaml", PROVISIONER, deployment())
        new = written(tmp_path / "new.yaml", PROVISIONER, deployment(), document)
        return run("plan", "--diff", old, new, *options), capsys.readouterr().out

    return compare


def test_what_runs_always_costs_what_it_costs_without_jobs(added: Diff) -> None:
    code, out = added(cron("0 3 * * *"), "--max-increase", "0%", "--output", "json")
    found = json.loads(out)
    assert code == 0
    assert found["cost_without_jobs"] == [found["cost"][0]] * 2
    (nightly,) = found["workloads"]
    assert nightly["name"] == "default/nightly"
    assert nightly["cost"] == [0, found["cost"][1] - found["cost"][0]]
    assert nightly["cost"][1] > 0


def test_the_limit_holds_for_the_hour_in_which_cron_jobs_run_if_that_is_asked_for(
    added: Diff, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--at", "cron-peak", "--max-increase", "100%")
    assert added(cron("0 3 * * *"), *options)[0] == 1
    assert added(cron("0 3 * * *", suspend=True), *options)[0] == 0
    assert added(deployment("api", 1), "--at", "hpa-max", "--at", "hpa-min")[0] == 2


def test_tables_name_the_months_of_what_runs_always(added: Diff) -> None:
    rows = [line.rsplit("  ", 3)[0].strip() for line in added(job())[1].splitlines()]
    assert "$/h" in rows[2]
    assert rows[3].startswith("$/h without Jobs")
    assert rows[4].startswith("$/month without Jobs")


@pytest.mark.parametrize(
    ("document", "runs"),
    [
        (
            cron("0 3 * * *", activeDeadlineSeconds=3_600),
            f"{AT_MOST.format('3,600')}, 30 times a month: $87.60 a month at most",
        ),
        (cron("0 0 29 2 *"), f"{NOT_KNOWN}, less than once a month"),
        (cron("*/1 * * * *"), f"{NOT_KNOWN}, 43,800 times a month"),
        (
            cron("@every 1h", activeDeadlineSeconds=60),
            f"{AT_MOST.format('60')}: $0.05 a run at most",
        ),
        (job(activeDeadlineSeconds=7_200), f"{AT_MOST.format('7,200')}: $5.76 a run at most"),
    ],
)
def test_a_line_says_how_long_a_job_runs_and_how_often(
    document: dict[str, object], runs: str, added: Diff
) -> None:
    (line,) = [row for row in added(document)[1].splitlines() if "while it runs" in row]
    assert line.startswith(f"{document['kind']} default/")
    assert line.partition(": $2.8800/h ")[2] == runs


def test_of_many_jobs_twenty_have_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [job(f"j{number:02}") for number in range(22)]
    assert run("plan", "-f", written(tmp_path / "a.yaml", PROVISIONER, *jobs)) == 0
    out = capsys.readouterr().out
    assert "what runs always costs $0.0000/h, $0.00 a month; besides:" in out
    assert out.count("while it runs") == 20
    assert "2 more Jobs cost less" in out

"""`dovetail doctor` over several clusters, of which some cannot be read."""

import json
from typing import Any

import pytest

from functions.cli.doctor.doctor_command import mount_doctor
from functions.cli.doctor.findings import Finding
from shared.model.errors import AutoscalerError, UnavailableError
from tests.unit.cli.running import run_mounted

DEAD = Finding(kind="slot-without-instance", subject="s1", text="does not run", repairable=True)
SILENT = Finding(kind="silent-forwarder", subject="demo", text="never spoke", command="kubectl x")
CEILING = Finding(kind="no-ceiling", subject="demo", text="has none", command="y", advice=True)
GONE = UnavailableError("eks DescribeCluster: no\nanswer")


class FakeService:
    """Implements what the command asks of Doctoring."""

    def __init__(self, *left: Finding, looks: AutoscalerError | None = None) -> None:
        self.left = left
        self.looks = looks

    def repair(self, holder: str) -> tuple[Finding, ...]:
        assert holder == "doctor"
        return (DEAD,)

    def findings(self) -> tuple[Finding, ...]:
        if self.looks is not None:
            raise self.looks
        return self.left


class FakeRuntime:
    """Implements what the command asks of DoctorRuntime."""

    def __init__(self, **services: FakeService | AutoscalerError) -> None:
        self.services = services

    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(self.services))

    def service(self, cluster: str) -> FakeService:
        found = self.services[cluster]
        if isinstance(found, AutoscalerError):
            raise found
        return found


def run(runtime: FakeRuntime, *arguments: str) -> int:
    made: Any = lambda: runtime  # noqa: E731 -- a double of another type
    return run_mounted(lambda commands: mount_doctor(commands, made), "doctor", *arguments)


def test_findings_are_printed_with_what_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeRuntime(demo=FakeService(SILENT, DEAD, CEILING), prod=FakeService())) == 1
    assert capsys.readouterr() == (
        (
            "demo: 2 findings, 0 repaired\n"
            "  silent-forwarder demo: never spoke\n"
            "    run: kubectl x\n"
            "  slot-without-instance s1: does not run\n"
            "    run: dovetail doctor --repair\n"
            "  no-ceiling demo: has none\n"
            "    safer: y\n"
            "prod: 0 findings, 0 repaired\n"
        ),
        "",
    )
    assert run(FakeRuntime(demo=FakeService(CEILING))) == 0


def test_a_cluster_that_cannot_be_read_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    runtime = FakeRuntime(a=FakeService(SILENT), b=GONE, c=FakeService())
    assert run(runtime) == 2
    assert capsys.readouterr() == (
        (
            "a: 1 finding, 0 repaired\n"
            "  silent-forwarder demo: never spoke\n"
            "    run: kubectl x\n"
            "c: 0 findings, 0 repaired\n"
        ),
        "dovetail doctor: b: eks DescribeCluster: no answer\n",
    )
    assert run(runtime, "--output", "json") == 2
    a, b, c = json.loads(capsys.readouterr().out)
    assert [finding["kind"] for finding in a["findings"]] == ["silent-forwarder"]
    assert b == {
        "cluster": "b",
        "findings": [],
        "repaired": [],
        "error": "eks DescribeCluster: no answer",
    }
    assert c == {"cluster": "c", "findings": [], "repaired": [], "error": ""}


def test_what_was_repaired_is_told_also_if_the_cluster_is_lost_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(FakeRuntime(a=FakeService(looks=GONE)), "--repair") == 2
    assert capsys.readouterr() == (
        "a: not looked over, 1 repaired\n  repaired slot-without-instance s1: does not run\n",
        "dovetail doctor: a: eks DescribeCluster: no answer\n",
    )

import argparse
import json

import pytest

from functions.cli.doctor import doctor_command, prerequisites_command
from functions.cli.doctor.prerequisites import Prerequisites
from shared.model.errors import UnavailableError
from shared.model.values import replace
from tests.fakes.account import ATTACHMENT, FakeAccount, FakeSurroundings


class FakeRuntime:
    """Implements what the command asks of PrerequisitesRuntime."""

    def __init__(self, accounts: dict[str, FakeAccount] | None, *, attached: bool = True) -> None:
        self.accounts = accounts
        self.attached = attached

    def require_caller(self) -> None:
        if self.accounts is None:
            raise UnavailableError("sts does not\nanswer")

    def clusters(self) -> tuple[str, ...]:
        assert self.accounts is not None
        return tuple(sorted(self.accounts)) if self.attached else ()

    def service(self, cluster: str) -> Prerequisites:
        assert self.accounts is not None
        return Prerequisites(cluster, self.accounts[cluster], FakeSurroundings)


def run(runtime: FakeRuntime, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    doctor_command.mount_doctor(parser.add_subparsers())
    parsed = parser.parse_args(["doctor", "--prerequisites", *arguments])
    return prerequisites_command.check_prerequisites(parsed, lambda _: runtime)  # type: ignore[arg-type,return-value]


def test_each_finding_is_printed_with_what_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    accounts = {"demo": FakeAccount(mode="CONFIG_MAP"), "prod": FakeAccount()}
    assert run(FakeRuntime(accounts)) == 1
    first, finding, command, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("demo: 1 to see to", "prod: all that is needed is there")
    assert finding.startswith("  authentication-mode demo: is CONFIG_MAP: ")
    assert command.startswith("    run: aws eks update-cluster-config --name demo ")


def test_advice_is_printed_and_leaves_the_exit_code_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    open_metadata = replace(ATTACHMENT, metadata_hop_limit=2)

    assert run(FakeRuntime({"demo": FakeAccount(attached=open_metadata)})) == 0
    first, advice, todo = capsys.readouterr().out.splitlines()
    assert first == "demo: all that is needed is there"
    assert advice.startswith("  metadata-reach DovetailNode-demo-us-east-1: ")
    assert todo.startswith("    safer: ")


def test_a_cluster_that_is_not_attached_yet_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    runtime = FakeRuntime({"demo": FakeAccount()}, attached=False)

    assert run(runtime, "--cluster", "demo", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"cluster": "demo", "findings": []}]
    assert run(runtime) == 2
    assert capsys.readouterr().err == (
        "dovetail doctor: no cluster is attached: name one with --cluster\n"
    )


def test_what_cannot_be_read_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeRuntime(None), "--cluster", "demo") == 2
    assert capsys.readouterr() == ("", "dovetail doctor: sts does not answer\n")

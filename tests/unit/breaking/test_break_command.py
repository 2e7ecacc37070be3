"""`dovetail break`: bad input in one line, faults that name their victim, and the scoreboard."""

import argparse
import io
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from functions.cli.main import main, make_parser
from infra.local.breaking.faults import BEGIN, told_in_the_end
from infra.local.breaking.running_world import RunningWorld, find_world
from infra.local.breaking.scoreboard import Score, Verdict, keep_score, read_scores, table_of
from infra.local.demo.problem import Problem
from tests.unit.breaking.worlds import running
from tests.unit.demo.readings import node, pod

FAULTS = ("spot-warning", "capacity", "kill-function", "throttle", "api-server")


class Broken:
    """A world that keeps what was asked of it."""

    def __init__(self, nodes: list[Any], pods: list[Any]) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._objects = {"nodes": nodes, "pods": pods}

    @property
    def world(self) -> RunningWorld:
        return running(self)

    def control(self, verb: str, **arguments: Any) -> Any:
        self.asked.append((verb, arguments))
        return {}

    def items(self, path: str) -> list[Any]:
        return self._objects[path.rsplit("/", 1)[-1]]

    def describe_instance_types(self, InstanceTypes: list[str]) -> Any:  # noqa: N803 - EC2's own
        if InstanceTypes != ["m5.large"]:
            raise ClientError({"Error": {"Code": "InvalidInstanceType"}}, "DescribeInstanceTypes")


def begin(fault: str, broken: Broken, *words: str) -> Any:
    arguments = make_parser().parse_args(["break", fault, *words])
    return BEGIN[fault](broken.world, arguments)


def two_nodes() -> Broken:
    quiet, busy = node("quiet"), node("busy")
    other = node("other", ours=False)
    return Broken([quiet, busy, other], [pod("a", node="busy", phase="Running")])


def test_a_spot_warning_is_for_the_busiest_spot_node_or_the_one_named() -> None:
    broken = two_nodes()
    assert begin("spot-warning", broken).told == "EC2 warned that it takes busy in 120 s"
    begin("spot-warning", broken, "--node", "quiet", "--seconds", "30")
    assert broken.asked == [
        ("interrupt", {"instance_id": "i-busy", "seconds": 120.0}),
        ("interrupt", {"instance_id": "i-quiet", "seconds": 30.0}),
    ]


@pytest.mark.parametrize(
    ("broken", "words", "said"),
    [
        (Broken([], []), (), "no spot node is Ready: apply examples/inflate"),
        (two_nodes(), ("--node", "absent"), "--node absent: does not exist: name one of"),
        (two_nodes(), ("--node", "other"), "--node other: is not a spot node"),
    ],
    ids=["none", "absent", "not-spot"],
)
def test_a_node_that_cannot_be_warned_of_is_refused(
    broken: Broken, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(Problem, match=said):
        begin("spot-warning", broken, *words)
    assert broken.asked == []


@pytest.mark.parametrize(
    ("words", "pool", "told"),
    [
        ((), {"capacity_type": "spot"}, "EC2 had no spot instances for 120 s"),
        (("--type", "m5.large"), {"type": "m5.large"}, "EC2 had no m5.large instances for 120 s"),
        (
            ("--type", "m5.large", "--capacity-type", "on-demand"),
            {"type": "m5.large", "capacity_type": "on-demand"},
            "EC2 had no on-demand m5.large instances for 120 s",
        ),
    ],
    ids=["usual", "type", "both"],
)
def test_capacity_that_runs_out_is_named(
    words: tuple[str, ...], pool: dict[str, str], told: str
) -> None:
    broken = two_nodes()
    injection = begin("capacity", broken, *words)
    assert broken.asked == [("capacity/set", {**pool, "count": 0, "seconds": 120.0})]
    assert told_in_the_end(
        injection, {("capacity refused", "a"): 2, ("call throttled", "ec2"): 9}
    ) == (f"{told}, refused 2 times")


def test_an_instance_type_that_is_none_is_refused() -> None:
    with pytest.raises(Problem, match=r"--type m5\.larg: is no instance type: name one"):
        begin("capacity", two_nodes(), "--type", "m5.larg")


def test_a_throttle_is_of_a_service_for_some_seconds() -> None:
    broken = two_nodes()
    begin("throttle", broken, "--service", "dynamodb", "--seconds", "5")
    assert broken.asked == [("throttle", {"service": "dynamodb", "seconds": 5.0})]


def test_an_api_server_that_up_did_not_start_is_not_frozen() -> None:
    with pytest.raises(Problem, match="was not started by `dovetail up`"):
        begin("api-server", two_nodes())


@pytest.mark.parametrize("fault", FAULTS)
def test_the_help_of_a_fault_says_what_comes_of_it(
    fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(["break", fault, "--help"])
    assert ended.value.code == 0
    words = capsys.readouterr().out
    assert "--kubeconfig" in words
    assert len(words.split("\n\n")[1]) > 150
    assert "not within the time" in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "nothing"),
        (["throttle", "--service", "sns"], "sns"),
        (["api-server", "--seconds", "0"], "0: give seconds above 0, at most 3600"),
        (["api-server", "--within", "nan"], "nan: give seconds above 0, at most 3600"),
    ],
    ids=["fault", "service", "seconds", "within"],
)
def test_bad_words_are_refused_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(["break", *words])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_world_is_found_by_its_kubeconfig_alone(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="KUBECONFIG is not set: paste the export lines"):
        find_world("")
    kubeconfig = tmp_path / "kubeconfig"
    with pytest.raises(Problem, match="is not one of `dovetail up`"):
        find_world(str(kubeconfig))
    access = {"url": "http://127.0.0.1:1", "region": "r", "key_id": "k", "secret": "s"}
    (tmp_path / "admin.token").write_text("t")
    (tmp_path / "kube.ready").write_text(
        json.dumps({"url": "https://127.0.0.1:1", "ca_file": None, "pid": os.getpid()})
    )
    (tmp_path / "aws.ready").write_text(json.dumps({**access, "pid": 2**30}))
    with pytest.raises(Problem, match="its world has ended"):
        find_world(str(kubeconfig))
    (tmp_path / "aws.ready").write_text(json.dumps({**access, "pid": os.getpid()}))
    found = find_world(str(kubeconfig))
    assert found.folder == tmp_path
    # This process runs, and is no API server: it is not the one to freeze.
    assert found.api_server is None


def test_the_scoreboard_is_kept_and_counts_only_what_came_to_the_test(tmp_path: Path) -> None:
    path = tmp_path / "scoreboard.json"
    assert read_scores(path) == []
    rows = [
        Score(
            fault=fault,
            told=f"{fault} [was]",
            verdict=verdict,
            seconds=12.4,
            most_waiting=7,
            waiting=0,
        )
        for fault, verdict in zip(FAULTS, [*Verdict, Verdict.SURVIVED], strict=False)
    ]
    for row in rows:
        keep_score(path, row)
    assert read_scores(path) == rows
    screen = Console(file=io.StringIO(), width=120)
    screen.print(table_of(rows))
    lines = cast("io.StringIO", screen.file).getvalue().splitlines()
    assert lines[0].strip() == "Survived 2 of 3"
    told = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[2:]}
    assert told == {
        "spot-warning": "survived 12 7 0 spot-warning [was]",
        "capacity": "not yet 12 7 0 capacity [was]",
        "kill-function": "not tested",
        "throttle": "survived 12 7 0 throttle [was]",
    }


def test_without_a_fault_a_world_in_which_nothing_was_broken_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "infra.local.breaking.running_world.find_world",
        lambda _: argparse.Namespace(folder=tmp_path),
    )
    assert main(["break"]) == 0
    assert capsys.readouterr().out.startswith("Nothing was broken yet")

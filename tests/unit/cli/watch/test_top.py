"""The terminal's tables, and what the commands refuse."""

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from functions.cli.watch import page_files
from functions.cli.watch.board import Board
from functions.cli.watch.node_rows import workload_colours
from functions.cli.watch.top import recent_warnings, sparkline, top_view
from functions.cli.watch.top_options import TopOptions
from functions.cli.watch.view import OfferingPrices
from shared.model import labels as keys
from shared.model.codec import to_plain
from shared.model.errors import PermanentError
from shared.model.values import replace
from tests.builders import CATALOG, NOW, node, pod, pods
from tests.contract.kube.scripted import Answer, scripted
from tests.unit.cli.running import run, written

DECISION = {
    "id": "p1", "at": (NOW + timedelta(hours=1)).isoformat(), "cause": "500 pods wait for capacity",
    "nodes": [[12, "m5.2xlarge", "spot"], [3, "c5.4xlarge", "on-demand"]], "cost": 640_000,
    "bound": 600_000, "gap_percent": 6.67, "bound_is_close": True,
}  # fmt: skip


JOINED = keys.INITIALIZED


def whole(**more: Any) -> dict[str, Any]:
    board = Board(OfferingPrices.of(CATALOG))
    joined = {**node().labels, keys.INITIALIZED: "true"}
    board.put_node(None, node("n1", labels=joined))
    board.put_node(None, node("n2", labels=joined, annotations={keys.REMOVAL_REASON: "empty"}))
    board.put_node(None, node("n3", finalizers=(), labels={}, ready=False))
    board.put_node(None, node("n4", ready=None))
    for running in pods(2, node_name="n1"):
        board.put_pod(None, running)
    board.put_pod(None, pod("late"))
    board.next_change()
    return {
        "synced": True,
        **board.whole().to_plain(),
        "cluster": "prod",
        "least": {"planned": 50_000, "bound": 48_000, "pods": 2, "left_out": 0},
        "notes": ["a note"],
        "decisions": [],
        "history": [
            [NOW.timestamp(), 0, 0, None, 0],
            [NOW.timestamp() + 1, 96_000, 96_000, None, 1],
        ],
        **more,
    }


def drawn(state: dict[str, Any], rows: int = 60, columns: int = 190) -> str:
    console = Console(width=columns, height=rows, record=True, color_system=None)
    with console.capture() as capture:
        console.print(top_view(state, rows, columns))
    return capture.get()


def test_one_screen_answers_what_stands_comes_goes_and_waits() -> None:
    text = drawn(whole())
    assert "prod  4 nodes, 1 coming, 1 going   2 pods, 1 waiting   $0.2880/h" in text
    assert "and 1 node of unknown price" in text
    assert "bound $0.0480/h (+500.0 % on 3 nodes of Dovetail)" in text
    assert "going: empty" in text
    assert "launched, waits for the kubelet to be Ready" in text
    assert "not ready, waits for its kubelet to be Ready" in text
    assert " none " in text
    assert "2/29" in text
    assert "1 pod waits" in text
    assert "a note" in text


HEADS = ("node", "type", "owner", "zone", "bought", "$/h", "state", "pods", "cpu", "memory")


@pytest.mark.parametrize(
    ("columns", "left_out", "bar"),
    [(80, {"owner", "zone"}, ""), (100, set(), ""), (120, set(), "█"), (200, set(), "█")],
)
def test_names_types_and_phases_are_whole_on_a_narrow_terminal(
    columns: int, left_out: set[str], bar: str
) -> None:
    board = Board(OfferingPrices.of(CATALOG))
    large = node("ip-10-0-101-204.ec2.internal")
    labels = {**large.labels, keys.INSTANCE_TYPE: "m5.2xlarge"}
    board.put_node(None, replace(large, labels=labels))
    board.put_node(None, node("ip-10-0-101-205.ec2.internal", labels={**labels, JOINED: "true"}))
    board.put_pod(None, pod("web-0", node_name=large.name))
    board.next_change()
    lines = drawn(
        whole(**board.whole().to_plain(), decisions=[DECISION]), columns=columns
    ).splitlines()
    heads = next(line for line in lines if line.startswith("node ")).split()
    assert heads == [head for head in HEADS if head not in left_out]
    [row] = [line for line in lines if "ip-10-0-101-204" in line]
    assert " m5.2xlarge " in row
    assert "0.3840" in row
    assert "registered" in row
    assert " initialized " in next(line for line in lines if "ip-10-0-101-205" in line)
    assert ("ec2.internal" in row) == (columns == 200)
    assert ("█" in row) == bool(bar)
    [told] = [line for line in lines if "12 × m5.2xlarge" in line]
    assert "$0.6400/h" in told
    assert ("500 pods" in told) == (columns >= 120)
    assert all(len(line) <= columns for line in lines)


def test_a_name_of_another_domain_is_kept() -> None:
    board = Board(OfferingPrices.of(CATALOG))
    board.put_node(None, node("a.example.com"))
    board.put_node(None, node("ip-10-0-0-1.eu-west-1.compute.internal"))
    board.next_change()
    text = drawn(whole(**board.whole().to_plain()), columns=80)
    assert "a.example.com " in text
    assert "ip-10-0-0-1 " in text


def test_labels_have_columns_and_keys_are_named() -> None:
    state = whole()
    labels = {"n1": {"example.com/team": "data", "tier": "gold"}}
    console = Console(width=190, height=60, record=True, color_system=None)
    options = TopOptions(extra_labels=("example.com/team", "tier"))
    with console.capture() as capture:
        console.print(top_view(state, 60, 190, labels=labels, options=options, keys=options.keys))
    lines = capture.get().splitlines()
    heads = next(line for line in lines if line.startswith("node ")).split()
    assert heads[len(HEADS) - 2 :] == ["team", "tier", "cpu", "memory"]
    assert " data gold " in " ".join(next(line for line in lines if line.startswith("n1 ")).split())
    assert lines[-1] == "q quit   s sort: state ↑   r reverse   ↑ ↓ PgUp PgDn scroll"


def test_nodes_that_have_no_room_on_the_screen_are_counted() -> None:
    assert "… and 1 more" in drawn(whole(), 5)


def test_decisions_are_told_in_a_line_each() -> None:
    nothing = {**DECISION, "id": "p2", "nodes": []}
    text = drawn(whole(decisions=[DECISION, nothing]))
    assert "01:00:00" in text
    assert "3 × c5.4xlarge on-demand" in text
    assert "plans no node" in text


def test_more_groups_of_pods_than_have_room_are_counted() -> None:
    [group] = whole()["waiting"]
    many = [{**group, "key": str(number)} for number in range(9)]
    assert "… and 3 more groups" in drawn(whole(waiting=many))


def test_what_a_cluster_says_is_no_markup_and_no_command_of_the_terminal() -> None:
    [group] = whole()["waiting"]
    text = drawn(whole(waiting=[{**group, "reason": "needs zone in [red] \x1b[2J"}]))
    assert "needs zone in [red] ?[2J" in text
    assert "\x1b" not in text


def test_a_warning_is_shown_below_for_a_while_and_not_printed_through_the_picture(
    capfd: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    with recent_warnings(lambda: now[0]) as warnings:
        assert warnings() == []
        logging.getLogger("shared.kube.reflector").info("all is well")
        logging.getLogger("shared.kube.reflector").warning("GET /x: %s", "no answer")
        assert warnings() == ["GET /x: no answer"]
        now[0] = 60.0
        assert warnings() == []
    assert capfd.readouterr() == ("", "")


def test_before_anything_is_read_it_says_so() -> None:
    assert drawn(whole(synced=False)) == "reading nodes and pods …\na note\n"


def test_a_bound_that_is_not_known_is_a_dash() -> None:
    assert "   bound –  " in drawn(whole(least=None))
    nothing = {"planned": 0, "bound": 0, "pods": 0, "left_out": 0}
    assert "bound $0.0000/h" in drawn(whole(least=nothing))


def test_sparks_go_from_zero_to_the_largest() -> None:
    assert sparkline([0, 4, 8], 24) == " ▄█"
    assert sparkline([1, 8], 1) == "█"
    assert sparkline([], 24) == ""


def test_workloads_have_colours_that_differ() -> None:
    board = Board(OfferingPrices({}))
    for name in ("a", "b"):
        board.put_pod(None, pod(name, owner=None, node_name="n1"))
    board.put_node(None, node("n1"))
    board.next_change()
    colours = workload_colours([to_plain(view) for view in board.whole().nodes])
    assert len(set(colours.values())) == 2


# --- the commands


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["top", "--kubeconfig", "none"], "dovetail top: kubeconfig none: "),
        (["watch", "--recording", "none"], "dovetail watch: none: No such file or directory; "),
        (["watch", "--recording", "a", "--record", "b"], "dovetail watch: --record: a recording"),
        (["watch", "--kubeconfig", "none"], "dovetail watch: kubeconfig none: "),
    ],
)
def test_bad_input_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    # Nothing is built before the input is known to be right.
    monkeypatch.setattr(page_files, "is_built", lambda: False)
    assert run(*arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert told.count("\n") == 1


@pytest.mark.parametrize("words", [["watch"], ["top"], ["top", "--lines"]])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "no answer: "),
        (Answer(status=401, body={"message": "Unauthorized"}), "401 Unauthorized; log in again, "),
    ],
)
def test_a_cluster_that_cannot_be_read_ends_the_commands_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    answer: Answer | None,
    said: str,
) -> None:
    with scripted([answer or Answer(drop=True)]) as server:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k"}}],
            "clusters": [{"name": "k", "cluster": {"server": server.url}}],
        }
        config = written(tmp_path / "config", document)
        assert run(*words, "--kubeconfig", config) == 2
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith(f"dovetail {words[0]}: GET /api/v1/nodes: ")
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("option", [("--port", "70000"), ("--port", "x"), ("--speed", "0")])
def test_a_port_or_speed_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run("watch", *option)
    assert ended.value.code == 2
    assert f"{option[1]}: give a" in capsys.readouterr().err


# --- the page's files


def test_a_page_is_built_anew_when_a_source_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setattr(page_files, "BUILT", tmp_path / "built")
    monkeypatch.setattr(page_files, "PAGE", tmp_path / "page")
    source = tmp_path / "page" / "src" / "app.tsx"
    made = tmp_path / "built" / "index.html"
    for path in (source, made):
        path.parent.mkdir(parents=True)
    assert not page_files.is_built()
    made.touch()
    assert page_files.is_built()
    source.touch()
    os.utime(made, (1, 1))
    assert not page_files.is_built()


def test_without_sources_or_npm_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "PAGE", tmp_path)
    with pytest.raises(PermanentError, match="install a released wheel"):
        page_files.build()
    (tmp_path / "package.json").write_text('{"engines": {"node": ">=30.1"}}')
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(PermanentError, match=r"npm is missing: install Node\.js 30\.1 or newer"):
        page_files.build()


def test_a_failed_build_says_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package.json").touch()
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho no such lock; exit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(page_files, "PAGE", tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: str(npm))
    with pytest.raises(PermanentError, match="npm ci: no such lock"):
        page_files.build()

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from functions.cli.commands import mount_commands
from functions.cli.parser import Parser
from functions.cli.plan import decision_documents
from tests.unit.cli.running import PROVISIONER, catalogue_of, deployment, run, written

WORDS = ("--set", "max_node_vcpus=16")


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """Return the options of a plan that name its files."""
    folder = tmp_path_factory.mktemp("manifests")
    file = written(folder / "a.yaml", PROVISIONER, deployment(replicas=40))
    return ("-f", file, "--catalog", catalogue_of(folder / "catalogue.json", "m5"))


@pytest.fixture(scope="module")
def recorded(manifests: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    saved = str(tmp_path_factory.mktemp("recorded") / "decision.json.gz")
    assert run("plan", *manifests, *WORDS, "--save", saved) == 0
    return saved


@pytest.fixture
def decision(recorded: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the file of a decision, which no test changes."""
    capsys.readouterr()
    return recorded


def test_a_saved_decision_replays_byte_identical(
    decision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", decision) == 0
    assert capsys.readouterr().out.startswith("byte-identical: ")


def test_saving_twice_gives_the_same_bytes(
    decision: str, manifests: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.json.gz"
    assert run("plan", *manifests, *WORDS, "--save", str(again)) == 0
    assert again.read_bytes() == Path(decision).read_bytes()
    capsys.readouterr()


def test_other_settings_print_the_difference_in_money_nodes_and_pods(
    decision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", decision, "--set", "max_node_vcpus=4") == 0
    told = capsys.readouterr().out
    assert told.startswith("set max_node_vcpus=4\ncost: $")
    assert "nodes: " in told
    assert " m5.xlarge us-east-1" in told
    assert "pods: " in told
    assert "from new m5." in told


def test_the_settings_of_the_decision_are_its_own(
    decision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", decision, "--set", "max_node_vcpus=16") == 0
    assert capsys.readouterr().out.startswith("byte-identical: ")


def test_decision_with_another_result_is_reported(
    decision: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(gzip.decompress(Path(decision).read_bytes()))
    document["plan"]["cost_micros_per_hour"] += 1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    assert run("replay", str(changed)) == 1
    assert capsys.readouterr().out.startswith("not identical\ncost: $")


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("version",), 1, "version: must be 3 or 4"),
        (("version",), 4, "base: must be the key of a base"),
        (("plan",), None, "plan: Expected `object`, got `null`"),
        (
            ("snapshot", "pending", 0, "scheduling", "priority"),
            "x",
            "snapshot.pending.0.scheduling.priority: Expected `int`, got `str`",
        ),
        (("snapshot", "pending", 0, "new"), 1, "snapshot.pending.0: Pod has no field 'new'"),
        (
            ("snapshot", "taken_at"),
            "yesterday",
            "snapshot.taken_at: Invalid RFC3339 encoded datetime",
        ),
        (("settings", "max_options"), True, "settings.max_options: Expected `int`, got `bool`"),
        (("plan_id",), 3, "plan_id: Expected `str`, got `int`"),
        (("plan", "nodes", 0, "options"), [], "plan.nodes.0.options: must have an offering"),
        (("plan_id",), "\ud800", "plan_id: holds half of a surrogate pair"),
    ],
)
def test_a_damaged_decision_names_what_is_wrong(
    path: tuple[str | int, ...],
    value: object,
    expected: str,
    decision: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = json.loads(gzip.decompress(Path(decision).read_bytes()))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps(document))
    assert run("replay", str(damaged)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"damaged.json: document 1: {expected}" in told


def test_a_truncated_decision_is_refused(
    decision: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "short.gz"
    short.write_bytes(Path(decision).read_bytes()[:-20])
    assert run("replay", str(short)) == 2
    assert "cut short" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (gzip.compress(b'{"a": "' + b" " * 3 * 2**20), "document: is larger than 2 MiB"),
        (b'{"a": "' + b" " * 3 * 2**20, "document: is larger than 2 MiB"),
        (gzip.compress(b" " * 9 * 2**20), "document: must be a decision that Dovetail recorded"),
        (b"\x1f\x8b and no more", "document: must be a decision that Dovetail recorded"),
        (b'{"a": [' + b"1," * 2000 + b"1]}", "document: holds more than 1000 values"),
    ],
)
def test_what_grows_beyond_measure_is_not_read_to_its_end(
    content: bytes,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(decision_documents, "MAX_BYTES", 2 * 2**20)
    monkeypatch.setattr(decision_documents, "MOST_VALUES", 1000)
    large = tmp_path / "large"
    large.write_bytes(content)
    assert run("replay", str(large)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert expected in told


def test_mistake_on_the_command_line_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = Parser(prog="dovetail")
    mount_commands(parser.add_subparsers(required=True, metavar="COMMAND"))
    for line in ("replay", "plan -f a --output b", "nothing", ""):
        with pytest.raises(SystemExit) as ended:
            parser.parse_args(line.split())
        assert ended.value.code == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert told.startswith("dovetail")

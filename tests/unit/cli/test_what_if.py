"""`dovetail what-if`: a table, JSON, and one line for what cannot be read."""

import copy
import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.unit.cli.running import PROVISIONER, catalogue_of, deployment, run, written


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two decisions, which no test changes."""
    folder = tmp_path_factory.mktemp("recorded")
    day = folder / "decisions" / "2026-11-23"
    day.mkdir(parents=True)
    catalogue = catalogue_of(folder / "catalogue.json", "m5", "r5")
    for number, replicas in enumerate((40, 3)):
        manifests = written(folder / "a.yaml", PROVISIONER, deployment(replicas=replicas))
        saved = day / f"p{number}.json.gz"
        assert run("plan", "-f", manifests, "--catalog", catalogue, "--save", str(saved)) == 0
    (day / "README").write_text("no decision", encoding="utf-8")
    return folder


@pytest.fixture
def decisions(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return a folder of the same decisions for one test."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    capsys.readouterr()
    return str(tmp_path / "decisions")


def test_other_settings_are_told_as_a_table(
    decisions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("what-if", decisions, "--set", "max_node_vcpus=4") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 decisions of offline, 2025-03-02 00:00 to 2025-03-02 00:00 UTC")
    assert lines[1].split() == ["RECORDED", "WHAT", "IF"]
    assert lines[2].startswith("planned ")
    assert lines[4].split()[0] == "nodes"
    assert lines[5].split() == ["pods", "placed", "43", "43", "+0"]
    assert lines[6].split() == ["pods", "that", "waited", "0", "0", "+0"]
    assert lines[7] == "1 decision would have been another"
    assert "nodes " in lines[8]


def test_what_came_of_the_plans_is_told_apart_as_far_as_later_decisions_know(
    decisions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, plan_id in enumerate(("p0", "p1")):
        file = Path(decisions) / "2026-11-23" / f"{plan_id}.json.gz"
        document = json.loads(gzip.decompress(file.read_bytes()))
        document["plan_id"] = plan_id
        document["snapshot"]["taken_at"] = f"2026-11-23T0{number}:00:00Z"
        file.write_bytes(gzip.compress(json.dumps(document).encode()))
    assert run("what-if", decisions) == 0
    _, nodes, *came, placed, _, _ = capsys.readouterr().out.splitlines()[3:]
    planned = int(nodes.split()[1])
    assert [line.rsplit(maxsplit=3)[0].strip() for line in came] == [
        "launched",
        "refused or gone",
        "not known yet",
    ]
    assert sum(int(line.split()[-3]) for line in came) == planned
    assert placed.startswith("pods placed ")


def test_the_same_policy_changes_nothing(
    decisions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("what-if", decisions) == 0
    assert capsys.readouterr().out.endswith("0 decisions would have been another\n")


def test_bases_beside_the_decisions_are_no_decisions(
    decisions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = Path(decisions).parent / "bases" / "prod" / "2026-11-23" / "p0.json.gz"
    base.parent.mkdir(parents=True)
    base.write_bytes(b"read only for a decision that names it")
    assert run("what-if", str(Path(decisions).parent)) == 0
    assert capsys.readouterr().out.startswith("2 decisions of offline, ")


def test_what_is_no_decision_is_left_out_of_a_folder_with_a_note(
    decisions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    day = Path(decisions) / "2026-11-23"
    whole = (day / "p0.json.gz").read_bytes()
    (day / "a.json").write_text('{"some": "thing else"}', encoding="utf-8")
    (day / "cut.json.gz").write_bytes(whole[: len(whole) // 2])
    assert run("what-if", decisions) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 decisions of offline, ")
    first, second = err.splitlines()
    assert first.startswith(f"note: {day}/a.json: ")
    assert second.startswith(f"note: {day}/cut.json.gz: ")
    assert second.endswith("; left out")
    assert run("what-if", str(day / "p0.json.gz"), str(day / "cut.json.gz")) == 2
    assert capsys.readouterr().err.startswith(f"dovetail what-if: {day}/cut.json.gz: ")
    for name in ("p0.json.gz", "p1.json.gz"):
        (day / name).unlink()
    assert run("what-if", decisions) == 2
    assert f"dovetail what-if: {decisions}: holds no decision" in capsys.readouterr().err


def test_a_decision_that_is_given_twice_counts_once(
    decisions: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("what-if", decisions, f"{decisions}/2026-11-23/p0.json.gz", decisions) == 0
    assert capsys.readouterr().out.startswith("2 decisions of offline, ")


def test_a_provisioner_of_a_file_takes_the_place_of_the_recorded_one(
    decisions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    larger = copy.deepcopy(PROVISIONER)
    larger["spec"]["requirements"][1]["values"] = ["r5"]  # type: ignore[index]
    name = written(tmp_path / "new.yaml", larger)
    assert run("what-if", decisions, "--provisioner", name, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["version"] == 1
    assert document["paid_micros"] == {"recorded": 0, "other": 0}
    for decision in document["decisions"]:
        recorded, other = decision["recorded"], decision["other"]
        assert other["cost_micros_per_hour"] > recorded["cost_micros_per_hour"]
        assert other["waiting"] == 0


def test_a_ceiling_of_a_given_provisioner_holds(
    decisions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = copy.deepcopy(PROVISIONER)
    held["metadata"]["annotations"] = {"dovetail.dev/max-nodes": "0"}  # type: ignore[index]
    name = written(tmp_path / "new.yaml", held)
    assert run("what-if", decisions, "--provisioner", name) == 0
    waited = capsys.readouterr().out.splitlines()[6]
    assert waited.split() == ["pods", "that", "waited", "0", "43", "+43"]


def test_what_cannot_be_read_is_one_line(
    decisions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("what-if", decisions, "--set", "x=1") == 2
    assert "dovetail what-if: --set x: unknown setting" in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("what-if", str(empty)) == 2
    assert capsys.readouterr().err.endswith("empty: holds no .json and no .json.gz file\n")
    manifests = str(tmp_path / "a.yaml")
    assert run("what-if", manifests) == 2
    assert "a.yaml: document: must be a decision" in capsys.readouterr().err
    assert run("what-if", decisions, "--provisioner", written(tmp_path / "b.yaml", deployment()))
    assert "holds no Provisioner and no NodePool" in capsys.readouterr().err

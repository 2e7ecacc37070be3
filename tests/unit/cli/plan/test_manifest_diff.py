"""`dovetail plan --diff`: what a change of manifests does to their plan."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from functions.cli.main import main, make_parser
from tests.unit.cli.running import PROVISIONER, ROOT, container, deployment, node, written

Sides = Callable[..., list[str]]


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    """Writes a folder with so many replicas of `web` for each side; returns the words for them."""

    def write(old: int, new: int, **pod: object) -> list[str]:
        names = []
        for name, replicas, more in (("old", old, {}), ("new", new, pod)):
            folder = tmp_path / name
            folder.mkdir()
            web = deployment("web", replicas, **more)
            written(folder / "a.yaml", PROVISIONER, web, deployment("api", 2))
            names.append(str(folder))
        return ["plan", "--diff", *names]

    return write


def test_nodes_dollars_and_pods_are_compared_by_owner_and_workload(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*sides(3, 30), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pods"] == [5, 32]
    assert found["nodes"][1] > found["nodes"][0]
    (web,) = [one for one in found["workloads"] if one["name"] == "default/web"]
    assert web["count"] == [3, 30]
    shares = [sum(one["cost"][side] for one in found["workloads"]) for side in (0, 1)]
    assert shares[1] == found["cost"][1]
    (owner,) = found["owners"]
    assert owner["cost"] == found["cost"]


@pytest.mark.parametrize(
    ("limit", "code"), [("0%", 1), ("1000%", 0), ("1", 1), ("100000", 0), (None, 0)]
)
def test_the_exit_code_says_whether_it_costs_too_much(
    limit: str | None, code: int, sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [] if limit is None else ["--max-increase", limit]
    assert main([*sides(3, 30), *words]) == code
    assert ("costs more than --max-increase" in capsys.readouterr().err) == (code == 1)


@pytest.mark.parametrize(("limit", "code"), [("x", 2), ("0%", 1), ("1000%", 3)])
def test_above_the_limit_ends_with_1_also_if_pods_have_no_place(
    limit: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = written(tmp_path / "old.yaml", PROVISIONER, deployment("web", 3))
    huge = deployment("huge", containers=[container("9999")])
    new = written(tmp_path / "new.yaml", PROVISIONER, deployment("web", 30), huge)
    assert main(["plan", "--diff", old, new, "--max-increase", limit]) == code
    assert ("no place for 3 pods" in capsys.readouterr().out) == (code != 2)


def test_help_and_document_give_the_exit_codes_in_the_order_in_which_they_apply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    _, _, told = capsys.readouterr().out.partition("exit codes, of which the first that applies:")
    _, _, page = (ROOT / "docs" / "plan.md").read_text().partition("## Exit codes")
    codes = ["2", "1", "3", "0"]
    assert [line.split()[0] for line in told.splitlines() if line][:4] == codes
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == codes


def test_pods_on_nodes_that_are_there_cost_nothing(
    tmp_path: Path, sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    there = written(tmp_path / "nodes.yaml", node("n1", cpu="64"))
    assert main([*sides(1, 2), "--existing", there, "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["cost"], found["pods"]) == ([0, 0], [0, 0], [3, 4])
    assert found["workloads"] == [{"name": "default/web", "count": [1, 2], "cost": [0, 0]}]


def test_pods_that_lose_their_place_are_counted_by_workload_with_the_reasons(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    words = sides(1, 2, containers=[container(cpu="9999")])
    reason = "default: no instance type is large enough: requests cpu 9999 (at most 95690m)"
    for output, mark in (("table", ""), ("markdown", "- ")):
        assert main([*words, "--output", output]) == 3
        out = capsys.readouterr().out
        assert out.endswith(f"\n\n{mark}no place for 2 pods of default/web: {reason}\n")
    assert main([*words, "--output", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["no_place"] == [
        {
            "workload": "default/web",
            "pods": ["default/web-0", "default/web-1"],
            "reasons": [reason],
        }
    ]


def test_of_many_workloads_without_a_place_twenty_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge = [deployment(f"w{number:02}", containers=[container("9999")]) for number in range(22)]
    old = written(tmp_path / "old.yaml", PROVISIONER, deployment())
    new = written(tmp_path / "new.yaml", PROVISIONER, *huge)
    assert main(["plan", "--diff", old, new]) == 3
    out = capsys.readouterr().out
    assert out.count("no place for 3 pods of default/w") == 20
    assert out.endswith("no place for pods of 2 more workloads\n")


def test_a_comment_of_a_pull_request_is_markdown(
    sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*sides(3, 4), "--output", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == ["|  | old | new | change |", "| --- | ---: | ---: | ---: |"]
    assert "| pods placed | 5 | 6 | +1 |" in lines


def test_two_revisions_of_git_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_EMAIL",
    ):
        monkeypatch.setenv(name, "a@example.com")
    git("init", "--quiet")
    (tmp_path / "k8s").mkdir()
    for replicas in (1, 2):
        written(tmp_path / "k8s" / "a.yaml", PROVISIONER, deployment(replicas=replicas))
        git("add", ".")
        git("commit", "--quiet", "-m", "x")
    assert main(["plan", "--diff", "HEAD~1..HEAD", "-f", "k8s", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pods"] == [1, 2]
    assert main(["plan", "--diff", "none..HEAD", "-f", "k8s"]) == 2
    assert "git archive none: " in capsys.readouterr().err


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--diff", "a"), "--diff a: give two folders or files, or OLD..NEW of git with -f"),
        (("--diff", "--x..y"), "expected at least one argument"),
        (("--diff", "a..b"), "--diff a..b: name the files of the revisions with -f"),
        (("--diff", "a", "b", "--save", "x"), "--save: is for one plan: leave it out with --diff"),
        (("--diff", "a", "b", "--max-increase", "x"), "x: write 5% for percent"),
        ((), "name manifests with -f"),
        (("-f", "a", "--max-increase", "5%"), "--max-increase 5%: limits what a change costs"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["plan", *words])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert told in capsys.readouterr().err


def test_the_workflow_of_the_example_gives_options_that_exist() -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "pull-request" / "workflow.yaml").read_text())
    steps = {step["name"]: step for step in workflow["jobs"]["plan"]["steps"] if "name" in step}
    script = steps["plan both states"]["run"].replace("\\\n", " ")
    (line,) = [one for one in script.splitlines() if "dovetail plan" in one]
    words = shlex.split(line.split(" > ")[0].partition(" dovetail ")[2])
    parsed = make_parser().parse_args(words)
    assert parsed.diff == ["origin/$GITHUB_BASE_REF..HEAD"]
    assert (parsed.filename, parsed.output) == (["$MANIFESTS"], "markdown")
    assert parsed.max_increase == "$MAX_INCREASE"

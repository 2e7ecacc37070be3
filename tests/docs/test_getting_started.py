"""How many commands an installation takes, and that the pages agree on them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from functions.cli.main import main, make_parser
from infra.aws.config import read_config
from tests.docs import pages
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "getting-started.md"
# Counted from the checkout to the first node, without the cluster and the user's own manifests.
MOST_COMMANDS = 6


def test_an_installation_takes_few_commands() -> None:
    install = pages.steps(PAGE, "2. Dovetail")
    first_node = [
        step for step in pages.steps(PAGE, "3. The first node") if not step.startswith("kubectl ")
    ]

    assert len([*install, *first_node]) <= MOST_COMMANDS
    assert [shlex.split(step)[0] for step in install] == [
        "make",
        "npx",
        ".venv/bin/dovetail",
        "npx",
        ".venv/bin/dovetail",
    ]


def test_the_readme_installs_as_the_page_does() -> None:
    section = (ROOT / "README.md").read_text().split("## Deploy it")[1].split("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)

    assert block.splitlines() == pages.steps(PAGE, "2. Dovetail")


def test_what_is_deployed_is_what_is_looked_at_and_attached() -> None:
    _, _, doctor, deploy, attach = map(shlex.split, pages.steps(PAGE, "2. Dovetail"))
    context = dict(word.split("=", 1) for word in deploy if "=" in word)
    parse = make_parser().parse_args

    assert read_config(context).clusters == ("prod",)
    assert parse(doctor[1:]).cluster == ["prod"]
    assert parse(attach[1:]).cluster == "prod"


def _bought(capsys: pytest.CaptureFixture[str], *files: Path) -> list[tuple[int, list[str]]]:
    """Return what is bought for the workloads in some files: pods and instance types by node."""
    words = [word for path in files for word in ("-f", str(path))]
    assert main(["plan", *words, "--output", "json"]) == 0
    return sorted(
        (len(node["pods"]), [option["instance_type"] for option in node["options"]])
        for node in json.loads(capsys.readouterr().out)["nodes"]
    )


def test_the_first_manifests_of_both_versions_buy_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inflate = (ROOT / "examples" / "inflate" / "deployment.yaml").read_text(encoding="utf-8")
    scaled = tmp_path / "deployment.yaml"
    scaled.write_text(inflate.replace("replicas: 0", "replicas: 5"), encoding="utf-8")

    walk = ROOT / "docs" / "walk-through"
    ((pods, types),) = _bought(capsys, walk / "first-provisioner.yaml", scaled)
    assert (pods, bool(types)) == (5, True)
    assert _bought(capsys, walk / "first-node-pool.yaml", scaled) == [(pods, types)]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900

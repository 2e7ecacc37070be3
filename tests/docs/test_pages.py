"""What the documents name exists: targets, commands, options, files, settings, identifiers."""

import argparse
import ast
import dataclasses
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from string import Template

import pytest
from msgspec.structs import fields

from functions.cli.main import main, make_parser
from infra.aws.config import Config, read_config
from infra.local.aws.templates.resource_check import NOT_EMULATED
from infra.local.demo.scenario import scenario_names
from shared import settings
from tests.docs import pages
from tests.docs.pages import PAGES, ROOT

SETTINGS = ROOT / "docs" / "settings.md"
SCENARIOS = ROOT / "examples" / "README.md"
PICTURE = ROOT / "docs" / "images" / "plan.svg"
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
# As the pages have them exported, and the keys that `read_config` asks for.
VARIABLES = {
    "ACCOUNT": "123456789012",
    "AWS_REGION": "eu-west-1",
    "CEILING": "25",
    "CLUSTER": "prod",
}
CHOICES = {"batch_window", *(field.name for field in dataclasses.fields(Config))}
MODELS = (
    settings.ProvisionSettings,
    settings.TerminationSettings,
    settings.SweepSettings,
    settings.RefreshCatalogSettings,
)


def parser() -> argparse.ArgumentParser:
    return make_parser()


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_make_target_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, flags=re.MULTILINE))
    for target, *_ in pages.words_after(page, "make"):
        assert target in targets, f"make {target}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_dovetail_command_and_option_exists(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in pages.words_after(page, "dovetail"):
        if len(words) == 1 and words[0] in {"attach", "detach", "plan", "replay", "what-if", "why"}:
            continue  # named in a sentence, without what it asks for
        try:
            parsed = parser().parse_args(words)
        except SystemExit:
            pytest.fail(f"dovetail {' '.join(words)}: {capsys.readouterr().err}")
        if "scenario" in parsed:
            assert parsed.scenario in scenario_names()


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_choice_given_to_cdk_is_one_that_the_synthesis_takes(page: Path) -> None:
    for words in pages.words_after(page, "npx"):
        given = [after for word, after in pairwise(words) if word == "-c"]
        if words[0] != "cdk" or "--all" not in words or any("<" in choice for choice in given):
            continue
        choices = dict(Template(choice).substitute(VARIABLES).split("=", 1) for choice in given)
        assert choices.keys() <= CHOICES, choices
        assert read_config(choices).clusters


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_file_given_to_a_command_exists(page: Path) -> None:
    for program in ("kubectl", "dovetail", "docker"):
        for words in pages.words_after(page, program):
            for option, path in pairwise(words):
                if option in {"-f", "-k"} and path != "-":
                    assert (ROOT / path).exists(), f"{program} {option} {path}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in pages.links(page):
        path, _, wanted = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if wanted:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert wanted in {pages.anchor(title) for title in titles}, link


def test_each_page_of_evidence_opens_with_its_result() -> None:
    opened = sorted((ROOT / "docs" / "evidence").glob("*.md"))
    assert len(opened) > 5
    for page in opened:
        title, blank, result, after, *_ = page.read_text(encoding="utf-8").splitlines()
        assert title.startswith("# ")
        assert (blank, after) == ("", "")
        assert re.fullmatch(r"\*\*.+\.\*\*", result), page.name


def test_the_page_of_scenarios_lists_all() -> None:
    listed = [re.findall(r"\[([\w-]+)\]", row[0])[0] for row in pages.rows(SCENARIOS, "Scenarios")]
    assert sorted(listed) == list(scenario_names())


def test_the_picture_of_a_plan_is_what_the_command_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "plan.svg"
    assert main(["plan", "-f", str(ROOT / "examples" / "big"), "--svg", str(drawn)]) == 0
    assert drawn.read_text(encoding="utf-8") == PICTURE.read_text(encoding="utf-8")


def test_settings_exist_with_their_defaults() -> None:
    known = {field.name: field.default for model in MODELS for field in fields(model)}
    source = (ROOT / "infra" / "aws" / "config.py").read_text(encoding="utf-8")
    listed = [*pages.rows(SETTINGS, "Of the deployment"), *pages.rows(SETTINGS, "Of the functions")]
    for names, default, _ in listed:
        defaults = default.replace("`", "").split(", ")
        for name, given in zip(re.findall(r"`(\w+)`", names), defaults, strict=True):
            if name in known:
                text = _as_written(known[name])
                assert given.split(" ")[0] == text, name
            else:
                assert f'"{name}"' in source, f"context key {name}"


def test_every_choice_of_the_deployment_is_listed() -> None:
    listed = {
        name
        for names, *_ in pages.rows(SETTINGS, "Of the deployment")
        for name in re.findall(r"`(\w+)`", names)
    }
    choices = {field.name.removesuffix("_seconds") for field in dataclasses.fields(Config)}
    assert listed == choices


def _as_written(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else value


def test_every_glossary_identifier_exists_in_the_code() -> None:
    code = [p for room in ("shared", "functions") for p in (ROOT / room).rglob("*.py")]
    known = {word for p in code for word in re.findall(r"\w+", p.read_text(encoding="utf-8"))}
    listed = pages.rows(ROOT / "docs" / "glossary.md", "Glossary")
    assert len(listed) > 40
    for word, _, identifiers, _ in listed:
        for identifier in re.findall(r"`([^`]+)`", identifiers):
            assert identifier in known, f"{word}: {identifier}"


def test_texts_of_symptoms_are_said_by_the_code() -> None:
    said = [
        node.value
        for room in ("shared", "functions")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    page = ROOT / "docs" / "operations" / "symptoms.md"
    for heading in ("Launches", "Nodes that start", "Pods that wait", "Nodes that are replaced"):
        for text, where, *_ in pages.rows(page, heading):
            if text.startswith("kube-scheduler"):
                continue
            parts = [part for told in re.findall(r"`([^`]+)`", text) for part in told.split("…")]
            names = re.findall(r"(?:Event|reason|doctor`:) `([\w-]+)`", where)
            for part in (*filter(None, map(str.strip, parts)), *names):
                assert any(part in value for value in said), f"{heading}: {part}"


def test_packages_in_the_architecture_exist_and_none_is_missing() -> None:
    listed = " ".join(row[0] for row in pages.rows(ROOT / "docs" / "architecture.md", "The code"))
    named = set(re.findall(r"`(shared/\w+)`", listed))
    folders = {path.parent for path in (ROOT / "shared").glob("*/*.py")}
    assert named == {f"shared/{folder.name}" for folder in folders}


def test_calls_that_are_not_emulated_are_reported_as_such() -> None:
    listed = pages.rows(ROOT / "docs" / "evidence" / "emulated.md", "The AWS stand-in")
    told = {row[0].strip("`"): row[1] for row in listed if row[0].startswith("`AWS::")}
    assert told == json.loads(NOT_EMULATED.read_text(encoding="utf-8"))


def test_every_decision_is_listed_and_says_what_was_rejected() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(folder.glob("[0-9]*.md"))
    assert [path.name for path in records] == pages.links(folder / "README.md")
    for record in records:
        text = record.read_text(encoding="utf-8")
        assert re.search(r"^Status: (accepted|superseded by \[)", text, re.MULTILINE), record.name
        for part in ("## Context", "## Decision", "## Rejected", "## Consequences"):
            assert part in text, f"{record.name}: {part}"


def test_the_help_of_each_command_has_an_example_that_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    commands = re.findall(r"^    ([a-z-]+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 10
    for command in commands:
        with pytest.raises(SystemExit):
            parser().parse_args([command, "--help"])
        said = capsys.readouterr().out
        examples = re.findall(
            rf"^  (?:.* \| )?dovetail ({command}\b.*?)(?:   .*)?$", said, re.MULTILINE
        )
        assert examples, command
        for example in examples:
            parser().parse_args(shlex.split(example))


def test_the_rights_of_each_command_outside_the_local_world_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    commands = re.findall(r"^    ([a-z-]+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    rows = pages.rows(ROOT / "docs" / "security.md", "Rights of the commands")
    listed = {name for names, *_ in rows for name in re.findall(r"`([a-z-]+)`", names)}
    assert listed == {*commands} - {"break", "demo", "scenarios", "up"}


def test_help_says_what_each_command_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["demo", "--help"], ["up", "--help"]):
        with pytest.raises(SystemExit) as ended:
            parser().parse_args(words)
        assert ended.value.code == 0
    said = capsys.readouterr().out
    for text in ("Ctrl-C leaves nothing behind", "--report FILE", "exit codes"):
        assert text in said

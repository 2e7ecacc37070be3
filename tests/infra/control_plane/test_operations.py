"""Every alarm has its page, every page its parts, and every command of the pages exists."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.model import ServiceModel
from botocore.session import Session

from tests.infra.templates import Resource, Template

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "operations"
INDEX = FOLDER / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Pages that belong to no alarm.
GUIDES = {
    *("README", "brakes", "metrics", "region-outage", "symptoms", "troubleshooting", "uninstall"),
    "upgrade",
}
# What the command line makes of several calls or adds to all of them.
COMPOSED = {
    ("cloudformation", "deploy"),
    ("ecr", "get-login-password"),
    ("logs", "tail"),
    ("s3", "cp"),
    ("s3", "ls"),
    ("s3", "rm"),
    ("s3", "sync"),
}
GLOBAL = {
    "--query",
    "--output",
    "--region",
    "--max-items",
    "--cli-input-json",
    "--cli-binary-format",
}
# A page and an alarm tell the same truth in words of their own.
PARTS = ("## What it means", "## Where to look", "## What to do")
_CODE = re.compile(r"`(aws [^`]+)`|^ {4,}(aws .*)$", re.MULTILINE)


def _alarm_name(alarm: Resource) -> str:
    return alarm.logical_id.removeprefix("Alarms")[:-8]


@pytest.fixture(scope="module")
def alarms(control_plane: Template, clusters: Mapping[str, Template]) -> Mapping[str, Resource]:
    templates = (control_plane, clusters["prod"])
    return {
        _alarm_name(resource): resource
        for each in templates
        for resource in each.of("AWS::CloudWatch::Alarm")
    }


def test_every_alarm_names_a_page_that_names_it(alarms: Mapping[str, Resource]) -> None:
    listed = INDEX.read_text()
    rows = {
        name: re.findall(r"\]\(([\w-]+\.md)\)", row)
        for row in listed.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([A-Z]\w+)`", row)
    }

    assert set(rows) == set(alarms)
    for name, alarm in alarms.items():
        (page,) = re.findall(r"docs/operations/([\w-]+\.md)$", alarm.properties["AlarmDescription"])
        assert (FOLDER / page).is_file(), name
        assert rows[name] == [page]


def test_every_page_says_meaning_place_and_remedy(alarms: Mapping[str, Resource]) -> None:
    named = {alarm.properties["AlarmDescription"].rsplit("/", 1)[1] for alarm in alarms.values()}
    pages = {path.name for path in FOLDER.glob("*.md") if path.stem not in GUIDES}

    assert pages == named
    for page in sorted(pages):
        text = (FOLDER / page).read_text()
        places = [text.find(f"{part}\n") for part in PARTS]
        assert -1 not in places, page
        assert places == sorted(places), page


@cache
def _service(name: str) -> ServiceModel:
    return Session().get_service_model(name)


def _aws_commands(text: str) -> Iterator[list[str]]:
    joined = text.replace("\\\n", " ")
    for inline, block in _CODE.findall(joined):
        yield shlex.split((inline or block).replace("<", "'<").replace(">", ">'"))


def _wrong(words: list[str]) -> str:
    """Return what is wrong with the words of a command of `aws`, empty when nothing is."""
    service, operation = {"s3api": "s3"}.get(words[1], words[1]), words[2]
    if (service, operation) in COMPOSED:
        return ""
    try:
        model = _service(service)
    except UnknownServiceError:
        return f"no service {service}"
    operations = {
        xform_name(operation_name, "-"): operation_name for operation_name in model.operation_names
    }
    if operation not in operations:
        return f"no operation {service} {operation}"
    shape = model.operation_model(operations[operation]).input_shape
    known = GLOBAL | {f"--{xform_name(member, '-')}" for member in (shape.members if shape else ())}
    given = {word for word in words[3:] if word.startswith("--")}
    plain = {value.replace("--no-", "--") for value in given}
    return f"no option {sorted(plain - known)}" if plain - known else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_aws_on_a_page_exists(page: Path) -> None:
    for words in _aws_commands(page.read_text()):
        assert _wrong(words) == "", " ".join(words)


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert _wrong(["aws", "sqs", "redrive"]) == "no operation sqs redrive"
    assert _wrong(["aws", "ssm", "get-parameter", "--nam"]) == "no option ['--nam']"
    assert _wrong(["aws", "queues", "list"]) == "no service queues"


def test_what_kubectl_is_asked_for_on_a_page_exists() -> None:
    verbs = {
        "annotate",
        "apply",
        "cordon",
        "create",
        "delete",
        "describe",
        "drain",
        "get",
        "label",
        "logs",
        "patch",
        "rollout",
        "scale",
        "set",
    }
    for page in PAGES:
        for line in re.findall(r"^ {4,}kubectl (.*)$", page.read_text(), re.MULTILINE):
            words = [part for part in shlex.split(line) if not part.startswith("-")]
            assert verbs & set(words[:2]), f"{page.name}: kubectl {line}"


def test_the_ledger_s_alarms_watch_what_is_asked_of_it_and_no_more(
    alarms: Mapping[str, Resource],
) -> None:
    adapter = ROOT / "shared" / "aws" / "ledger" / "table.py"
    asked = {
        "".join(word.capitalize() for word in call.split("_"))
        for call in re.findall(r"self\._client\.(\w+)\(", adapter.read_text())
    }
    for name in ("LedgerFails", "LedgerThrottled"):
        watched = {
            dimension["Value"]
            for row in alarms[name].properties["Metrics"]
            if "MetricStat" in row
            for dimension in row["MetricStat"]["Metric"]["Dimensions"]
            if dimension["Name"] == "Operation"
        }

        assert watched == asked


def test_every_name_on_a_page_is_an_output_of_the_stack_or_explained(
    control_plane: Template,
) -> None:
    lists = INDEX.read_text().partition("## Names used on these pages")[2]
    explained = set(re.findall(r"`\$([A-Z_]+)` is", lists))
    used = {
        name
        for page in FOLDER.glob("*.md")
        for name in re.findall(r'"\$([A-Z_]+)["/]', page.read_text())
        if page.stem != "upgrade"
    }
    assert used == explained
    outputs = set(re.findall(r"`(\w+(?:Url|Arn|Table|Bucket))`", lists)) - {"StateMachineArn"}
    assert len(outputs) == 5
    assert outputs <= set(control_plane.raw["Outputs"])

"""An upgrade from each release finds its stacks, rows and definitions again."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.infra.release.kept import RECORDS, broken, kept
from tests.infra.templates import Template

RELEASES = sorted(RECORDS.glob("release-*.json"))
Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_an_upgrade_loses_nothing_of_a_release(
    path: Any, control_plane: Template, clusters: Mapping[str, Template]
) -> None:
    now = kept(control_plane, clusters["prod"])

    assert broken(json.loads(path.read_text()), json.loads(json.dumps(now))) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda it: it.update(rows=0), "rows: version 0 is older"),
        (lambda it: _table(it).update(KeySchema=[]), "control plane: Ledger"),
        (lambda it: it["resources"]["cluster"].clear(), "cluster: "),
        (lambda it: _fields(it).pop(".spec.limits"), ".spec.limits was object, is gone"),
        (lambda it: _fields(it).update({".spec.limits": "string"}), "is string"),
        (lambda it: _fields(it).update({".spec.new": "string required"}), "new and required"),
        (lambda it: it["definitions"].clear(), "is not served"),
    ],
)
def test_what_would_be_lost_is_told(change: Change, told: str) -> None:
    old = json.loads(RELEASES[0].read_text())
    new = copy.deepcopy(old)
    change(new)

    found = broken(old, new)
    assert found
    assert told in found[0]


def _table(record: dict[str, Any]) -> dict[str, Any]:
    (table,) = (
        entry
        for entry in record["resources"]["control plane"].values()
        if entry["type"] == "AWS::DynamoDB::Table"
    )
    found: dict[str, Any] = table
    return found


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    (definition,) = (
        entry for name, entry in record["definitions"].items() if name.startswith("provisioners.")
    )
    found: dict[str, Any] = definition["v1alpha5"]
    return found

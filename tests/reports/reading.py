"""Rows of the corpus: a report in own words, what is right and why, and its manifests."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).parent
ROWS: Final = HERE / "rows"
AREAS: Final = frozenset({"near", "admission", "machine", "other"})
_OPTIONAL: Final = frozenset({"settings", "waits_for"})
_BORDER: Final = "\n---\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One report.

    Attributes:
        name: Of its file, without the suffix.
        report: Where it stands.
        area: `near`, `admission`, `machine` or `other`.
        gist: What was reported, in own words.
        right: The right answer to the manifests.
        why: What makes it right.
        source: The page or file that says so.
        settings: As `--set key=value` takes them.
        waits_for: Which change lets it pass that does not pass yet; empty if it must pass.
        expect: What must hold of the plan, by the names of `judging.EXPECTATIONS`.
        manifests: What `dovetail plan -f` is given.
    """

    name: str
    report: str
    area: str
    gist: str
    right: str
    why: str
    source: str
    settings: Mapping[str, Any]
    waits_for: str
    expect: Mapping[str, Any]
    manifests: str


def read_rows() -> list[Row]:
    """Return all rows, by name."""
    return [read_row(path) for path in sorted(ROWS.glob("*.yaml"))]


def read_row(path: Path) -> Row:
    """Return the row that a file holds.

    Raises:
        ValueError: If its first document is not as README.md says.
    """
    first, border, rest = path.read_text(encoding="utf-8").partition(_BORDER)
    raw = yaml.safe_load(first)
    known = {field.name for field in fields(Row)} - {"name", "manifests"}
    if not border or not isinstance(raw, dict):
        raise ValueError(f"{path.name}: write the row, then --- and its manifests")
    if wrong := sorted((raw.keys() - known) | (known - _OPTIONAL - raw.keys())):
        raise ValueError(f"{path.name}: {', '.join(wrong)}: not known, or not written")
    if raw["area"] not in AREAS:
        raise ValueError(f"{path.name}: area: {raw['area']}: write one of {sorted(AREAS)}")
    for field in ("report", "source"):
        if not str(raw[field]).startswith("https://"):
            raise ValueError(f"{path.name}: {field}: {raw[field]}: write where it stands: https://")
    if not isinstance(raw["expect"], dict) or not raw["expect"]:
        raise ValueError(f"{path.name}: expect: write what must hold of the plan")
    optional = {"settings": {}, "waits_for": ""}
    return Row(name=path.stem, manifests=_with_defaults(rest), **{**optional, **raw})


def _with_defaults(manifests: str) -> str:
    """Return the manifests with an EC2NodeClass and a NodePool where they have none."""
    node_class, _, node_pool = (HERE / "default.yaml").read_text("utf-8").partition(_BORDER)
    kinds = {
        line.removeprefix("kind:").strip()
        for line in manifests.splitlines()
        if line.startswith("kind:")
    }
    added = [] if kinds & {"EC2NodeClass", "Provisioner"} else [node_class]
    added += [] if kinds & {"NodePool", "Provisioner"} else [node_pool]
    return _BORDER.join([manifests.rstrip("\n"), *(text.rstrip("\n") for text in added)]) + "\n"

"""The table of every right for docs/security.md, from the templates; `make rights` writes it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from infra.aws.app import build_app
from tests.infra.policies.granted import Grant, Grants, widened
from tests.infra.templates import CONTEXT, CONTROL_PLANE, Template, cluster_stack, listed
from tools.made_part import replaced

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "security.md"
MARKS: Final = ("<!-- made by tests/infra/policies/rights_table.py -->", "<!-- end -->")
CLUSTER: Final = "prod"
_PLAIN: Final = {
    "eu-west-1": "<Region>",
    "123456789012": "<account>",
    "arn:aws:": "arn:<partition>:",
    "-prod-": "-<cluster>-",
    "cluster/prod": "cluster/<cluster>",
    "clusters/prod": "clusters/<cluster>",
}


def grants(control_plane: Template, cluster: Template) -> Grants:
    """Return the statements of the control plane and of one cluster."""
    return Grants({"": control_plane, CLUSTER: cluster})


def table(rights: Grants) -> str:
    """Return the rights as Markdown, those of roles first."""
    rows = [
        _row(grant)
        for grant in sorted(rights.all, key=lambda entry: (not entry.principal, entry.name))
    ]
    head = (
        "| whose | statement | effect | actions | on | only when | bounds tested |\n"
        "|---|---|---|---|---|---|---|"
    )
    return f"{head}\n" + "\n".join(dict.fromkeys(rows))


def _row(grant: Grant) -> str:
    statement = grant.statement
    tested = "test_queues_and_bucket_refuse_what_comes_without_tls"
    if statement["Effect"] == "Allow":
        tested = ", ".join(dict.fromkeys(bound for bound, _ in widened(statement)))
    cells = (
        grant.owner.replace(f" of {CLUSTER}", " of <cluster>"),
        str(statement.get("Sid", "–")),
        statement["Effect"],
        _lines(listed(statement["Action"])),
        _lines(listed(statement.get("Resource", "*"))),
        _lines(_conditions(statement)),
        tested,
    )
    return f"| {' | '.join(_shown(cell) for cell in cells)} |"


def _conditions(statement: Mapping[str, Any]) -> list[str]:
    found = [
        _condition(operator, key, value)
        for operator, keys in statement.get("Condition", {}).items()
        for key, value in keys.items()
    ]
    if "Principal" in statement and statement["Principal"] != "*":
        who = [
            entry for values in dict(statement["Principal"]).values() for entry in listed(values)
        ]
        found.append(f"asked by {' or '.join(map(str, who))}")
    return found or ["–"]


def _condition(operator: str, key: str, value: Any) -> str:
    if operator == "Null":
        return f"{key} is {'absent' if str(value) == 'true' else 'there'}"
    each = "each " if operator.startswith("ForAllValues:") else ""
    return f"{each}{key} = {' or '.join(map(str, listed(value)))}"


def _lines(values: list[Any]) -> str:
    return "<br>".join(str(value) for value in values)


def _shown(text: str) -> str:
    for given, plain in _PLAIN.items():
        text = text.replace(given, plain)
    return "<br>".join(
        f"`{part}`" if any(mark in part for mark in "*:<") else part
        for part in text.replace("|", "\\|").split("<br>")
    )


def main() -> int:
    """Write the table into the page."""
    with TemporaryDirectory() as folder:
        build_app(CONTEXT, outdir=folder).synth()
        read = [
            Template(Path(folder) / f"{value}.template.json")
            for value in (CONTROL_PLANE, cluster_stack(CLUSTER))
        ]
    text = table(grants(*read))
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), text, MARKS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

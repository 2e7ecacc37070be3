"""The table of every right for docs/security.md, from the templates; `make rights` writes it."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from infra.aws.app import build_app
from tests.infra.policies.granted import Grant, Grants, owner_of
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


def table(rights: Grants, why: Mapping[str, str]) -> str:
    """Return the rights as Markdown: a row for each role, then for each resource with a policy.

    Args:
        why: What each role is for, by its owner.
    """
    by_owner: dict[str, list[Grant]] = {}
    trust: dict[str, list[Grant]] = {}
    for grant in sorted(rights.all, key=lambda entry: (not entry.principal, entry.name)):
        owner = grant.owner.removeprefix("trust of ")
        (by_owner if owner == grant.owner else trust).setdefault(owner, []).append(grant)
    rows = [
        _row(owner, why.get(owner, _of_resource(owner)), grants_, trust.get(owner, []))
        for owner, grants_ in by_owner.items()
    ]
    # A role that no statement of a template gives a right has those of managed policies.
    rows += [
        _row(owner, why[owner], [], grants_)
        for owner, grants_ in trust.items()
        if owner not in by_owner
    ]
    head = "| whose | why | may | assumed by |\n|---|---|---|---|"
    return f"{head}\n" + "\n".join(rows)


def reasons(templates: Mapping[str, Template]) -> dict[str, str]:
    """Return what each role is for, by its owner: its description.

    Args:
        templates: By the name of their cluster, empty for the control plane.
    """
    return {
        owner_of(role, cluster): str(role.properties["Description"])
        for cluster, template in templates.items()
        for role in template.of("AWS::IAM::Role")
    }


def _of_resource(owner: str) -> str:
    return (
        "EventBridge brings events" if owner.startswith("calls of ") else "policy of the resource"
    )


def _row(owner: str, why: str, rights: Sequence[Grant], trust: Sequence[Grant]) -> str:
    cells = (
        owner.replace(f" of {CLUSTER}", " of <cluster>"),
        why.replace(CLUSTER, "<cluster>"),
        "<br>".join(map(_told, rights)) or "what managed policies of EKS for nodes allow",
        "<br>".join("; ".join(_conditions(grant.statement)) for grant in trust) or "–",
    )
    return f"| {' | '.join(_shown(cell) for cell in cells)} |"


def _told(grant: Grant) -> str:
    """Return a statement in a line: what it allows or refuses, to what, and when only."""
    statement = grant.statement
    effect = "may not " if statement["Effect"] == "Deny" else ""
    actions = ", ".join(map(str, listed(statement["Action"])))
    resources = ", ".join(map(str, listed(statement.get("Resource", "*"))))
    conditions = _conditions(statement)
    when = "" if conditions == ["–"] else f" only when {' and '.join(conditions)}"
    named = f"{statement['Sid']}: " if statement.get("Sid") else ""
    return f"{named}{effect}{actions} on {resources}{when}"


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
    text = table(grants(*read), reasons({"": read[0], CLUSTER: read[1]}))
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), text, MARKS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

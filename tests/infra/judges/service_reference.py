"""AWS's service authorization reference, as data: can each part of each statement match at all?

A statement matches a call only if the call is checked against a resource of the kind that the
statement names, and its condition keys are given there. Keys that the reference lists as
`ArrayOf...` need a set operator; the others must have none.

Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
and https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
(2026-11).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.infra.judges.programs import node_packages
from tests.infra.judges.verdicts import Verdict
from tests.infra.policies.granted import Grant, Grants
from tests.infra.templates import listed

# Given with each call, so the tables do not name them. lambda:SourceFunctionArn is of that kind.
# Sources: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html,
# https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html (2026-11).
_GLOBAL: Final = frozenset(
    {
        "aws:principalarn",
        "aws:requestedregion",
        "aws:securetransport",
        "aws:sourceaccount",
        "aws:sourcearn",
        "lambda:sourcefunctionarn",
    }
)
_SET_OPERATORS: Final = ("ForAllValues:", "ForAnyValue:")
_VARIABLE: Final = re.compile(r"\$\{[^}]+\}|<[^>]+>")

_BUS: Final = "arn:aws:events:eu-west-1:123456789012:event-bus/dovetail"
_INTERFACES: Final = "arn:aws:ec2:eu-west-1:123456789012:network-interface/*"
# It must be able to say no.
_WRONG: Final[Mapping[str, Mapping[str, Any]]] = {
    "a key of several values without a set operator": {
        "Action": "events:PutEvents",
        "Resource": _BUS,
        "Condition": {"StringEquals": {"events:source": "dovetail.prod"}},
    },
    "a key that the type has not": {
        "Action": "ec2:RunInstances",
        "Resource": _INTERFACES,
        "Condition": {"StringEquals": {"aws:ResourceTag/team": "red"}},
    },
    "a type that the action is not checked against": {
        "Action": "ec2:CreateFleet",
        "Resource": _INTERFACES,
    },
    "an account where the ARN has none": {
        "Action": "ec2:RunInstances",
        "Resource": _INTERFACES.replace("network-interface", "snapshot"),
    },
    "an action that is none": {"Action": "ec2:LaunchInstances", "Resource": "*"},
}


def ask(grants: Grants) -> Verdict:
    """Ask of each action on each resource of each statement.

    Raises:
        Problem: If the reference cannot be had.
    """
    folder = node_packages() / "@cloud-copilot" / "iam-data"
    reference = _Reference(folder / "data")
    asked = 0
    found: dict[str, None] = {}
    for grant in grants.all:
        for action in listed(grant.statement["Action"]):
            # One with a wildcard refuses whatever it matches.
            if "*" in action:
                continue
            for resource in listed(grant.statement.get("Resource", "*")):
                asked += 1
                found.update(dict.fromkeys(_wrong(reference, grant, action, resource)))
    for what, statement in _WRONG.items():
        asked += 1
        grant = Grant(owner=what, number=0, principal="", statement=statement)
        if not any(_wrong(reference, grant, statement["Action"], statement["Resource"])):
            found[f"it does not notice {what}"] = None
    version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
    return Verdict(version=version, asked=asked, disagreements=tuple(found))


def _wrong(reference: "_Reference", grant: Grant, action: str, resource: str) -> Iterator[str]:
    known = reference.action(action)
    if known is None:
        yield f"{grant.name}: there is no action {action}"
        return
    types = [kind for kind in known.types if _overlaps(resource, kind.arn)]
    if known.types and not types:
        yield f"{grant.name}: {action} is not checked against {resource}"
        return
    if not known.types and resource != "*":
        yield f"{grant.name}: {action} knows no resource, given {resource}"
        return
    offered = known.keys | {key for kind in types for key in kind.keys}
    for operator, keys in grant.statement.get("Condition", {}).items():
        for key in keys:
            plain = key.lower()
            if plain in _GLOBAL:
                continue
            fitting = next((name for name in offered if _is_key(plain, name)), None)
            if fitting is None:
                yield f"{grant.name}: {action} on {resource} has no key {key}"
                continue
            several = reference.type_of(action, fitting).startswith("ArrayOf")
            if operator != "Null" and several != operator.startswith(_SET_OPERATORS):
                values = "several values" if several else "one value"
                yield f"{grant.name}: {key} of {action} has {values}, asked with {operator}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A resource type of an action.

    Attributes:
        arn: Its pattern, with wildcards.
        keys: Condition keys in lower case, variables as they stand.
    """

    arn: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    types: tuple[_Kind, ...]
    keys: frozenset[str]


class _Reference:
    """The reference's tables in a folder of JSON files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = cache(self._file)

    def action(self, name: str) -> _Action | None:
        """Return what the reference knows of an action, None if it has none of this name."""
        service, _, plain = name.partition(":")
        found = self._read("actions", service).get(plain.lower())
        if found is None:
            return None
        kinds = self._read("resourceTypes", service)
        types = tuple(
            _Kind(
                arn=_VARIABLE.sub("*", kinds[one["name"].lower()]["arn"]),
                keys=_lower(one["conditionKeys"]),
            )
            for one in found["resourceTypes"]
            # A type without a pattern is another service's and cannot be named here.
            if one["name"].lower() in kinds
        )
        return _Action(types=types, keys=_lower(found["conditionKeys"]))

    def type_of(self, action: str, key: str) -> str:
        """Return the type of a condition key, such as `ArrayOfString`."""
        return str(self._read("conditionKeys", action.partition(":")[0])[key]["type"])

    def _file(self, kind: str, service: str) -> Mapping[str, Any]:
        path = self._folder / kind / f"{service}.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _lower(keys: list[str]) -> frozenset[str]:
    return frozenset(key.lower() for key in keys)


def _is_key(key: str, name: str) -> bool:
    """Return whether a key is the reference's, which may have a variable, as of a tag."""
    expression = "".join(".+" if part is None else re.escape(part) for part in _parts(name))
    return re.fullmatch(expression, key) is not None


def _parts(name: str) -> Iterator[str | None]:
    """Yield the texts of a name with None between them, for each variable."""
    first, *others = _VARIABLE.split(name)
    yield first
    for other in others:
        yield None
        yield other


def _overlaps(one: str, other: str) -> bool:
    """Return whether an ARN fits two patterns; no wildcard reaches over the first five colons."""
    if one == "*":
        return True
    mine, others = one.split(":", 5), other.split(":", 5)
    return len(mine) == len(others) and all(map(_share, mine, others))


@cache
def _share(one: str, other: str) -> bool:
    """Return whether a text fits two patterns with `*`."""
    if one.startswith("*"):
        return _share(one[1:], other) or (bool(other) and _share(one, other[1:]))
    if other.startswith("*"):
        return _share(other, one)
    if not one or not other:
        return one == other
    return one[0] == other[0] and _share(one[1:], other[1:])

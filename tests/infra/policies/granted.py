"""Every statement of the templates that grants or refuses, and what they decide together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.infra.policies.evaluation import Ask, Statement, applies
from tests.infra.templates import Resource, Template, listed

_ASSUMING = ("sts:AssumeRole", "sts:TagSession")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One statement and where it stands.

    Attributes:
        owner: Whose it is, for people: `provision`, `launch of demo`, `queue Wake` …
        number: Its place among the owner's statements.
        principal: ARN of the role it belongs to; empty for a statement of a resource.
    """

    owner: str
    number: int
    principal: str
    statement: Statement

    @property
    def name(self) -> str:
        """Owner and id, or number where it has no id."""
        return f"{self.owner}: {self.statement.get('Sid', self.number)}"


class Grants:
    """All statements of some templates."""

    def __init__(self, templates: Mapping[str, Template]) -> None:
        """Collect them.

        Args:
            templates: By the name of their cluster, empty for the control plane.
        """
        self.all = tuple(
            grant for name, template in templates.items() for grant in _collect(name, template)
        )

    def allows(
        self, ask: Ask, instead: Mapping[int, Statement] | None = None, *, both: bool = True
    ) -> bool:
        """Return whether AWS would do what is asked.

        A role is assumed when its trust allows it and, for a role that asks, its own statements
        do, too; other asks need one of both.

        Args:
            instead: Statements to be taken for those of `all`, by index.
            both: Whether a role needs its own statements and the trust; if not, one is enough.
        """
        own, of_resource = False, False
        for index, grant in enumerate(self.all):
            if grant.principal not in ("", ask.principal):
                continue
            statement = (instead or {}).get(index, grant.statement)
            if not applies(statement, ask):
                continue
            if statement["Effect"] == "Deny":
                return False
            own |= bool(grant.principal)
            of_resource |= not grant.principal
        if both and ask.action in _ASSUMING and ask.principal.startswith("arn:"):
            return own and of_resource
        return own or of_resource


def _collect(cluster: str, template: Template) -> Iterator[Grant]:
    for role in template.of("AWS::IAM::Role"):
        arn = str(template.resolve({"Fn::GetAtt": [role.logical_id, "Arn"]}))
        owner = owner_of(role, cluster)
        for number, entry in enumerate(template.statements(role.logical_id)):
            yield Grant(owner=owner, number=number, principal=arn, statement=entry)
        trust = role.properties["AssumeRolePolicyDocument"]["Statement"]
        for number, entry in enumerate(trust):
            statement = {**entry, "Resource": arn}
            yield Grant(owner=f"trust of {owner}", number=number, principal="", statement=statement)
    for kind in ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"):
        for policy in template.of(kind):
            owner = policy.logical_id.rsplit("Policy", 1)[0]
            for number, property_ in enumerate(policy.properties["PolicyDocument"]["Statement"]):
                yield Grant(owner=owner, number=number, principal="", statement=property_)
    for permission in template.of("AWS::Lambda::Permission"):
        yield _permission(permission)


def _permission(permission: Resource) -> Grant:
    given = permission.properties
    return Grant(
        owner=f"calls of {given['FunctionName'].rsplit(':', 1)[1]}",
        number=0,
        principal="",
        statement={
            "Sid": given["SourceArn"].rsplit("/", 1)[1],
            "Effect": "Allow",
            "Principal": {"Service": given["Principal"]},
            "Action": given["Action"],
            "Resource": given["FunctionName"],
            "Condition": {"ArnLike": {"aws:SourceArn": given["SourceArn"]}},
        },
    )


def owner_of(role: Resource, cluster: str) -> str:
    """Return whose role it is, for people."""
    what = role.logical_id.split("Role")[0]
    return f"{what} of {cluster}" if cluster else what


def widened(statement: Statement) -> Iterator[tuple[str, Statement]]:
    """Yield a statement without each one of its bounds: (which bound, statement)."""
    if not any("*" in entry for entry in listed(statement["Action"])):
        yield "Action", {**statement, "Action": "*"}
    if "*" not in listed(statement.get("Resource", "*")):
        yield "Resource", {**statement, "Resource": "*"}
    if "Principal" in statement and _names_somebody(statement["Principal"]):
        yield "Principal", {**statement, "Principal": "*"}
    condition = statement.get("Condition", {})
    for operator, keys in condition.items():
        for key in keys:
            rest = {name: entry for name, entry in keys.items() if name != key}
            yield key, {**statement, "Condition": {**condition, operator: rest}}


def _names_somebody(principal: Any) -> bool:
    return principal not in ("*", {"AWS": "*"})

"""Each statement is asked for by its role: compared with what runs have recorded.

`python -m tests.e2e.asks` writes the record; tests/e2e/test_permissions.py plays a scenario with
everything refused that a role lacks.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.e2e.asks import read
from tests.infra.policies import asked
from tests.infra.policies.granted import Grant, Grants
from tests.infra.templates import Template, listed

# Permissions that AWS itself uses under a role, or checks besides a call: no recorded call shows
# them.
BESIDES: Final[Mapping[str, str]] = {
    "ec2:CreateTags": "checked with each call that makes something with tags",
    "iam:PassRole": "checked with each launch that names an instance profile",
    "logs:CreateLogStream": "Lambda's runtime",
    "logs:PutLogEvents": "Lambda's runtime",
    "sqs:DeleteMessage": "Lambda's pollers of the wake queue",
    "sqs:GetQueueAttributes": "Lambda's pollers and destinations",
    "sqs:GetQueueUrl": "Lambda's destinations",
    "sqs:ReceiveMessage": "Lambda's pollers of the wake queue",
}
_LEDGER: Final = "the statement of the ledger is one for all functions"
_LARGE: Final = "copies are kept of large clusters; here all are small"
_ASIDE: Final = "a message that cannot be read is put aside"
_NEVER_JOINED: Final = "its timer acts on machines that do not join in time; here all of them do"
# What the recorded scenarios do not come to, and who asks for it. Whether what a function calls is
# granted does not depend on them: tests/simulation/laws/rights.py holds each call of all schedules
# to the function's plan.
UNSEEN: Final[Mapping[tuple[str, str], str]] = {
    ("bind", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("bind", "sqs:SendMessage"): _ASIDE,
    ("emptiness", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("emptiness", "sqs:SendMessage"): _ASIDE,
    ("expiration", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("expiration", "states:StartExecution"): "unused nodes go to termination, long waits go on",
    ("heartbeat", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("heartbeat", "dynamodb:DeleteItem"): _LEDGER,
    ("heartbeat", "dynamodb:Query"): _LEDGER,
    ("heartbeat", "sqs:SendMessage"): _ASIDE,
    ("inside", "ec2:DescribeInstances"): "registration, of a machine that has not joined",
    ("interrupt", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("interrupt", "dynamodb:DeleteItem"): "a machine that ends before it is a node",
    ("provision", "s3:ListBucket"): "S3 tells a missing key only to who may list",
    ("refresh_catalog", "s3:GetObject"): "the hourly look how old the catalogue is",
    ("refresh_catalog", "s3:ListBucket"): "the same, where there is none yet",
    ("refresh_catalog", "sqs:SendMessage"): _ASIDE,
    **{
        ("registration", action): _NEVER_JOINED
        for action in (
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "lambda:InvokeFunction",
            "sqs:SendMessage",
            "ssm:GetParameter",
            "ssm:GetParametersByPath",
            "states:StartExecution",
            "sts:AssumeRole",
        )
    },
    ("replacement", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("sweep", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("sweep", "dynamodb:DeleteItem"): "rows of timers whose node is gone",
    ("sweep", "s3:ListBucket"): _LARGE,
    ("sweep", "s3:PutObject"): _LARGE,
    ("sweep", "states:StartExecution"): "a timer that was lost",
    ("terminate", "ec2:DeleteLaunchTemplate"): "sweep, of a template that nothing uses any more",
    ("termination", "dynamodb:ConditionCheckItem"): _LEDGER,
    ("termination", "sqs:SendMessage"): _ASIDE,
}
RECORD: Final = read()


@pytest.fixture(scope="module")
def statements(control_plane: Template, clusters: Mapping[str, Template]) -> tuple[Grant, ...]:
    """The statements of functions and of the cluster `demo`, which runs use."""
    return tuple(_of_ours(Grants({"": control_plane, "demo": clusters["demo"]})))


def _of_ours(grants: Grants) -> Iterator[Grant]:
    for grant in grants.all:
        if grant.statement["Effect"] == "Allow" and _whose(grant):
            yield grant


def _whose(grant: Grant) -> str:
    """Return the role of a statement as the record names it, empty for others."""
    for right in ("inside", "launch", "terminate"):
        if grant.principal == asked.cluster_role("demo", right):
            return right
    for function in (*asked.RIGHTS, *asked.ALONE):
        if grant.principal == asked.role_of(function):
            return function
    return ""


def _actions(grant: Grant) -> set[str]:
    return {str(entry) for entry in listed(grant.statement["Action"])}


def test_whatever_a_run_asks_for_is_granted(statements: tuple[Grant, ...]) -> None:
    granted: dict[str, set[str]] = {}
    for grant in statements:
        granted.setdefault(_whose(grant), set()).update(_actions(grant))

    assert {"provision", "launch", "bind", "inside", "termination", "terminate"} <= set(RECORD)
    lacking = {(role, value) for role, found in RECORD.items() for value in found - granted[role]}
    assert lacking == set()


def test_what_is_granted_and_no_run_has_asked_for_is_listed_with_its_reason(
    statements: tuple[Grant, ...],
) -> None:
    """No hand-written table of asks stands between: only what runs did not come to is listed."""
    idle = {
        (_whose(grant), action)
        for grant in statements
        for action in _actions(grant)
        if action not in RECORD.get(_whose(grant), set()) | BESIDES.keys()
    }

    assert sorted(idle ^ UNSEEN.keys()) == []
    assert all(UNSEEN.values())

"""The evaluator decides as IAM documents it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.infra.policies.evaluation import Ask, Value, applies, arn_matches, is_allowed

ROLE = "arn:aws:iam::123456789012:role/some"
THING = "arn:aws:sqs:eu-west-1:123456789012:thing"


def _ask(action: str = "sqs:SendMessage", resource: str = THING, **context: str) -> Ask:
    return Ask(
        principal=ROLE,
        action=action,
        resource=resource,
        context={key.replace("__", ":"): value for key, value in context.items()},
    )


def _statement(effect: str = "Allow", **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": "sqs:SendMessage", "Resource": THING, **more}


def test_a_request_that_no_statement_matches_is_denied() -> None:
    assert not is_allowed(_ask(), [])
    assert not is_allowed(_ask("sqs:DeleteMessage"), [_statement()])


def test_one_deny_outweighs_every_allow() -> None:
    assert is_allowed(_ask(), [_statement()])
    assert not is_allowed(_ask(), [_statement(), _statement("Deny", Action="sqs:*")])


def test_actions_are_compared_without_case_and_with_wildcards() -> None:
    assert applies(_statement(Action="SQS:send*"), _ask())
    assert not applies(_statement(Action="sqs:Send?"), _ask())


@pytest.mark.parametrize(
    ("pattern", "arn", "matches"),
    [
        ("*", THING, True),
        ("arn:aws:ec2:eu-west-1:1:instance/*", "arn:aws:ec2:eu-west-1:1:instance/i-1", True),
        ("arn:aws:ec2:eu-west-1:1:instance/*", "arn:aws:ec2:eu-west-1:1:volume/v-1", False),
        ("arn:aws:ec2:*:1:instance/*", "arn:aws:ec2:us-east-1:1:instance/i-1", True),
        ("arn:aws:*:1:instance/i", "arn:aws:ec2:us-east-1:1:instance/i", False),
        ("arn:aws:ec2:eu-west-1:1:instance/i-?", "arn:aws:ec2:eu-west-1:1:instance/i-22", False),
        ("arn:aws:s3:::bucket/a/*", "arn:aws:s3:::bucket/a/b/c", True),
        ("arn:aws:s3:::bucket/[ab]", "arn:aws:s3:::bucket/a", False),
    ],
)
def test_arns_are_compared_part_by_part(pattern: str, arn: str, *, matches: bool) -> None:
    assert arn_matches(pattern, arn) is matches


@pytest.mark.parametrize(
    ("condition", "context", "holds"),
    [
        ({"StringEquals": {"aws:RequestTag/a": "x"}}, {"aws__requesttag/a": "x"}, True),
        ({"StringEquals": {"aws:RequestTag/a": "x"}}, {"aws__RequestTag/a": "y"}, False),
        ({"StringEquals": {"aws:RequestTag/a": "x"}}, {}, False),
        ({"StringEquals": {"k:a": ["x", "y"]}}, {"k__a": "y"}, True),
        ({"StringEquals": {"k:a": "x", "k:b": "x"}}, {"k__a": "x"}, False),
        ({"StringEquals": {"k:a": "*"}}, {"k__a": "x"}, False),
        ({"StringLike": {"k:a": "x*"}}, {"k__a": "xyz"}, True),
        ({"StringLike": {"k:a": "*"}}, {}, False),
        ({"StringLike": {"k:a": "x*"}, "Bool": {"k:b": "true"}}, {"k__a": "x"}, False),
        ({"Bool": {"aws:SecureTransport": "false"}}, {"aws__SecureTransport": "False"}, True),
        ({"NumericLessThanEquals": {"k:a": "2"}}, {"k__a": "2"}, True),
        ({"NumericLessThanEquals": {"k:a": "2"}}, {"k__a": "10"}, False),
        ({"NumericLessThanEquals": {"k:a": "2"}}, {"k__a": "two"}, False),
        ({"NumericLessThanEquals": {"k:a": "2"}}, {}, False),
        ({"ArnLike": {"aws:SourceArn": f"{THING}*"}}, {"aws__SourceArn": THING}, True),
        ({"ArnEquals": {"aws:SourceArn": THING}}, {"aws__SourceArn": f"{THING}x"}, False),
    ],
)
def test_every_key_of_every_operator_must_hold(
    condition: dict[str, Any], context: dict[str, str], *, holds: bool
) -> None:
    assert applies(_statement(Condition=condition), _ask(**context)) is holds


ALL, ANY = "ForAllValues:StringEquals", "ForAnyValue:StringEquals"


@pytest.mark.parametrize(
    ("condition", "context", "holds"),
    [
        ({ALL: {"k:a": ["x", "y"]}}, {"k:a": ("x",)}, True),
        ({ALL: {"k:a": ["x", "y"]}}, {"k:a": ("x", "y", "x")}, True),
        ({ALL: {"k:a": ["x", "y"]}}, {"k:a": ("x", "z")}, False),
        ({ALL: {"k:a": "x"}}, {}, True),
        ({ALL: {"k:a": "x"}, "Null": {"k:a": "false"}}, {}, False),
        ({ALL: {"k:a": "x"}, "Null": {"k:a": "false"}}, {"k:a": ("x",)}, True),
        ({ANY: {"k:a": ["x", "y"]}}, {"k:a": ("z", "y")}, True),
        ({ANY: {"k:a": ["x", "y"]}}, {"k:a": ("z",)}, False),
        ({ANY: {"k:a": "x"}}, {}, False),
        # The guide demands a set operator for a key of several values, also where it has one.
        ({"StringEquals": {"k:a": "x"}}, {"k:a": ("x",)}, False),
    ],
)
def test_a_key_of_several_values_needs_a_set_operator(
    condition: dict[str, Any], context: dict[str, Value], *, holds: bool
) -> None:
    assert applies(_statement(Condition=condition), replace(_ask(), context=context)) is holds


def test_an_unknown_operator_is_never_skipped() -> None:
    with pytest.raises(KeyError, match="NumericLessThan"):
        applies(_statement(Condition={"NumericLessThan": {"k:a": "3"}}), _ask(k__a="1"))


def test_a_principal_is_a_role_a_service_or_a_wildcard() -> None:
    service = {"Service": "events.amazonaws.com"}

    assert applies(_statement(Principal={"AWS": [ROLE]}), _ask())
    assert applies(_statement(Principal="*"), _ask())
    assert applies(_statement(Principal={"AWS": "*"}), _ask())
    assert not applies(_statement(Principal=service), _ask())

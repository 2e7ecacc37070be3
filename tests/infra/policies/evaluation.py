"""IAM's own decision, as far as our policies need it: deny first, then any allow.

Written here because no maintained evaluator with conditions stands under a licence that a test
suite of this project can take.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
and https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
(2026-08), and for keys of several values
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
(2026-11).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tests.infra.templates import listed

Statement: TypeAlias = Mapping[str, Any]
# Of a condition key in a request: a tuple where the key may have several.
Value: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One authorisation that AWS makes; a call may make several.

    Attributes:
        principal: ARN of a role, or the name of a service.
        action: As in `ec2:RunInstances`.
        resource: ARN, `*` for actions that know no resource.
        context: Condition keys and their values; keys are compared without case. A key that the
            service authorization reference lists as `ArrayOf...` has a tuple, also of one value.
    """

    principal: str
    action: str
    resource: str
    context: Mapping[str, Value] = field(default_factory=dict, hash=False)


def _glob(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    expression = "".join(
        ".*" if value == "*" else "." if value == "?" else re.escape(value) for value in pattern
    )
    return re.fullmatch(expression, text, re.IGNORECASE if ignore_case else 0) is not None


def arn_matches(pattern: str, arn: str) -> bool:
    """Return whether an ARN fits a pattern: a wildcard does not reach over a colon of the first
    five parts."""
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(given) and all(map(_glob, wanted, given))


# A negated operator holds when the key is absent; the others do not.
_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "StringEquals": lambda wanted, given: wanted == given,
    "StringLike": _glob,
    "ArnEquals": arn_matches,
    "ArnLike": arn_matches,
    "NumericLessThanEquals": lambda wanted, given: given.isdecimal() and int(given) <= int(wanted),
    "Bool": lambda wanted, given: wanted.lower() == given.lower(),
}

_QUANTIFIERS: Final[Mapping[str, Callable[[Iterable[bool]], bool]]] = {
    "": all,
    "ForAllValues": all,
    "ForAnyValue": any,
}


def _condition_holds(condition: Mapping[str, Any], context: Mapping[str, Value]) -> bool:
    """Return whether every key of every operator holds.

    Raises:
        KeyError: If an operator is none that is evaluated here.
    """
    given = {key.lower(): value for key, value in context.items()}
    return all(
        _key_holds(operator, wanted, given.get(key.lower()))
        for operator, keys in condition.items()
        for key, wanted in keys.items()
    )


def _key_holds(operator: str, wanted: Any, value: Value | None) -> bool:
    """Return whether a key holds.

    ForAllValues holds for a key that is absent, ForAnyValue does not. The guide demands one of the
    two for a key of several values; without, no value of it holds here, which refuses most.
    """
    if operator == "Null":
        return (value is None) is (str(wanted) == "true")
    quantifier, _, plain = operator.rpartition(":")
    compare = _OPERATORS[plain.removesuffix("IfExists")]
    if value is None:
        return quantifier == "ForAllValues" or plain.endswith("IfExists")
    if isinstance(value, tuple) and not quantifier:
        return False
    parts = value if isinstance(value, tuple) else (value,)
    holds = _QUANTIFIERS[quantifier]
    return holds(any(compare(str(entry), part) for entry in listed(wanted)) for part in parts)


def _principal_matches(principal: Any, asking: str) -> bool:
    if principal == "*":
        return True
    accepted = ["*", asking]
    if asking.startswith("arn:"):
        # An account as principal includes all identities in it.
        partition, account = asking.split(":")[1], asking.split(":")[4]
        accepted.append(f"arn:{partition}:iam::{account}:root")
    return any(entry in accepted for values in dict(principal).values() for entry in listed(values))


def applies(statement: Statement, ask: Ask) -> bool:
    """Return whether a statement matches a request, to allow or to deny it."""
    if "Principal" in statement and not _principal_matches(statement["Principal"], ask.principal):
        return False
    return (
        any(_glob(entry, ask.action, ignore_case=True) for entry in listed(statement["Action"]))
        and any(
            arn_matches(entry, ask.resource) for entry in listed(statement.get("Resource", "*"))
        )
        and _condition_holds(statement.get("Condition", {}), _context(ask))
    )


def _context(ask: Ask) -> Mapping[str, Value]:
    """Return the keys of an ask, with those that every ask of a role has."""
    own = {"aws:PrincipalArn": ask.principal} if ask.principal.startswith("arn:") else {}
    return {**own, **ask.context}


def is_allowed(ask: Ask, statements: Iterable[Statement]) -> bool:
    """Return whether these statements together allow what is asked."""
    fitting = [statement for statement in statements if applies(statement, ask)]
    return bool(fitting) and all(entry["Effect"] == "Allow" for entry in fitting)

"""May a function's role do what it does? Checked by action name, not by resource or condition.

moto's own check cannot judge statements that name resources or conditions, and ours all do. By
default what a role lacks is recorded and allowed; a test may have it refused instead.
"""

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from infra.local.aws.backends import backend

MODES = ("record", "enforce")
_SCOPE = re.compile(r"Credential=([^/]+)/\d+/[^/]*/([^/]+)/")
_FREE = frozenset({"sts:GetCallerIdentity"})
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "dynamodb:TransactGetItems": ("dynamodb:GetItem",),
    "ec2:CreateFleet": ("ec2:CreateFleet", "ec2:RunInstances"),
    "s3:HeadBucket": ("s3:ListBucket",),
    "s3:HeadObject": ("s3:GetObject",),
    "s3:ListObjects": ("s3:ListBucket",),
    "s3:ListObjectsV2": ("s3:ListBucket",),
    "sqs:ChangeMessageVisibilityBatch": ("sqs:ChangeMessageVisibility",),
    "sqs:DeleteMessageBatch": ("sqs:DeleteMessage",),
    "sqs:SendMessageBatch": ("sqs:SendMessage",),
}
"""Operations whose permission has another name, or that need more than their own."""

_TRANSACTION = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Delete": "dynamodb:DeleteItem",
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
}
_SERVICES = {"monitoring": "cloudwatch"}
"""Signing names that differ from the prefix of the actions."""


class Permissions:
    """Checks calls made with the keys of roles; all other keys may do everything."""

    def __init__(self, account_id: str) -> None:
        self._account_id = account_id
        self._lock = Lock()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._denied: Counter[tuple[str, str]] = Counter()
        self.mode = "record"

    def check(
        self, *, key_id: str, service: str, operation: str, body: bytes, target_role: str = ""
    ) -> str | None:
        """Return "role: action" when a role lacks an action and must be refused.

        What is lacking is recorded in both modes; `target_role` is what AssumeRole asks for.
        """
        role_arn = self._role_of(key_id)
        if role_arn is None:
            return None
        name = role_arn.rsplit("/", 1)[-1]
        allowed = tuple(self._allowed(name))
        asked = [
            action
            for action in _actions(_SERVICES.get(service, service), operation, body)
            if action not in _FREE
        ]
        lacking = [action for action in asked if not _covers(allowed, action)]
        assumes = (service, operation) == ("sts", "AssumeRole")
        if assumes and not self._trusts(target_role, role_arn):
            lacking.append(f"sts:AssumeRole without trust of {target_role}")
        with self._lock:
            self._asked.update((name, action) for action in asked)
            self._denied.update((name, action) for action in lacking)
        return f"{name}: {lacking[0]}" if lacking and self.mode == "enforce" else None

    def may(self, role_arn: str, action: str) -> bool:
        """Return whether a role has an action: what services do under a role takes it in any mode.

        It is not recorded: no code of ours asks for it.
        """
        return _covers(self._allowed(role_arn.rsplit("/", 1)[-1]), action)

    def check_call(self, authorization: str, operation: str) -> str | None:
        """Return what `check` says of a call by its signature; unsigned calls may do everything."""
        scope = _SCOPE.search(authorization)
        if scope is None:
            return None
        return self.check(key_id=scope[1], service=scope[2], operation=operation, body=b"")

    def asked(self) -> list[dict[str, Any]]:
        """What roles did, allowed or not, sorted."""
        return self._rows(self._asked)

    def denied(self) -> list[dict[str, Any]]:
        """What roles did without having the permission, sorted."""
        return self._rows(self._denied)

    def _rows(self, counter: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
        with self._lock:
            rows = sorted(counter.items())
        return [{"role": role, "action": action, "count": n} for (role, action), n in rows]

    def clear(self) -> None:
        """Forget what was recorded, and record again instead of refusing."""
        with self._lock:
            self._asked.clear()
            self._denied.clear()
        self.mode = "record"

    def _role_of(self, key_id: str) -> str | None:
        session = backend("sts", self._account_id, "").get_assumed_role_from_access_key(key_id)
        return None if session is None else str(session.role_arn)

    def _find(self, name: str) -> Any:
        roles = backend("iam", self._account_id, "").roles.values()
        return next((row for row in roles if row.name == name), None)

    def _trusts(self, target_arn: str, caller_arn: str) -> bool:
        """Return whether a role's trust policy lets the caller's role in.

        By its ARN, or by its account where the condition on `aws:PrincipalArn`, if there is one,
        names the caller.
        """
        target = self._find(target_arn.rsplit("/", 1)[-1])
        if target is None:
            return False
        account = f"arn:aws:iam::{self._account_id}:root"
        for statement in _statements(target.assume_role_policy_document):
            principal = statement.get("Principal")
            named = principal.get("AWS") if isinstance(principal, dict) else principal
            condition = statement.get("Condition", {}).get("ArnEquals", {})
            callers = _as_list(condition.get("aws:PrincipalArn", caller_arn))
            if (
                statement.get("Effect") == "Allow"
                and {"*", caller_arn, account} & set(_as_list(named))
                and caller_arn in callers
            ):
                return True
        return False

    def _allowed(self, name: str) -> Iterable[str]:
        role = self._find(name)
        if role is None:
            return
        documents = [*role.policies.values()]
        documents += [row.document for row in role.managed_policies.values()]
        for document in documents:
            for statement in _statements(document):
                if statement.get("Effect") == "Allow":
                    yield from _as_list(statement.get("Action"))


def _statements(document: Any) -> list[Any]:
    loaded = json.loads(document) if isinstance(document, str) else document
    return _as_list((loaded or {}).get("Statement"))


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _covers(allowed: Iterable[str], action: str) -> bool:
    return any(fnmatch.fnmatchcase(action.lower(), pattern.lower()) for pattern in allowed)


def _actions(service: str, operation: str, body: bytes) -> tuple[str, ...]:
    action = f"{service}:{operation}"
    if action == "dynamodb:TransactWriteItems":
        items = json.loads(body or b"{}").get("TransactItems") or []
        return tuple(sorted({_TRANSACTION[kind] for item in items for kind in item}))
    return _NEEDS.get(action, (action,))

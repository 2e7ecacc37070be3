"""Launch intents: written before EC2 is called, removed when they are done."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.aws.ledger import row_keys
from shared.aws.ledger.lease import Leases
from shared.aws.ledger.table import ConditionExpression, absent
from shared.model.ec2.launches import LaunchIntent, Lease
from shared.model.errors import ConflictError


class Intents(Leases):
    """The part of the ledger that has launch intents."""

    def open_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Write an intent, once; return the lease, renewed by the same write.

        A late retry of the write cannot open it again after it was closed: the SDK gives all
        attempts of a transaction the same token, and DynamoDB accepts a token once in ten minutes.
        Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
        (2026-11-26).

        Raises:
            ConflictError: If the lease was lost or that intent is already written.
        """
        return self._write(lease, intent, absent(now), now)

    def change_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Replace an intent (same plan, group; attempt or time changed), and renew the lease.

        Raises:
            ConflictError: If the lease was lost, or the intent is closed or at a later attempt.
        """
        return self._write(lease, intent, _up_to(intent), now)

    def close_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """Remove an intent, which frees its reservation, and renew the lease.

        An intent that is gone counts as closed.

        Raises:
            ConflictError: If the lease was lost, or the intent is at a later attempt.
        """
        here = _up_to(intent)
        gone_or_here = dataclasses.replace(here, text=f"(attribute_not_exists(pk) OR {here.text})")
        removal = self._table.delete(row_keys.intent_key(intent), gone_or_here)
        return self._fenced(lease, intent, {"Delete": removal}, now)

    def _write(
        self, lease: Lease, intent: LaunchIntent, condition: ConditionExpression, now: datetime
    ) -> Lease:
        row = {
            **row_keys.fields_of(intent),
            "expires_at": row_keys.seconds(now + row_keys.KEEP_INTENT),
        }
        update = self._table.update(row_keys.intent_key(intent), row, condition)
        return self._fenced(lease, intent, {"Update": update}, now)

    def _fenced(
        self, lease: Lease, intent: LaunchIntent, write: Mapping[str, Any], now: datetime
    ) -> Lease:
        renewed, (fits,) = self._with_fence(lease, [write], now)
        if not fits:
            raise ConflictError(
                f"intent {intent.plan_id}/{intent.group}: attempt {intent.attempt} cannot be "
                "written, since the intent was opened, closed or tried again before"
            )
        return renewed


def _up_to(intent: LaunchIntent) -> ConditionExpression:
    """Return the condition that an intent exists, at no later attempt."""
    return ConditionExpression(
        text="#attempt <= :attempt", names=("attempt",), values={"attempt": intent.attempt}
    )

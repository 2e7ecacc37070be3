"""Launch intents: written before EC2 is called, removed when they are done."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from typing_extensions import override

from shared.aws.ledger import row_keys
from shared.aws.ledger.lease import Leases
from shared.aws.ledger.table import ConditionExpression, absent
from shared.model.ec2.launches import LaunchIntent, Lease
from shared.model.errors import ConflictError
from shared.model.values import replace


class Intents(Leases):
    """The part of the ledger that has launch intents."""

    @override
    def open_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        """A late retry of the write cannot open an intent again after it was closed.

        The SDK gives all attempts of a transaction the same token, and DynamoDB accepts a token
        once in ten minutes. Source:
        https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
        (2026-11-26).
        """
        return self._write(lease, intent, absent(now), now)

    @override
    def change_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        return self._write(lease, intent, _up_to(intent), now)

    @override
    def close_intent(self, lease: Lease, intent: LaunchIntent, now: datetime) -> Lease:
        here = _up_to(intent)
        gone_or_here = replace(here, text=f"(attribute_not_exists(pk) OR {here.text})")
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

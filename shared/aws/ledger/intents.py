"""Launch intents: written before EC2 is asked, out of sight when done."""

from typing import Any

from shared.aws.ledger import rows
from shared.aws.ledger.lease import Leases
from shared.aws.ledger.table import Condition, absent
from shared.model.ec2.launches import IntentState, LaunchIntent, Lease
from shared.model.errors import ConflictError


class Intents(Leases):
    """The part of the ledger that says what EC2 may have been asked for."""

    def open_intent(self, lease: Lease, intent: LaunchIntent) -> None:
        """Write an intent down, once.

        Raises:
            ConflictError: If the lease was lost or that attempt is already written.
        """
        now = self._table.now()
        new = absent(now)
        higher = Condition(
            text=f"({new.text} OR #attempt < :attempt)",
            names=(*new.names, "attempt"),
            values={**new.values, "attempt": intent.attempt},
        )
        held, unwritten, unfinished = self._table.transact(
            [
                self._fence(lease),
                {"Update": self._table.update(rows.intent_key(intent), self._row(intent), higher)},
                {"ConditionCheck": self._table.check(rows.done_key(intent), new)},
            ]
        )
        if not held:
            raise _lost(lease)
        if not (unwritten and unfinished):
            raise ConflictError(
                f"intent {intent.plan_id}/{intent.group}: attempt {intent.attempt} stands written"
            )

    def change_intent(self, lease: Lease, intent: LaunchIntent) -> None:
        """Replace an intent's row (same plan, group; attempt, state or time changed).

        Raises:
            ConflictError: If the lease was lost, or a later attempt stands written.
        """
        absent_now = absent(self._table.now())
        not_later = Condition(
            text=f"({absent_now.text} OR #attempt <= :attempt)",
            names=(*absent_now.names, "attempt"),
            values={**absent_now.values, "attempt": intent.attempt},
        )
        is_open = intent.state is IntentState.OPEN
        here, there = rows.intent_key(intent), rows.done_key(intent)
        if not is_open:
            here, there = there, here
        held, *fitting = self._table.transact(
            [
                self._fence(lease),
                {"Update": self._table.update(here, self._row(intent), not_later)},
                {"Delete": self._table.delete(there, not_later)},
            ]
        )
        if not held:
            raise _lost(lease)
        if not all(fitting):
            raise ConflictError(
                f"intent {intent.plan_id}/{intent.group}: a later attempt than "
                f"{intent.attempt} stands written"
            )

    def _row(self, intent: LaunchIntent) -> dict[str, Any]:
        kept = self._table.now() + rows.KEEP_INTENT
        return {**rows.intent_row(intent), "expires_at": rows.seconds(kept)}


def _lost(lease: Lease) -> ConflictError:
    return ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")

"""The part of the ledger that timers and bind use: slots, instances, notes, offerings."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.aws.ledger import row_keys
from shared.aws.ledger.notes import Notes
from shared.aws.ledger.offerings import UnavailableOfferings
from shared.aws.ledger.table import ConditionExpression, LedgerTable, ignore_notice
from shared.aws.session import Session
from shared.model.codec import from_plain
from shared.model.ec2.launches import LaunchIntent, Slot
from shared.ports import Clock

_SAME_PAIR: Final = "attribute_exists(pk) AND #instance_id = :instance_id"


class DynamoNodeLedger(Notes, UnavailableOfferings):
    """Implements shared.ports.NodeLedger on one DynamoDB table.

    Args:
        session: Session in the Region whose offerings are shared.
        table: Name of the table.
        clock: Clock that rows expire by.
        notice: Called with one line for each row that Dovetail did not write.
    """

    def __init__(
        self,
        session: Session,
        *,
        table: str,
        clock: Clock,
        notice: Callable[[str], None] = ignore_notice,
    ) -> None:
        self._table = LedgerTable(session, table, clock, notice)
        self._region = session.region

    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        """Return the intents of a cluster, sorted by plan and group."""
        pk = row_keys.cluster_key(cluster, row_keys.INTENT).pk
        found = self._table.read(pk, row_keys.INTENT, partial(from_plain, LaunchIntent))
        return tuple(sorted(found, key=lambda entry: (entry.plan_id, entry.group)))

    def abandoned(self, cluster: str, now: datetime) -> bool:
        """Return whether the lease has expired without having been released."""
        row = self._table.get(row_keys.cluster_key(cluster, row_keys.LEASE))
        if row is None or "token" not in row:
            return False
        return not row["free"] and row["until"] < row_keys.millis(now)

    def change_slot(self, slot: Slot) -> bool:
        """Replace a slot's row if it still has that instance and was not changed since it was read.

        The row's version refuses writes of a stale holder of the lease as well as the lease would:
        a later holder that used the slot has written its row.

        Returns:
            False when the row is gone (it is not created again) or was changed since it was read.
        """
        return self._table.write(row_keys.slot_key(slot), self._slot(slot), _as_read(slot)).done

    def drop_slot(self, slot: Slot) -> None:
        """Remove a slot; its instance's row stays until the instance is gone."""
        self._table.remove(row_keys.slot_key(slot), same_pair(slot))

    def drop_instance(self, instance_id: str) -> None:
        """Remove the row of a terminated instance."""
        self._table.remove(row_keys.instance_key(instance_id))

    def slots(self, cluster: str) -> tuple[Slot, ...]:
        """Return all slots of a cluster, sorted by name."""
        pk = row_keys.cluster_key(cluster, row_keys.SLOT).pk
        found = self._table.read(pk, row_keys.SLOT, partial(from_plain, Slot))
        return tuple(sorted(found, key=lambda entry: entry.name))

    def slot_with(self, cluster: str, instance_id: str) -> Slot | None:
        """Return the slot that an instance fills, None when there is none; reads two rows."""
        paired = self._table.get(row_keys.instance_key(instance_id))
        key = row_keys.named_slot_key(cluster, str((paired or {}).get("slot", "")))
        row = self._table.get(key) if paired is not None else None
        if row is None or row.get("instance_id") != instance_id:
            return None
        return self._table.restored(key, row, partial(from_plain, Slot))

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster of an instance, None if Dovetail did not launch it."""
        row = self._table.get(row_keys.instance_key(instance_id))
        return str(row["cluster"]) if row is not None and "cluster" in row else None

    def _slot(self, slot: Slot) -> dict[str, Any]:
        kept = self._table.now() + row_keys.KEEP_SLOT
        return {**row_keys.fields_of(slot), "expires_at": row_keys.seconds(kept)}


def _as_read(slot: Slot) -> ConditionExpression:
    same = same_pair(slot)
    if not slot.version:
        return same
    return ConditionExpression(
        text=f"{same.text} AND #version = :version",
        names=(*same.names, "version"),
        values={**same.values, "version": slot.version},
    )


def same_pair(slot: Slot) -> ConditionExpression:
    """Return the condition that a slot's row still has that instance."""
    return ConditionExpression(
        text=_SAME_PAIR, names=("instance_id",), values={"instance_id": slot.instance_id}
    )

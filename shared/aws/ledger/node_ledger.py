"""The part of the ledger that timers and bind use: slots, instances, notes, offerings."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

from typing_extensions import override

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

    @override
    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        pk = row_keys.cluster_key(cluster, row_keys.INTENT).pk
        found = self._table.read(pk, row_keys.INTENT, partial(from_plain, LaunchIntent))
        return tuple(sorted(found, key=lambda entry: (entry.plan_id, entry.group)))

    @override
    def abandoned(self, cluster: str, now: datetime) -> bool:
        row = self._table.get(row_keys.cluster_key(cluster, row_keys.LEASE))
        if row is None or "token" not in row:
            return False
        return not row["free"] and row["until"] < row_keys.millis(now)

    @override
    def change_slot(self, slot: Slot) -> bool:
        """The row's version refuses writes of a stale holder of the lease, as the lease would.

        A later holder that used the slot has written its row.
        """
        return self._table.write(row_keys.slot_key(slot), self._slot(slot), _as_read(slot)).done

    @override
    def drop_slot(self, slot: Slot) -> None:
        self._table.remove(row_keys.slot_key(slot), same_pair(slot))

    @override
    def drop_instance(self, instance_id: str) -> None:
        self._table.remove(row_keys.instance_key(instance_id))

    @override
    def slots(self, cluster: str) -> tuple[Slot, ...]:
        pk = row_keys.cluster_key(cluster, row_keys.SLOT).pk
        found = self._table.read(pk, row_keys.SLOT, partial(from_plain, Slot))
        return tuple(sorted(found, key=lambda entry: entry.name))

    @override
    def slot_with(self, cluster: str, instance_id: str) -> Slot | None:
        paired = self._table.get(row_keys.instance_key(instance_id))
        key = row_keys.named_slot_key(cluster, str((paired or {}).get("slot", "")))
        row = self._table.get(key) if paired is not None else None
        if row is None or row.get("instance_id") != instance_id:
            return None
        return self._table.restored(key, row, partial(from_plain, Slot))

    @override
    def cluster_of(self, instance_id: str) -> str | None:
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

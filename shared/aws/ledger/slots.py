"""Slots and instances: pairs, each side once."""

from typing import Any, Final

from shared.aws.ledger import rows
from shared.aws.ledger.lease import Leases
from shared.aws.ledger.table import Condition, absent
from shared.model.ec2.launches import Lease, Slot
from shared.model.errors import ConflictError

_SAME_PAIR: Final = "attribute_exists(pk) AND #instance_id = :instance_id"


class Slots(Leases):
    """The part of the ledger that says which instance became which planned node."""

    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        """Pair a slot with its instance, each once.

        Returns:
            False when the slot or the instance is paired already (with whatever).

        Raises:
            ConflictError: If the lease was lost.
        """
        now = self._table.now()
        unpaired = absent(now)
        owner = {
            "cluster": slot.cluster,
            "slot": slot.name,
            "expires_at": rows.seconds(now + rows.KEEP_INSTANCE),
        }
        held, *free = self._table.transact(
            [
                self._fence(lease),
                {"Update": self._table.update(rows.slot_key(slot), self._slot(slot), unpaired)},
                {
                    "Update": self._table.update(
                        rows.instance_key(slot.instance_id), owner, unpaired
                    )
                },
            ]
        )
        if not held:
            raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")
        return all(free)

    def change_slot(self, slot: Slot) -> bool:
        """Replace a slot's row if it still has that instance and is as the slot was read.

        The row's version holds a stale holder of the lease back as well as the lease would:
        a later holder that used the slot has written its row.

        Returns:
            False when the row is gone (it stays gone) or was changed since it was read.
        """
        return self._table.write(rows.slot_key(slot), self._slot(slot), _as_read(slot)).done

    def drop_slot(self, slot: Slot, lease: Lease | None = None) -> None:
        """Remove a slot; its instance's row stays until the instance is gone.

        Args:
            lease: Of a caller that plans; bind and the timers have none.

        Raises:
            ConflictError: If the lease was lost.
        """
        key, same = rows.slot_key(slot), _same_pair(slot)
        if lease is None:
            self._table.remove(key, same)
            return
        delete = {"Delete": self._table.delete(key, same)}
        if not self._table.transact([self._fence(lease), delete])[0]:
            raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")

    def drop_instance(self, instance_id: str) -> None:
        """Remove an instance's row: it is terminated."""
        self._table.remove(rows.instance_key(instance_id))

    def slots(self, cluster: str) -> tuple[Slot, ...]:
        """Return all slots of a cluster, sorted by name."""
        pk = rows.cluster_key(cluster, rows.SLOT).pk
        found = self._table.read(pk, rows.SLOT, rows.slot_of)
        return tuple(sorted(found, key=lambda entry: entry.name))

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster an instance was launched for, None if Dovetail did not launch it."""
        row = self._table.get(rows.instance_key(instance_id))
        return str(row["cluster"]) if row is not None and "cluster" in row else None

    def slot_of(self, instance_id: str) -> str | None:
        """Return the name of the slot an instance was paired with, gone or not; None if none."""
        row = self._table.get(rows.instance_key(instance_id))
        return str(row["slot"]) if row is not None and "slot" in row else None

    def _slot(self, slot: Slot) -> dict[str, Any]:
        kept = self._table.now() + rows.KEEP_SLOT
        return {**rows.slot_row(slot), "expires_at": rows.seconds(kept)}


def _as_read(slot: Slot) -> Condition:
    same = _same_pair(slot)
    if not slot.version:
        return same
    return Condition(
        text=f"{same.text} AND #version = :version",
        names=(*same.names, "version"),
        values={**same.values, "version": slot.version},
    )


def _same_pair(slot: Slot) -> Condition:
    return Condition(
        text=_SAME_PAIR, names=("instance_id",), values={"instance_id": slot.instance_id}
    )

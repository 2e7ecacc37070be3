"""The lease of a cluster; each change of it is one conditional write."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from shared.aws.ledger import row_keys
from shared.aws.ledger.table import ConditionExpression, LedgerTable
from shared.model.ec2.launches import Lease
from shared.model.errors import ConflictError, PermanentError
from shared.model.values import replace
from shared.ports import Ledger

# Retries are needed only when the lease changed hands between two writes.
_TRIES: Final = 8

_FREE_OR_EXPIRED: Final = "(attribute_not_exists(pk) OR #free = :yes OR #until < :now)"


class Leases(Ledger):
    """The part of the ledger that has the leases."""

    _table: LedgerTable
    _lease_span: timedelta

    @override
    def acquire(self, cluster: str, holder: str, now: datetime) -> Lease | None:
        """An expired lease may have a holder that is frozen and writes late.

        The version of each slot grows here, so that its late writes are refused and promise no pod
        that is planned for again. That takes seconds with thousands of instances in flight; it
        renews the lease.

        Raises:
            ConflictError: If it changed hands again and again.
            ThrottledError: If the table throttled the growth of versions for long.
            PermanentError: If Dovetail did not write the row with its key.
        """
        key = row_keys.cluster_key(cluster, row_keys.LEASE)
        until = now + self._lease_span
        fields = {
            "holder": holder,
            "until": row_keys.millis(until),
            "dirty": False,
            "free": False,
            "expires_at": row_keys.seconds(now + row_keys.KEEP_LEASE),
        }
        takeable = ConditionExpression(
            text=_FREE_OR_EXPIRED,
            names=("free", "until"),
            values={"yes": True, "now": row_keys.millis(now)},
        )
        for _ in range(_TRIES):
            taken = self._table.write(key, fields, takeable, count="token")
            if taken.done and taken.row is not None:
                token = taken.row["token"]
                lease = Lease(cluster=cluster, holder=holder, token=token, expires_at=until)
                released = token == taken.row.get("released", 0) + 1
                return lease if released else self._outdate_slots(lease)
            if taken.row is None:
                continue
            if "token" not in taken.row:
                raise PermanentError(
                    f"ledger row {key.pk} / {key.sk} is not ours: remove it, then plans go on"
                )
            if self._mark_dirty(cluster, taken.row["token"], now):
                return None
        raise ConflictError(f"lease of {cluster}: changes hands too often", delay=self._lease_span)

    def _mark_dirty(self, cluster: str, token: int, now: datetime) -> bool:
        """Mark the lease with that token; return False when it is no longer held."""
        held = ConditionExpression(
            text="#token = :token AND #free = :no AND #until >= :now",
            names=("token", "free", "until"),
            values={"token": token, "no": False, "now": row_keys.millis(now)},
        )
        key = row_keys.cluster_key(cluster, row_keys.LEASE)
        return self._table.write(key, {"dirty": True}, held).done

    @override
    def renew(self, lease: Lease, now: datetime) -> Lease:
        """An expired lease that has not been acquired again still belongs to its holder."""
        until = now + self._lease_span
        key = row_keys.cluster_key(lease.cluster, row_keys.LEASE)
        written = self._table.write(key, _pushed(now, until), self._ours(lease))
        if not written.done or written.row is None:
            raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")
        return Lease(
            cluster=lease.cluster,
            holder=lease.holder,
            token=lease.token,
            expires_at=until,
            dirty=written.row["dirty"],
        )

    @override
    def release(self, lease: Lease) -> bool:
        key = row_keys.cluster_key(lease.cluster, row_keys.LEASE)
        ours = self._ours(lease)
        clean = ConditionExpression(
            text=f"{ours.text} AND #dirty = :clean",
            names=(*ours.names, "dirty"),
            values={**ours.values, "clean": False},
        )
        freed = self._table.write(key, {"free": True, "released": lease.token}, clean)
        if freed.done or not _is_ours(lease, freed.row):
            return True
        return not self._table.write(key, {"dirty": False}, ours).done

    def _outdate_slots(self, lease: Lease) -> Lease:
        """Increase the version of each slot: writes based on an older reading are refused.

        The part of the ledger that has the rows of slots implements this.

        Returns:
            The lease, renewed where there were slots.

        Raises:
            ConflictError: If the lease was lost.
            ThrottledError: If the table throttled it for long.
        """
        raise NotImplementedError

    def _ours(self, lease: Lease) -> ConditionExpression:
        """Return the condition that the lease still has this holder: the fence."""
        return ConditionExpression(
            text="#token = :token AND #free = :no",
            names=("token", "free"),
            values={"token": lease.token, "no": False},
        )

    def _fence(self, lease: Lease) -> dict[str, Any]:
        """Return the item of a transaction that refuses writes of a stale holder."""
        key = row_keys.cluster_key(lease.cluster, row_keys.LEASE)
        return {"ConditionCheck": self._table.check(key, self._ours(lease))}

    def _with_fence(
        self, lease: Lease, writes: Sequence[Mapping[str, Any]], now: datetime
    ) -> tuple[Lease, tuple[bool, ...]]:
        """Write rows and renew the lease in one transaction, all or nothing.

        Returns:
            The lease, renewed if everything was written; for each write whether its own condition
            holds.

        Raises:
            ConflictError: If the lease has another holder or was released.
        """
        until = now + self._lease_span
        key = row_keys.cluster_key(lease.cluster, row_keys.LEASE)
        renewal = self._table.update(key, _pushed(now, until), self._ours(lease))
        held, *fitting = self._table.transact([{"Update": renewal}, *writes])
        if not held:
            raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")
        renewed = replace(lease, expires_at=until) if all(fitting) else lease
        return renewed, tuple(fitting)


def _pushed(now: datetime, until: datetime) -> dict[str, int]:
    return {
        "until": row_keys.millis(until),
        "expires_at": row_keys.seconds(now + row_keys.KEEP_LEASE),
    }


def _is_ours(lease: Lease, row: Mapping[str, Any] | None) -> bool:
    return row is not None and row["token"] == lease.token and not row["free"]

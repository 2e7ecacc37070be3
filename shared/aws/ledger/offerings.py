"""Offerings that are not to be tried again yet: refused by EC2, or suspected.

An offering may also be out for one cluster alone; its row is then the cluster's.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.aws.ledger import rows
from shared.aws.ledger.decay import Refusal, refused
from shared.aws.ledger.table import Condition, LedgerTable, absent
from shared.model.ec2.instance_types import OfferingKey


class Offerings:
    """The part of the ledger that says what cannot be bought now."""

    _table: LedgerTable
    _region: str

    def unavailable_offerings(self, now: datetime, cluster: str = "") -> frozenset[OfferingKey]:
        """Return the offerings that are not yet to be tried again.

        Args:
            cluster: Those marked for this cluster alone are returned, too.
        """
        found = self._offerings("")
        if cluster:
            found += self._offerings(cluster)
        return frozenset(offering for offering, row in found if row["until"] > rows.millis(now))

    def mark_unavailable(
        self,
        offerings: Sequence[OfferingKey],
        now: datetime,
        *,
        certain: bool = True,
        cluster: str = "",
    ) -> None:
        """Mark offerings unavailable; each repeat lasts longer.

        Args:
            certain: False for those EC2 did not name, though it launched none of them.
            cluster: The cluster concerned; empty for all clusters of the account.
        """
        if not offerings:
            return
        known = dict(self._offerings(cluster))
        for offering in sorted(set(offerings)):
            row = known.get(offering)
            key = rows.offering_key(self._region, offering, cluster)
            self._mark(key, row, rows.offering_row(offering), now, certain=certain)

    def _mark(
        self,
        key: rows.Key,
        row: Mapping[str, Any] | None,
        named: Mapping[str, Any],
        now: datetime,
        *,
        certain: bool,
    ) -> None:
        before = None
        if row is not None:
            before = Refusal(strikes=row["strikes"], until=rows.moment(row["until"]))
        after = refused(before, now, certain=certain)
        fields = {
            **named,
            "strikes": after.strikes,
            "until": rows.millis(after.until),
            "expires_at": rows.seconds(after.forgotten_at),
        }
        # Another writer that was faster has written down the same refusal.
        self._table.write(key, fields, self._unchanged(row))

    def _offerings(self, cluster: str) -> list[tuple[OfferingKey, Mapping[str, Any]]]:
        pk = rows.shared_key(self._region, cluster, rows.OFFERING).pk
        return self._table.read(pk, rows.OFFERING, _refusal)

    def _unchanged(self, row: Mapping[str, Any] | None) -> Condition:
        """Return the condition that a row is as it was read; one not found is still not there."""
        if row is None:
            return absent(self._table.now())
        return Condition(
            text="#version = :version", names=("version",), values={"version": row["version"]}
        )


def _refusal(row: Mapping[str, Any]) -> tuple[OfferingKey, Mapping[str, Any]]:
    int(row["until"]), int(row["strikes"])
    return rows.offering_of(row), row

"""Unavailable offerings: refused by EC2, or suspected.

An offering may also be unavailable for one cluster alone; its row is then the cluster's.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import override

from shared.aws.ledger import row_keys
from shared.aws.ledger.backoff import Backoff, next_backoff
from shared.aws.ledger.table import LedgerTable
from shared.model.codec import from_plain, to_plain
from shared.model.ec2.instance_types import OfferingKey
from shared.ports import NodeLedger


class UnavailableOfferings(NodeLedger):
    """The part of the ledger that has unavailable offerings."""

    _table: LedgerTable
    _region: str

    @override
    def mark_unavailable(
        self,
        offerings: Sequence[OfferingKey],
        now: datetime,
        *,
        certain: bool = True,
        cluster: str = "",
    ) -> None:
        if not offerings:
            return
        known = dict(self._offerings(cluster))
        for offering in sorted(set(offerings)):
            row = known.get(offering)
            key = row_keys.offering_key(self._region, offering, cluster)
            self._mark(key, row, to_plain(offering), now, certain=certain)

    def _mark(
        self,
        key: row_keys.Key,
        row: Mapping[str, Any] | None,
        named: Mapping[str, Any],
        now: datetime,
        *,
        certain: bool,
    ) -> None:
        before = None
        if row is not None:
            before = Backoff(strikes=row["strikes"], until=row_keys.moment(row["until"]))
        after = next_backoff(before, now, certain=certain)
        fields = {
            **named,
            "strikes": after.strikes,
            "until": row_keys.millis(after.until),
            "expires_at": row_keys.seconds(after.resets_at),
        }
        # Another writer that was faster has written the same refusal.
        self._table.write(key, fields, self._table.unchanged(row))

    def _offerings(self, cluster: str) -> list[tuple[OfferingKey, Mapping[str, Any]]]:
        pk = row_keys.shared_key(self._region, cluster, row_keys.OFFERING).pk
        return self._table.read(pk, row_keys.OFFERING, _refusal)


def _refusal(row: Mapping[str, Any]) -> tuple[OfferingKey, Mapping[str, Any]]:
    int(row["until"]), int(row["strikes"])
    return from_plain(OfferingKey, row), row

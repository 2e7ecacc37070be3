"""What all clusters of account and Region share: refused offerings and request tokens."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.aws import ledger_rows as rows
from shared.aws.decay import Refusal, TokenBucket, refused
from shared.aws.ledger_table import Condition, LedgerTable, absent
from shared.model.instance_types import OfferingKey

_TRIES: Final = 8


class Account:
    """The part of the ledger that no cluster has for itself."""

    _table: LedgerTable
    _region: str
    _burst: int
    _per_second: float

    def unavailable_offerings(self, now: datetime) -> frozenset[OfferingKey]:
        """Return the offerings EC2 was out of and that are not yet to be tried again."""
        return frozenset(
            offering for offering, row in self._offerings() if row["until"] > rows.millis(now)
        )

    def mark_unavailable(
        self, offerings: Sequence[OfferingKey], now: datetime, *, certain: bool = True
    ) -> None:
        """Remember that EC2 was out of these; each repeat is remembered longer.

        Args:
            certain: False for those EC2 did not name, though it gave none of them.
        """
        if not offerings:
            return
        known = dict(self._offerings())
        for offering in sorted(set(offerings)):
            self._mark(offering, known.get(offering), now, certain=certain)

    def take_token(self, api: str, now: datetime) -> timedelta | None:
        """Take one request token of an API for account and Region.

        Returns:
            None when taken, else how long to wait for one.
        """
        key = rows.account_key(self._region, f"{rows.BUCKET}{api}")
        bucket = TokenBucket.full(self._burst, now)
        for _ in range(_TRIES):
            row = self._table.get(key)
            if row is not None:
                kept = TokenBucket(
                    tokens_milli=row.get("tokens_milli", 0), at=rows.moment(row.get("at", 0))
                )
                bucket = kept.refilled(self._burst, self._per_second, now)
            taken = bucket.taken()
            if taken is None:
                return bucket.wait(self._per_second)
            fields = {
                "tokens_milli": taken.tokens_milli,
                "at": rows.millis(taken.at),
                "expires_at": rows.seconds(now + rows.KEEP_BUCKET),
            }
            if self._table.write(key, fields, self._unchanged(row)).done:
                return None
        # So many others were faster that the bucket must be as good as empty.
        return timedelta(seconds=1 / self._per_second)

    def _mark(
        self,
        offering: OfferingKey,
        row: Mapping[str, Any] | None,
        now: datetime,
        *,
        certain: bool,
    ) -> None:
        before = None
        if row is not None:
            before = Refusal(strikes=row["strikes"], until=rows.moment(row["until"]))
        after = refused(before, now, certain=certain)
        fields = {
            **rows.offering_row(offering),
            "strikes": after.strikes,
            "until": rows.millis(after.until),
            "expires_at": rows.seconds(after.forgotten_at),
        }
        # Whoever was faster has written down the same shortage.
        key = rows.offering_key(self._region, offering)
        self._table.write(key, fields, self._unchanged(row))

    def _offerings(self) -> list[tuple[OfferingKey, Mapping[str, Any]]]:
        pk = rows.account_key(self._region, rows.OFFERING).pk
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

"""Rows that all clusters of account and Region share: offerings, quotas, and request tokens."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from shared.aws.ledger import row_keys
from shared.aws.ledger.backoff import TokenBucket
from shared.aws.ledger.offerings import UnavailableOfferings
from shared.model.codec import from_plain, to_plain
from shared.model.ec2.instance_types import OfferingKey
from shared.model.ec2.quotas import QuotaReached
from shared.model.values import replace
from shared.ports import Ledger

_TRIES: Final = 20


class AccountLedger(UnavailableOfferings, Ledger):
    """The part of the ledger that all clusters of account and Region share."""

    _burst: int
    _per_second: float

    @override
    def unavailable_offerings(self, now: datetime, cluster: str = "") -> frozenset[OfferingKey]:
        found = self._offerings("")
        if cluster:
            found += self._offerings(cluster)
        return frozenset(offering for offering, row in found if row["until"] > row_keys.millis(now))

    @override
    def quotas_reached(self, now: datetime) -> tuple[QuotaReached, ...]:
        found = self._quotas()
        return tuple(sorted(mark for mark, row in found if row["until"] > row_keys.millis(now)))

    @override
    def mark_quotas(self, marks: Sequence[QuotaReached], now: datetime) -> None:
        if not marks:
            return
        known = {mark.quota: (mark, row) for mark, row in self._quotas()}
        for mark in sorted(marks):
            before, row = known.get(mark.quota, (mark, None))
            vcpus = mark.vcpus
            if row is not None and row["until"] > row_keys.millis(now):
                vcpus = min(vcpus, before.vcpus)
            fewest = to_plain(replace(mark, vcpus=vcpus))
            self._mark(row_keys.quota_key(self._region, mark.quota), row, fewest, now, certain=True)

    @override
    def take_token(self, api: str, now: datetime) -> timedelta:
        key = row_keys.account_key(self._region, f"{row_keys.BUCKET}{api}")
        bucket = full = TokenBucket.full(self._burst, now)
        for _ in range(_TRIES):
            row = self._table.get(key)
            kept = full
            if row is not None:
                kept = TokenBucket(
                    tokens_milli=row.get("tokens_milli", 0), at=row_keys.moment(row.get("at", 0))
                )
            bucket = kept.refilled(self._burst, self._per_second, now).taken(self._per_second)
            fields = {
                "tokens_milli": bucket.tokens_milli,
                "at": row_keys.millis(bucket.at),
                "expires_at": row_keys.seconds(now + row_keys.KEEP_BUCKET),
            }
            if self._table.write(key, fields, self._table.unchanged(row)).done:
                break
        # Others were faster each time: go on without a token, and let EC2 throttle.
        return bucket.wait(self._per_second)

    def _quotas(self) -> list[tuple[QuotaReached, Mapping[str, Any]]]:
        pk = row_keys.account_key(self._region, row_keys.QUOTA).pk
        return self._table.read(pk, row_keys.QUOTA, _quota)


def _quota(row: Mapping[str, Any]) -> tuple[QuotaReached, Mapping[str, Any]]:
    int(row["until"]), int(row["strikes"])
    return from_plain(QuotaReached, row), row

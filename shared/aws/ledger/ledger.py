"""The ledger in DynamoDB: one table for all clusters of account and Region.

`cluster#<name>` / `lease`, `intent#<plan>#<group>`, `slot#<plan>#<group>#<n>`, `memo#<name>`;
`instance#<id>` / `instance`;
`account#<region>` / `bucket#<api>`, `offering#<type>#<zone>#<capacity type>`. Every row has
`version`, `schema` and `expires_at`.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from shared.aws.ledger import row_keys
from shared.aws.ledger.account import AccountLedger
from shared.aws.ledger.dynamodb_values import to_attribute
from shared.aws.ledger.intents import Intents
from shared.aws.ledger.node_ledger import DynamoNodeLedger, same_pair
from shared.aws.ledger.table import ConditionExpression, absent, ignore_notice
from shared.aws.session import Session
from shared.model.ec2.launches import Lease, Slot
from shared.model.errors import ConflictError, ThrottledError
from shared.ports import Clock

# A transaction has at most 100 items and 4 MB; the lease is one item, a slot up to two.
# Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
# (2026-11-25).
_MOST_SLOTS: Final = 49
_MOST_BYTES: Final = 3_000_000
# A cluster's rows are one partition, which takes 1,000 write units a second: the wait each time the
# growth of versions is throttled, and how often one part of thousands of slots may wait.
_PAUSE: Final = timedelta(seconds=1)
_PAUSES: Final = 8
_HERE: Final = ConditionExpression(text="attribute_exists(pk)")
_GROWTH: Final = {
    "UpdateExpression": "ADD #version :one",
    "ExpressionAttributeNames": {"#version": "version"},
    "ExpressionAttributeValues": {":one": to_attribute(1)},
}


class DynamoLedger(DynamoNodeLedger, Intents, AccountLedger):
    """Implements shared.ports.Ledger on one DynamoDB table; further arguments as DynamoNodeLedger.

    Args:
        session: Session in the Region whose offerings and request tokens are shared.
        lease_span: Length of a lease, longer than any outside call with its time-out.
        burst: The most request tokens of a bucket.
        per_second: Tokens that refill it per second.
    """

    def __init__(  # noqa: PLR0913 - all but three have a default and are named
        self,
        session: Session,
        *,
        table: str,
        clock: Clock,
        notice: Callable[[str], None] = ignore_notice,
        lease_span: timedelta = timedelta(seconds=50),
        burst: int = 5,
        per_second: float = 2.0,
    ) -> None:
        super().__init__(session, table=table, clock=clock, notice=notice)
        self._clock = clock
        self._lease_span = lease_span
        self._burst = burst
        self._per_second = per_second

    @override
    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        return self.fill_slots(lease, [slot])[0]

    @override
    def fill_slots(self, lease: Lease, slots: Sequence[Slot]) -> tuple[bool, ...]:
        """One transaction pairs some dozens.

        Concurrent transactions would conflict, since all of them check the lease.
        """
        now = self._table.now()
        asked = {slot.name: self._pair(slot, now) for slot in slots}
        done: dict[str, bool] = {}
        for names in _parts({name: size for name, (size, _) in asked.items()}):
            part = list(names)
            while part:
                pairs = [item for name in part for item in asked[name][1]]
                held, *free = self._table.transact([self._fence(lease), *pairs])
                if not held:
                    raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")
                fits = dict(
                    zip(part, map(all, zip(free[::2], free[1::2], strict=True)), strict=True)
                )
                if all(fits.values()):
                    done |= fits
                    break
                # Nothing was written: retry without those that are paired already.
                done |= {name: False for name, fine in fits.items() if not fine}
                part = [name for name, fine in fits.items() if fine]
        return tuple(done[slot.name] for slot in slots)

    def _pair(self, slot: Slot, now: datetime) -> tuple[int, tuple[Mapping[str, Any], ...]]:
        """Return the size of both rows of a pair, in bytes, and the items that write them."""
        unpaired = absent(now)
        owner = {
            "cluster": slot.cluster,
            "slot": slot.name,
            "expires_at": row_keys.seconds(now + row_keys.KEEP_INSTANCE),
        }
        updates = (
            self._table.update(row_keys.slot_key(slot), self._slot(slot), unpaired),
            self._table.update(row_keys.instance_key(slot.instance_id), owner, unpaired),
        )
        size = sum(len(str(update["ExpressionAttributeValues"])) for update in updates)
        return size, tuple({"Update": update} for update in updates)

    def _outdate_slots(self, lease: Lease) -> Lease:
        sizes = {
            slot.name: len(str(row_keys.fields_of(slot))) for slot in self.slots(lease.cluster)
        }
        for names in _parts(sizes):
            part = list(names)
            while part:
                lease, here = self._outdate(lease, part)
                # Where a slot is gone nothing was written: retry without it.
                part = [] if all(here) else list(itertools.compress(part, here))
        return lease

    def _outdate(self, lease: Lease, names: Sequence[str]) -> tuple[Lease, tuple[bool, ...]]:
        """Increase versions of slots, all or none; return the lease, and which slots exist."""
        keys = [row_keys.named_slot_key(lease.cluster, name) for name in names]
        growths = [{"Update": {**self._table.check(key, _HERE), **_GROWTH}} for key in keys]
        for _ in range(_PAUSES):
            try:
                return self._with_fence(lease, growths, self._table.now())
            except ThrottledError:
                self._clock.sleep(_PAUSE)
        return self._with_fence(lease, growths, self._table.now())

    @override
    def drop_slot(self, slot: Slot, lease: Lease | None = None) -> None:
        if lease is None:
            super().drop_slot(slot)
            return
        delete = {"Delete": self._table.delete(row_keys.slot_key(slot), same_pair(slot))}
        if not self._table.transact([self._fence(lease), delete])[0]:
            raise ConflictError(f"lease of {lease.cluster}: token {lease.token} was lost")

    @override
    def slot_of(self, instance_id: str) -> str | None:
        row = self._table.get(row_keys.instance_key(instance_id))
        return str(row["slot"]) if row is not None and "slot" in row else None


def _parts(sizes: Mapping[str, int]) -> Iterator[Sequence[str]]:
    """Yield the names, in order, in parts that fit in a transaction.

    Args:
        sizes: Size of each, in bytes, by name.
    """
    part: list[str] = []
    held = 0
    for name, size in sizes.items():
        if part and (len(part) == _MOST_SLOTS or held + size > _MOST_BYTES):
            yield part
            part, held = [], 0
        part.append(name)
        held += size
    if part:
        yield part

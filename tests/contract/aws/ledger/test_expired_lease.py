"""A lease whose holder was killed with thousands of machines in flight is taken over in time."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.model.ec2.launches import Lease, PodRef
from shared.model.errors import ConflictError, ThrottledError
from shared.nodes.launch.held_lease import HeldLease
from tests.contract.aws.canned import canned
from tests.contract.aws.values import TABLE, slot
from tests.fakes.clock import FakeClock
from tests.scale.table import CountedTable

SPAN = timedelta(seconds=50)
CALL = timedelta(milliseconds=20)
SECOND = timedelta(seconds=1)
MANY = 2728
THROTTLED = (
    400,
    "TransactionCanceledException",
    {"CancellationReasons": [{"Code": "None"}, {"Code": "ThrottlingError"}]},
)


class SlowTable(CountedTable):
    """A table whose calls take time once `slow`; in each transaction another acts."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(self._passes)
        self._clock = clock
        self.slow = False
        self.meanwhile: Callable[[], object] = lambda: None

    def _passes(self, name: str, size: int) -> None:
        if not self.slow:
            return
        self._clock.advance(CALL)
        if name == "TransactWriteItems":
            self.slow = False
            self.meanwhile()
            self.slow = True


def ledger_on(table: Any, clock: FakeClock) -> DynamoLedger:
    return DynamoLedger(table, table=TABLE, clock=clock)


def fill(ledger: DynamoLedger, clock: FakeClock, slots: int) -> Lease:
    """Fill slots under a lease that is not released, and let it expire."""
    lease = ledger.acquire("test", "killed", clock.now())
    assert lease is not None
    pods = tuple(PodRef(namespace="default", name=f"pod-{n}", uid=f"uid-{n}") for n in range(11))
    many = [slot(number=n, instance_id=f"i-{n}", pods=pods) for n in range(slots)]
    assert all(ledger.fill_slots(lease, many))
    clock.advance(SPAN + SECOND)
    return lease


def test_a_lease_is_taken_over_in_seconds_and_no_other_gets_it_meanwhile(clock: FakeClock) -> None:
    table = SlowTable(clock)
    ledger = ledger_on(table, clock)
    fill(ledger, clock, MANY)
    read = ledger.slots("test")
    others: list[Lease | None] = []
    table.meanwhile = lambda: others.append(ledger.acquire("test", "third", clock.now()))
    table.slow, before = True, clock.now()
    lease = ledger.acquire("test", "second", before)
    table.slow = False
    assert lease is not None
    assert clock.now() - before < 5 * SECOND
    assert lease.expires_at - clock.now() > SPAN / 2
    assert len(others) >= MANY / 99
    assert not any(others)
    assert not any(map(ledger.change_slot, read))


def test_a_lease_that_was_taken_over_is_renewed_when_it_is_due(clock: FakeClock) -> None:
    table = SlowTable(clock)
    ledger = ledger_on(table, clock)
    fill(ledger, clock, 200)
    table.slow = True
    lease = ledger.acquire("test", "second", clock.now())
    assert lease is not None
    held = HeldLease(ledger, clock, lease, SPAN)
    clock.advance(lease.expires_at - clock.now() - 20 * SECOND)
    held.renew_if_due()
    assert held.value.expires_at - clock.now() > SPAN / 2


def test_a_take_over_that_lasts_renews_the_lease(clock: FakeClock) -> None:
    table = SlowTable(clock)
    ledger = ledger_on(table, clock)
    fill(ledger, clock, 200)
    table.meanwhile = lambda: clock.advance(30 * SECOND)
    table.slow, before = True, clock.now()
    lease = ledger.acquire("test", "second", before)
    table.slow = False
    assert lease is not None
    assert clock.now() - before > SPAN
    assert ledger.acquire("test", "third", clock.now()) is None


def test_a_slot_that_goes_while_a_lease_is_taken_over_stays_gone(clock: FakeClock) -> None:
    table = SlowTable(clock)
    ledger = ledger_on(table, clock)
    fill(ledger, clock, 3)
    first, second, third = ledger.slots("test")
    table.meanwhile = lambda: ledger.drop_slot(second)
    table.slow = True
    assert ledger.acquire("test", "second", clock.now()) is not None
    table.slow = False
    assert [left.name for left in ledger.slots("test")] == [first.name, third.name]
    assert not ledger.change_slot(first)
    assert not ledger.change_slot(third)


def test_a_lease_that_is_lost_while_it_is_taken_over_is_not_returned(clock: FakeClock) -> None:
    table = SlowTable(clock)
    ledger = ledger_on(table, clock)
    fill(ledger, clock, 1)

    def slower() -> None:
        table.meanwhile = lambda: None
        clock.advance(SPAN + SECOND)
        assert ledger.acquire("test", "third", clock.now()) is not None

    table.meanwhile = slower
    table.slow = True
    with pytest.raises(ConflictError):
        ledger.acquire("test", "second", clock.now())


def test_taking_a_lease_over_waits_while_the_table_is_throttled(
    aws: Session, table: str, clock: FakeClock
) -> None:
    ledger = DynamoLedger(aws, table=table, clock=clock)
    fill(ledger, clock, 1)
    (read,) = ledger.slots("test")
    with canned(aws, "dynamodb", "TransactWriteItems", THROTTLED, THROTTLED):
        assert ledger.acquire("test", "second", clock.now()) is not None
    assert clock.slept == [SECOND, SECOND]
    assert not ledger.change_slot(read)
    clock.advance(SPAN + SECOND)
    with (
        canned(aws, "dynamodb", "TransactWriteItems", *[THROTTLED] * 20),
        pytest.raises(ThrottledError),
    ):
        ledger.acquire("test", "third", clock.now())

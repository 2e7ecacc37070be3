"""Which Events are not recorded again."""

from datetime import timedelta

from shared.nodes.events.recorded import drop_recorded, recently_recorded, save_recorded
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger


def test_recorded_events_are_remembered_for_ten_minutes_from_the_first() -> None:
    ledger, clock = FakeLedger(), FakeClock()
    assert recently_recorded(ledger, "test", clock.now()) == frozenset()
    save_recorded(ledger, "test", frozenset({"a" * 12}), clock.now())
    clock.advance(timedelta(minutes=9))
    save_recorded(ledger, "test", frozenset({"b" * 12}), clock.now())
    assert recently_recorded(ledger, "test", clock.now()) == {"a" * 12, "b" * 12}
    clock.advance(timedelta(minutes=1))
    assert recently_recorded(ledger, "test", clock.now()) == frozenset()
    save_recorded(ledger, "test", frozenset({"b" * 12}), clock.now())
    drop_recorded(ledger, "test")
    assert recently_recorded(ledger, "test", clock.now()) == frozenset()

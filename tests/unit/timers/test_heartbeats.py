"""When timers and forwarders were last seen."""

from datetime import timedelta

from shared.timers.heartbeats import (
    drop_timer,
    forwarder_seen,
    note_forwarder,
    note_timer,
    running_timers,
)
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger


def test_timers_remember_when_they_were_last_seen() -> None:
    ledger, first = FakeLedger(), FakeClock().now()
    second = first + timedelta(minutes=1)
    note_timer(ledger, "test", "uid-1", "emptiness", first)
    note_timer(ledger, "test", "uid-1", "emptiness", second)
    note_timer(ledger, "test", "uid-1", "expiration", first)
    note_timer(ledger, "other", "uid-1", "emptiness", first)
    assert running_timers(ledger, "test") == {
        ("uid-1", "emptiness"): second,
        ("uid-1", "expiration"): first,
    }
    drop_timer(ledger, "test", "uid-1", "emptiness")
    drop_timer(ledger, "test", "uid-1", "emptiness")
    assert running_timers(ledger, "test") == {("uid-1", "expiration"): first}


def test_a_late_heartbeat_of_a_forwarder_is_ignored() -> None:
    ledger, first = FakeLedger(), FakeClock().now()
    second = first + timedelta(minutes=1)
    assert forwarder_seen(ledger, "test") is None
    note_forwarder(ledger, "test", second)
    note_forwarder(ledger, "test", first)
    assert forwarder_seen(ledger, "test") == second

"""When timers and forwarders were last seen."""

from datetime import timedelta

from shared.nodes.timers.heartbeats import (
    drop_heartbeat,
    last_forwarder_heartbeat,
    last_heartbeats,
    save_forwarder_heartbeat,
    save_heartbeat,
)
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger


def test_timers_remember_when_they_were_last_seen() -> None:
    ledger, first = FakeLedger(), FakeClock().now()
    second = first + timedelta(minutes=1)
    save_heartbeat(ledger, "test", "uid-1", "emptiness", first)
    save_heartbeat(ledger, "test", "uid-1", "emptiness", second)
    save_heartbeat(ledger, "test", "uid-1", "expiration", first)
    save_heartbeat(ledger, "other", "uid-1", "emptiness", first)
    assert last_heartbeats(ledger, "test") == {
        ("uid-1", "emptiness"): second,
        ("uid-1", "expiration"): first,
    }
    drop_heartbeat(ledger, "test", "uid-1", "emptiness")
    drop_heartbeat(ledger, "test", "uid-1", "emptiness")
    assert last_heartbeats(ledger, "test") == {("uid-1", "expiration"): first}


def test_a_late_heartbeat_of_a_forwarder_is_ignored() -> None:
    ledger, first = FakeLedger(), FakeClock().now()
    second = first + timedelta(minutes=1)
    assert last_forwarder_heartbeat(ledger, "test") is None
    save_forwarder_heartbeat(ledger, "test", second)
    save_forwarder_heartbeat(ledger, "test", first)
    assert last_forwarder_heartbeat(ledger, "test") == second

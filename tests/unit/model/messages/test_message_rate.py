"""What one process drops of a forwarder that sends too much."""

from datetime import timedelta

from shared.model.messages.message import MessageKind
from shared.model.messages.message_rate import MessageRate
from tests.builders import NOW


def served(
    rate: MessageRate, count: int, kind: MessageKind = MessageKind.NODE_READY, cluster: str = "a"
) -> int:
    found = [rate.dropped_before(cluster, kind, NOW) for _ in range(count)]
    return sum(1 for dropped in found if dropped is not None)


def test_a_burst_is_served_and_what_is_beyond_it_dropped_and_counted_once() -> None:
    rate = MessageRate()
    assert served(rate, 1000) == 30
    later = NOW + timedelta(seconds=1)
    found = [rate.dropped_before("a", MessageKind.NODE_READY, later) for _ in range(6)]
    assert found == [970, 0, 0, 0, 0, None]


def test_each_cluster_and_kind_has_a_rate_of_its_own() -> None:
    rate = MessageRate()
    served(rate, 1000)
    assert served(rate, 10, cluster="b") == 10
    assert served(rate, 10, MessageKind.NODE_EMPTY) == 10


def test_heartbeats_and_pods_that_lead_are_rare() -> None:
    rate = MessageRate()
    assert (
        served(rate, 100, MessageKind.HEARTBEAT) == served(rate, 100, MessageKind.POD_PENDING) == 3
    )
    soon = NOW + timedelta(seconds=10)
    assert rate.dropped_before("a", MessageKind.HEARTBEAT, soon) == 97


def test_a_clock_that_goes_back_gives_and_takes_nothing() -> None:
    rate = MessageRate()
    served(rate, 29)
    assert rate.dropped_before("a", MessageKind.NODE_READY, NOW - timedelta(hours=1)) == 0
    assert rate.dropped_before("a", MessageKind.NODE_READY, NOW - timedelta(hours=1)) is None


def test_names_without_end_take_no_memory_without_end() -> None:
    rate = MessageRate()
    served(rate, 1000, cluster="first")
    for number in range(1000):
        rate.dropped_before(f"forged-{number}", MessageKind.NODE_READY, NOW)
    assert rate.dropped_before("first", MessageKind.NODE_READY, NOW) == 0

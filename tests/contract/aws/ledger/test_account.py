from datetime import timedelta

from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.quotas import Quota, QuotaReached
from shared.ports import Ledger
from tests.contract.aws.values import offering
from tests.fakes.clock import FakeClock

MINUTE = timedelta(minutes=1)
HERE = offering()
THERE = offering(zone="us-east-1b", capacity_type=CapacityType.ON_DEMAND)


def test_a_refused_offering_is_out_for_three_minutes(ledger: Ledger, clock: FakeClock) -> None:
    assert ledger.unavailable_offerings(clock.now()) == frozenset()
    ledger.mark_unavailable([HERE, HERE, THERE], clock.now())
    assert ledger.unavailable_offerings(clock.now()) == {HERE, THERE}
    clock.advance(3 * MINUTE - timedelta(seconds=1))
    assert ledger.unavailable_offerings(clock.now()) == {HERE, THERE}
    clock.advance(timedelta(seconds=1))
    assert ledger.unavailable_offerings(clock.now()) == frozenset()


def test_marking_nothing_changes_nothing(ledger: Ledger, clock: FakeClock) -> None:
    ledger.mark_unavailable([], clock.now())
    assert ledger.unavailable_offerings(clock.now()) == frozenset()


def spans(ledger: Ledger, clock: FakeClock, refusals: int, quiet: timedelta) -> list[timedelta]:
    """Refuse again and again, `quiet` after each span is over; return how long each lasted."""
    found = []
    for _ in range(refusals):
        ledger.mark_unavailable([HERE], clock.now())
        start = clock.now()
        while HERE in ledger.unavailable_offerings(clock.now()):
            clock.advance(MINUTE)
        found.append(clock.now() - start)
        clock.advance(quiet)
    return found


def test_each_repeat_is_remembered_twice_as_long_up_to_half_an_hour(
    ledger: Ledger, clock: FakeClock
) -> None:
    assert spans(ledger, clock, 6, MINUTE) == [n * MINUTE for n in (3, 6, 12, 24, 30, 30)]


def test_quiet_for_twice_the_span_forgets(ledger: Ledger, clock: FakeClock) -> None:
    assert spans(ledger, clock, 3, 13 * MINUTE) == [3 * MINUTE, 3 * MINUTE, 3 * MINUTE]


def test_the_same_shortage_seen_twice_is_no_repeat(ledger: Ledger, clock: FakeClock) -> None:
    ledger.mark_unavailable([HERE], clock.now())
    clock.advance(MINUTE)
    ledger.mark_unavailable([HERE], clock.now())
    clock.advance(2 * MINUTE)
    assert ledger.unavailable_offerings(clock.now()) == {HERE}
    clock.advance(MINUTE)
    assert ledger.unavailable_offerings(clock.now()) == frozenset()


def test_what_is_marked_for_one_cluster_is_not_out_for_others(
    ledger: Ledger, clock: FakeClock
) -> None:
    ledger.mark_unavailable([HERE], clock.now(), cluster="one")
    ledger.mark_unavailable([THERE], clock.now())
    assert ledger.unavailable_offerings(clock.now()) == {THERE}
    assert ledger.unavailable_offerings(clock.now(), "one") == {HERE, THERE}
    assert ledger.unavailable_offerings(clock.now(), "two") == {THERE}
    clock.advance(3 * MINUTE)
    assert ledger.unavailable_offerings(clock.now(), "one") == frozenset()


def test_a_quota_is_reached_for_a_while_and_the_fewest_vcpus_count(
    ledger: Ledger, clock: FakeClock
) -> None:
    standard = Quota(capacity_type=CapacityType.ON_DEMAND, family="Standard")
    graphics = Quota(capacity_type=CapacityType.SPOT, family="G and VT")
    ledger.mark_quotas([], clock.now())
    assert ledger.quotas_reached(clock.now()) == ()
    ledger.mark_quotas([QuotaReached(quota=standard, vcpus=4)], clock.now())
    marks = [QuotaReached(quota=standard, vcpus=8), QuotaReached(quota=graphics, vcpus=16)]
    ledger.mark_quotas(marks, clock.now())
    assert ledger.quotas_reached(clock.now()) == (
        QuotaReached(quota=standard, vcpus=4),
        QuotaReached(quota=graphics, vcpus=16),
    )
    clock.advance(3 * MINUTE)
    assert ledger.quotas_reached(clock.now()) == ()
    # What was refused before the mark was over says nothing about what is refused after it.
    ledger.mark_quotas([QuotaReached(quota=standard, vcpus=32)], clock.now())
    assert ledger.quotas_reached(clock.now()) == (QuotaReached(quota=standard, vcpus=32),)


NOW = timedelta(0)
HALF = timedelta(milliseconds=500)


def test_a_bucket_gives_its_burst_and_then_its_rate(ledger: Ledger, clock: FakeClock) -> None:
    assert [ledger.take_token("CreateFleet", clock.now()) for _ in range(5)] == [NOW] * 5
    assert ledger.take_token("CreateFleet", clock.now()) == HALF
    assert ledger.take_token("RunInstances", clock.now()) == NOW
    clock.advance(2 * HALF)
    assert ledger.take_token("CreateFleet", clock.now()) == NOW
    assert ledger.take_token("CreateFleet", clock.now()) == HALF


def test_tokens_are_promised_in_the_order_of_asking_for_a_minute_at_most(
    ledger: Ledger, clock: FakeClock
) -> None:
    waits = [ledger.take_token("CreateFleet", clock.now()) for _ in range(5 + 122)]
    assert waits[5:8] == [HALF, 2 * HALF, 3 * HALF]
    assert waits[-3:] == [timedelta(minutes=1)] * 3


def test_a_bucket_never_holds_more_than_its_burst(ledger: Ledger, clock: FakeClock) -> None:
    ledger.take_token("CreateFleet", clock.now())
    clock.advance(timedelta(days=3))
    given = [ledger.take_token("CreateFleet", clock.now()) for _ in range(6)]
    assert given == [*[NOW] * 5, HALF]


def test_asking_again_and_again_does_not_lose_what_was_refilled(
    ledger: Ledger, clock: FakeClock
) -> None:
    for _ in range(5):
        ledger.take_token("CreateFleet", clock.now())
    waits = []
    for _ in range(4):
        clock.advance(timedelta(milliseconds=100))
        waits.append(ledger.take_token("CreateFleet", clock.now()))
    assert waits == [timedelta(milliseconds=n) for n in (400, 800, 1200, 1600)]


def test_clock_set_back_refills_nothing(ledger: Ledger, clock: FakeClock) -> None:
    for _ in range(5):
        ledger.take_token("CreateFleet", clock.now())
    earlier = clock.now() - timedelta(hours=1)
    assert ledger.take_token("CreateFleet", earlier) == HALF
    assert ledger.take_token("CreateFleet", clock.now()) == 2 * HALF

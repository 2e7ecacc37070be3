from datetime import timedelta

import pytest

from shared.model.ec2.launches import Lease
from shared.model.errors import ConflictError
from shared.ports import Ledger
from tests.contract.aws.values import intent, slot
from tests.fakes.clock import START, FakeClock

SPAN = timedelta(seconds=50)


def acquired(ledger: Ledger, clock: FakeClock, holder: str = "one", cluster: str = "test") -> Lease:
    lease = ledger.acquire(cluster, holder, clock.now())
    assert lease is not None
    return lease


def test_a_free_lease_is_taken_for_its_span(ledger: Ledger, clock: FakeClock) -> None:
    lease = acquired(ledger, clock)
    assert lease == Lease(cluster="test", holder="one", token=1, expires_at=clock.now() + SPAN)


def test_a_held_lease_is_not_taken_and_is_dirty_afterwards(
    ledger: Ledger, clock: FakeClock
) -> None:
    lease = acquired(ledger, clock)
    assert ledger.acquire("test", "two", clock.now()) is None
    assert ledger.release(lease) is False
    assert ledger.release(lease) is True


def test_every_mark_asks_for_one_more_plan(ledger: Ledger, clock: FakeClock) -> None:
    lease = acquired(ledger, clock)
    for _ in range(2):
        assert ledger.acquire("test", "two", clock.now()) is None
        assert ledger.acquire("test", "three", clock.now()) is None
        assert ledger.release(lease) is False
    assert ledger.release(lease) is True


def test_clusters_do_not_share_leases(ledger: Ledger, clock: FakeClock) -> None:
    assert acquired(ledger, clock).token == 1
    assert acquired(ledger, clock, cluster="other").token == 1


def test_a_released_lease_is_taken_with_a_higher_token(ledger: Ledger, clock: FakeClock) -> None:
    first = acquired(ledger, clock)
    assert ledger.release(first)
    assert acquired(ledger, clock, "two").token > first.token


def test_an_expired_lease_is_taken_and_the_old_holder_notices(
    ledger: Ledger, clock: FakeClock
) -> None:
    first = acquired(ledger, clock)
    clock.advance(SPAN + timedelta(milliseconds=1))
    second = acquired(ledger, clock, "two")
    assert second.token > first.token
    with pytest.raises(ConflictError):
        ledger.renew(first, clock.now())
    assert ledger.release(first) is True
    # The loser's release has given nothing away.
    assert ledger.renew(second, clock.now()).token == second.token


def test_renewing_pushes_the_expiry(ledger: Ledger, clock: FakeClock) -> None:
    lease = acquired(ledger, clock)
    clock.advance(timedelta(seconds=40))
    renewed = ledger.renew(lease, clock.now())
    assert renewed.expires_at == clock.now() + SPAN
    clock.advance(timedelta(seconds=40))
    assert ledger.acquire("test", "two", clock.now()) is None


def test_a_lease_that_expired_unseen_can_still_be_renewed(ledger: Ledger, clock: FakeClock) -> None:
    lease = acquired(ledger, clock)
    clock.advance(SPAN * 2)
    assert ledger.abandoned("test", clock.now())
    ledger.renew(lease, clock.now())
    assert not ledger.abandoned("test", clock.now())


def test_a_released_lease_cannot_be_renewed(ledger: Ledger, clock: FakeClock) -> None:
    lease = acquired(ledger, clock)
    ledger.release(lease)
    with pytest.raises(ConflictError):
        ledger.renew(lease, clock.now())


def test_only_a_lease_that_expired_unreleased_is_abandoned(
    ledger: Ledger, clock: FakeClock
) -> None:
    assert not ledger.abandoned("test", clock.now())
    lease = acquired(ledger, clock)
    assert not ledger.abandoned("test", clock.now())
    clock.advance(SPAN + timedelta(seconds=1))
    assert ledger.abandoned("test", clock.now())
    assert ledger.release(lease)
    assert not ledger.abandoned("test", clock.now())


def test_taking_over_a_dirty_lease_starts_clean(ledger: Ledger, clock: FakeClock) -> None:
    acquired(ledger, clock)
    assert ledger.acquire("test", "two", clock.now()) is None
    clock.advance(SPAN * 2)
    assert ledger.release(acquired(ledger, clock, "two")) is True


def test_a_stale_holder_writes_nothing(ledger: Ledger, clock: FakeClock) -> None:
    stale = acquired(ledger, clock)
    clock.advance(SPAN * 2)
    acquired(ledger, clock, "two")
    with pytest.raises(ConflictError):
        ledger.open_intent(stale, intent(), START)
    with pytest.raises(ConflictError):
        ledger.change_intent(stale, intent(), START)
    with pytest.raises(ConflictError):
        ledger.fill_slot(stale, slot())
    assert ledger.open_intents("test") == ()
    assert ledger.slots("test") == ()
    assert ledger.cluster_of("i-1") is None


def test_a_lease_that_was_given_back_writes_nothing(ledger: Ledger, clock: FakeClock) -> None:
    lease = acquired(ledger, clock)
    ledger.release(lease)
    with pytest.raises(ConflictError):
        ledger.open_intent(lease, intent(), START)
    with pytest.raises(ConflictError):
        ledger.fill_slot(lease, slot())

from datetime import timedelta

import pytest

from shared.model.ec2.launches import Lease
from shared.model.errors import ConflictError
from shared.model.values import replace
from shared.ports import Ledger
from tests.contract.aws.values import intent, slot
from tests.fakes.clock import START, FakeClock


@pytest.fixture
def lease(ledger: Ledger, clock: FakeClock) -> Lease:
    found = ledger.acquire("test", "one", clock.now())
    assert found is not None
    return found


def test_an_intent_is_read_back_as_it_was_written(ledger: Ledger, lease: Lease) -> None:
    plain = intent()
    waiting = intent(group=1, not_before=plain.created_at + timedelta(milliseconds=1500))
    ledger.open_intent(lease, waiting, START)
    ledger.open_intent(lease, plain, START)
    assert ledger.open_intents("test") == (plain, waiting)


def test_an_intent_is_opened_once(ledger: Ledger, lease: Lease) -> None:
    ledger.open_intent(lease, intent(), START)
    with pytest.raises(ConflictError):
        ledger.open_intent(lease, intent(count=7), START)
    assert ledger.open_intents("test") == (intent(),)


def test_a_closed_intent_is_gone_and_is_not_changed(ledger: Ledger, lease: Lease) -> None:
    ledger.open_intent(lease, intent(), START)
    ledger.close_intent(lease, intent(), START)
    ledger.close_intent(lease, intent(), START)
    assert ledger.open_intents("test") == ()
    with pytest.raises(ConflictError):
        ledger.change_intent(lease, intent(), START)


def test_a_changed_intent_replaces_the_old_one(ledger: Ledger, lease: Lease) -> None:
    ledger.open_intent(lease, intent(not_before=intent().created_at), START)
    later = intent(attempt=1, count=1, body_key="other")
    ledger.change_intent(lease, later, START)
    assert ledger.open_intents("test") == (later,)
    with pytest.raises(ConflictError):
        ledger.change_intent(lease, intent(), START)
    with pytest.raises(ConflictError):
        ledger.close_intent(lease, intent(), START)
    assert ledger.open_intents("test") == (later,)


def test_intents_are_sorted_by_plan_and_group_as_a_number(ledger: Ledger, lease: Lease) -> None:
    for group in (10, 2):
        ledger.open_intent(lease, intent(group=group), START)
    ledger.open_intent(lease, intent(plan_id="p0", group=11), START)
    found = [
        (open_intent.plan_id, open_intent.group) for open_intent in ledger.open_intents("test")
    ]
    assert found == [("p0", 11), ("p1", 2), ("p1", 10)]
    assert ledger.open_intents("other") == ()


def test_a_slot_is_read_back_as_it_was_written(ledger: Ledger, lease: Lease) -> None:
    assert ledger.fill_slot(lease, slot())
    assert ledger.slots("test") == (slot(),)
    assert ledger.slots("other") == ()
    assert ledger.cluster_of("i-1") == "test"
    assert ledger.cluster_of("i-2") is None


def test_an_instance_remembers_its_slot_when_that_is_gone(ledger: Ledger, lease: Lease) -> None:
    assert ledger.fill_slot(lease, slot())
    ledger.drop_slot(slot())
    assert ledger.slot_of("i-1") == slot().name
    ledger.drop_instance("i-1")
    assert ledger.slot_of("i-1") is None


def test_a_slot_and_an_instance_are_paired_once(ledger: Ledger, lease: Lease) -> None:
    assert ledger.fill_slot(lease, slot())
    assert not ledger.fill_slot(lease, slot(instance_id="i-2"))
    assert not ledger.fill_slot(lease, slot(number=1))
    assert not ledger.fill_slot(lease, slot())
    assert ledger.slots("test") == (slot(),)
    assert ledger.cluster_of("i-2") is None


def test_many_slots_are_filled_together_but_for_what_is_paired(
    ledger: Ledger, lease: Lease
) -> None:
    assert ledger.fill_slot(lease, slot(number=3, instance_id="i-3"))
    assert ledger.fill_slot(lease, slot(number=100, instance_id="i-45"))
    many = [slot(number=number, instance_id=f"i-{number}") for number in range(52)]
    paired = (3, 45)
    done = tuple(number not in paired for number in range(52))
    assert ledger.fill_slots(lease, many) == done
    assert len(ledger.slots("test")) == 52
    assert ledger.slot_of("i-51") == many[51].name
    assert ledger.fill_slots(lease, many[49:]) == (False,) * 3


def test_slots_are_sorted_by_name(ledger: Ledger, lease: Lease) -> None:
    for number in (2, 0, 1):
        assert ledger.fill_slot(lease, slot(number=number, instance_id=f"i-{number}"))
    assert [other_slot.number for other_slot in ledger.slots("test")] == [0, 1, 2]


def test_a_slot_can_be_changed_but_not_brought_back(ledger: Ledger, lease: Lease) -> None:
    ledger.fill_slot(lease, slot())
    named = replace(
        slot(),
        node_name="node-1",
        pods=(),
        bound=True,
        opened=True,
        interrupted_at=slot().launched_at,
    )
    ledger.change_slot(named)
    assert ledger.slots("test") == (named,)
    ledger.drop_slot(named)
    ledger.change_slot(named)
    assert ledger.slots("test") == ()


def test_each_change_of_a_slot_makes_its_version_grow_by_one(ledger: Ledger, lease: Lease) -> None:
    ledger.fill_slot(lease, slot())
    (read,) = ledger.slots("test")
    assert ledger.change_slot(read)
    assert not ledger.change_slot(read)
    assert ledger.change_slot(replace(read, version=read.version + 1))
    assert [other_slot.version for other_slot in ledger.slots("test")] == [read.version + 2]


def test_slots_stay_as_read_when_a_released_lease_is_acquired(
    ledger: Ledger, lease: Lease, clock: FakeClock
) -> None:
    assert ledger.fill_slot(lease, slot())
    (read,) = ledger.slots("test")
    for holder in ("two", "three"):
        assert ledger.release(lease)
        other = ledger.acquire("test", holder, clock.now())
        assert other is not None
        lease = other
    assert ledger.change_slot(read)


def test_an_old_pair_changes_nothing_of_a_new_one(ledger: Ledger, lease: Lease) -> None:
    old, new = slot(), slot(instance_id="i-2")
    ledger.fill_slot(lease, old)
    ledger.drop_slot(old)
    assert ledger.fill_slot(lease, new)
    ledger.change_slot(replace(old, node_name="node-1"))
    ledger.drop_slot(old)
    assert ledger.slots("test") == (new,)


def test_the_instance_of_a_dropped_slot_stays_known(ledger: Ledger, lease: Lease) -> None:
    ledger.fill_slot(lease, slot())
    ledger.drop_slot(slot())
    assert ledger.cluster_of("i-1") == "test"
    assert not ledger.fill_slot(lease, slot(number=1))
    ledger.drop_instance("i-1")
    ledger.drop_instance("i-1")
    assert ledger.cluster_of("i-1") is None

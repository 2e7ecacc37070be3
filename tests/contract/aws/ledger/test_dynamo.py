"""What only the real table can get wrong: expiry, races, pages, conflicts."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from shared.aws.ledger.dynamodb_values import from_attribute, from_item, to_attribute, to_item
from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.model.ec2.launches import Lease
from shared.model.errors import ConflictError, ThrottledError, UnavailableError
from shared.nodes.timers.heartbeats import save_forwarder_heartbeat, save_heartbeat
from tests.contract.aws.canned import canned
from tests.contract.aws.values import intent, offering, slot
from tests.fakes.clock import START, FakeClock

HELD = (400, "ConditionalCheckFailedException")


@pytest.fixture
def dynamo(aws: Session, table: str, clock: FakeClock) -> DynamoLedger:
    return DynamoLedger(aws, table=table, clock=clock)


@pytest.fixture
def lease(dynamo: DynamoLedger, clock: FakeClock) -> Lease:
    found = dynamo.acquire("test", "one", clock.now())
    assert found is not None
    return found


def scan(aws: Session, table: str) -> list[dict[str, Any]]:
    return [from_item(item) for item in aws.client("dynamodb").scan(TableName=table)["Items"]]


def test_every_row_has_a_version_and_an_expiry(
    aws: Session, table: str, dynamo: DynamoLedger, lease: Lease, clock: FakeClock
) -> None:
    dynamo.open_intent(lease, intent(), START)
    dynamo.open_intent(lease, intent(group=1), START)
    dynamo.close_intent(lease, intent(group=1), START)
    dynamo.fill_slot(lease, slot())
    dynamo.mark_unavailable([offering()], clock.now())
    dynamo.take_token("CreateFleet", clock.now())
    save_heartbeat(dynamo, "test", "uid-1", "emptiness", clock.now())
    save_forwarder_heartbeat(dynamo, "test", clock.now())
    found = scan(aws, table)
    assert sorted((row["pk"], row["sk"]) for row in found) == [
        ("account#us-east-1", "bucket#CreateFleet"),
        ("account#us-east-1", "offering#m5.large#us-east-1a#spot"),
        ("cluster#test", "intent#p1#0"),
        ("cluster#test", "lease"),
        ("cluster#test", "memo#forwarder"),
        ("cluster#test", "memo#timer#uid-1#emptiness"),
        ("cluster#test", "slot#p1#0#0"),
        ("instance#i-1", "instance"),
    ]
    for row in found:
        assert row["version"] >= 1
        assert row["expires_at"] > clock.now().timestamp()


def test_a_row_whose_time_is_over_counts_as_gone(
    dynamo: DynamoLedger, lease: Lease, clock: FakeClock
) -> None:
    dynamo.open_intent(lease, intent(), START)
    dynamo.fill_slot(lease, slot())
    for _ in range(6):
        dynamo.take_token("CreateFleet", clock.now())
    clock.advance(timedelta(days=6 * 365))
    assert dynamo.open_intents("test") == ()
    assert dynamo.slots("test") == ()
    assert dynamo.cluster_of("i-1") is None
    # The table still holds the old rows, and they block nothing.
    assert not dynamo.take_token("CreateFleet", clock.now())
    later = dynamo.acquire("test", "two", clock.now())
    assert later is not None
    dynamo.open_intent(later, intent(), clock.now())
    assert dynamo.fill_slot(later, slot())
    dynamo.mark_unavailable([offering()], clock.now())
    assert dynamo.unavailable_offerings(clock.now()) == {offering()}


def test_when_the_lease_is_released_before_the_mark_it_is_taken(
    aws: Session,
    dynamo: DynamoLedger,
    lease: Lease,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    real = aws.client("dynamodb").update_item

    def release_between(**request: Any) -> Any:
        calls.append(request)
        if len(calls) == 2:  # the first was the try to acquire; now the mark is on its way
            assert dynamo.release(lease)
        return real(**request)

    monkeypatch.setattr(aws.client("dynamodb"), "update_item", release_between)
    taken = dynamo.acquire("test", "two", clock.now())
    assert taken is not None
    assert taken.token == lease.token + 1
    assert dynamo.release(taken) is True


def test_a_lease_that_changes_hands_for_ever_is_a_conflict(
    aws: Session, dynamo: DynamoLedger, lease: Lease, clock: FakeClock
) -> None:
    held = (*HELD, {"Item": to_item({"token": 1})})
    with canned(aws, "dynamodb", "UpdateItem", *[held, HELD] * 8), pytest.raises(ConflictError):
        dynamo.acquire("test", "two", clock.now())


def test_one_of_many_racing_for_a_lease_wins(
    aws: Session,
    table: str,
    dynamo: DynamoLedger,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, lock = aws.client("dynamodb"), threading.Lock()
    real = client.update_item

    def one_at_a_time(**request: Any) -> Any:
        """Write as DynamoDB does: its emulator tests the condition apart from the write."""
        with lock:
            return real(**request)

    monkeypatch.setattr(client, "update_item", one_at_a_time)
    found: list[Lease | None] = []
    threads = [
        threading.Thread(
            target=lambda n=n: found.append(dynamo.acquire("test", f"h{n}", clock.now()))
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [other_lease for other_lease in found if other_lease is not None]
    assert len(winners) == 1
    assert len(found) == 8
    assert dynamo.release(winners[0]) is False
    assert dynamo.release(winners[0]) is True


def test_pages_are_read_to_the_end(
    aws: Session,
    dynamo: DynamoLedger,
    lease: Lease,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = range(5)
    for number in numbers:
        assert dynamo.fill_slot(lease, slot(number=number, instance_id=f"i-{number}"))
    real = aws.client("dynamodb").query
    asked = []

    def small_pages(**request: Any) -> Any:
        asked.append(request["ConsistentRead"])
        return real(**request, Limit=2)

    monkeypatch.setattr(aws.client("dynamodb"), "query", small_pages)
    assert [other_slot.number for other_slot in dynamo.slots("test")] == list(numbers)
    assert asked == [True] * 3


CONFLICT = (400, "TransactionConflictException")
CANCELLED = (
    400,
    "TransactionCanceledException",
    {"CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}, {"Code": "None"}]},
)


def test_transactions_in_the_way_are_waited_out(
    aws: Session, dynamo: DynamoLedger, lease: Lease, clock: FakeClock
) -> None:
    with canned(aws, "dynamodb", "UpdateItem", CONFLICT, CONFLICT):
        dynamo.renew(lease, clock.now())
    with canned(aws, "dynamodb", "TransactWriteItems", CANCELLED, CANCELLED):
        assert dynamo.fill_slot(lease, slot())
    with canned(aws, "dynamodb", "DeleteItem", CONFLICT):
        dynamo.drop_slot(slot())
    assert dynamo.slots("test") == ()


def test_transactions_that_stay_in_the_way_are_a_conflict(
    aws: Session, dynamo: DynamoLedger, lease: Lease, clock: FakeClock
) -> None:
    with canned(aws, "dynamodb", "UpdateItem", *[CONFLICT] * 10), pytest.raises(ConflictError):
        dynamo.renew(lease, clock.now())
    with (
        canned(aws, "dynamodb", "TransactWriteItems", *[CANCELLED] * 10),
        pytest.raises(ConflictError),
    ):
        dynamo.fill_slot(lease, slot())


def test_a_throttled_transaction_is_no_lost_lease(
    aws: Session, dynamo: DynamoLedger, lease: Lease
) -> None:
    reasons = [{"Code": "ThrottlingError"}, {"Code": "ConditionalCheckFailed"}, {"Code": "None"}]
    answer = (400, "TransactionCanceledException", {"CancellationReasons": reasons})
    with canned(aws, "dynamodb", "TransactWriteItems", answer), pytest.raises(ThrottledError):
        dynamo.fill_slot(lease, slot())


def test_server_error_of_a_write_is_reported(
    aws: Session, dynamo: DynamoLedger, lease: Lease, clock: FakeClock
) -> None:
    answer = (500, "InternalServerError")
    with canned(aws, "dynamodb", "UpdateItem", answer), pytest.raises(UnavailableError):
        dynamo.renew(lease, clock.now())
    with canned(aws, "dynamodb", "DeleteItem", answer), pytest.raises(UnavailableError):
        dynamo.drop_instance("i-1")


def test_a_bucket_under_siege_asks_to_wait(
    aws: Session, dynamo: DynamoLedger, clock: FakeClock
) -> None:
    for _ in range(5):
        dynamo.take_token("CreateFleet", clock.now())
    with canned(aws, "dynamodb", "UpdateItem", *[HELD] * 20):
        assert dynamo.take_token("CreateFleet", clock.now()) == timedelta(milliseconds=500)
    assert dynamo.take_token("CreateFleet", clock.now()) == timedelta(milliseconds=500)


def test_plain_values_come_back_as_they_were() -> None:
    value = {"a": [1, -(2**60), "x", "", None, True, {"b": []}], "c": {}}
    assert from_attribute(to_attribute(value)) == value
    with pytest.raises(TypeError):
        to_attribute(0.5)
    with pytest.raises(TypeError):
        from_attribute({"B": b""})

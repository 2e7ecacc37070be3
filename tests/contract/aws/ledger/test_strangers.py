"""Rows that Dovetail did not write, or of a newer schema."""

from datetime import timedelta
from typing import Any

import pytest

from shared.aws.ledger.dynamodb_values import to_item
from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.model.ec2.launches import Lease
from shared.model.errors import PermanentError
from shared.model.values import replace
from shared.ports import Ledger
from tests.contract.aws.values import intent, offering, slot
from tests.fakes.clock import START, FakeClock

LATER = 4_000_000_000


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def dynamo(aws: Session, table: str, clock: FakeClock, told: list[str]) -> DynamoLedger:
    return DynamoLedger(aws, table=table, clock=clock, notice=told.append)


def put(aws: Session, table: str, pk: str, sk: str, **fields: Any) -> None:
    row = {"pk": pk, "sk": sk, **fields}
    aws.client("dynamodb").put_item(TableName=table, Item=to_item(row))


@pytest.fixture
def lease(dynamo: DynamoLedger, clock: FakeClock) -> Lease:
    found = dynamo.acquire("test", "one", clock.now())
    assert found is not None
    return found


def test_foreign_rows_are_skipped_and_logged(
    aws: Session,
    table: str,
    dynamo: DynamoLedger,
    lease: Lease,
    clock: FakeClock,
    told: list[str],
) -> None:
    dynamo.open_intent(lease, intent(), START)
    dynamo.fill_slot(lease, slot())
    dynamo.mark_unavailable([offering()], clock.now())
    for sk in ("slot#zzz", "intent#zzz", "memo#zzz"):
        put(aws, table, "cluster#test", sk, expires_at=LATER, hello="world")
    put(aws, table, "account#us-east-1", "offering#zzz", expires_at=LATER)
    put(aws, table, "instance#i-9", "instance", expires_at=LATER)
    assert dynamo.slots("test") == (slot(),)
    assert dynamo.open_intents("test") == (intent(),)
    assert dynamo.notes("test", "") == ()
    assert dynamo.unavailable_offerings(clock.now()) == {offering()}
    assert dynamo.cluster_of("i-9") is None
    assert len(told) == 4
    assert told[0].startswith("ledger row cluster#test / slot#zzz is not Dovetail's, skipped")


def test_row_without_a_time_or_with_an_unknown_type_is_reported(
    aws: Session, table: str, dynamo: DynamoLedger, told: list[str]
) -> None:
    put(aws, table, "instance#i-1", "instance", cluster="test")
    item = {"pk": {"S": "instance#i-2"}, "sk": {"S": "instance"}, "raw": {"B": b"x"}}
    aws.client("dynamodb").put_item(TableName=table, Item=item)
    assert dynamo.cluster_of("i-1") is None
    assert dynamo.cluster_of("i-2") is None
    assert ["no expires_at" in value for value in told] == [True, False]


def test_a_row_of_a_newer_schema_is_refused_with_what_to_do(
    aws: Session, table: str, dynamo: DynamoLedger
) -> None:
    put(aws, table, "cluster#test", "slot#p#0#0", expires_at=LATER, schema=3)
    with pytest.raises(PermanentError, match=r"schema 3, this version reads up to 2: deploy"):
        dynamo.slots("test")


def test_invalid_lease_is_reported_by_name(
    aws: Session, table: str, dynamo: DynamoLedger, clock: FakeClock
) -> None:
    put(aws, table, "cluster#new", "lease", expires_at=LATER)
    with pytest.raises(PermanentError, match="cluster#new / lease is not ours: remove it"):
        dynamo.acquire("new", "one", clock.now())
    assert dynamo.abandoned("new", clock.now()) is False


def test_a_strange_bucket_counts_as_empty(
    aws: Session, table: str, dynamo: DynamoLedger, clock: FakeClock
) -> None:
    put(aws, table, "account#us-east-1", "bucket#CreateFleet", expires_at=LATER, version=1)
    assert not dynamo.take_token("CreateFleet", clock.now())


def test_the_largest_slot_fits_into_a_row_and_a_larger_one_is_refused_by_name(
    ledger: Ledger, clock: FakeClock, request: pytest.FixtureRequest
) -> None:
    """EKS takes 737 pods on its largest machines; names are as long as Kubernetes allows."""
    held = ledger.acquire("test", "one", clock.now())
    assert held is not None
    many = tuple(
        type(slot().pods[0])(namespace="n" * 63, name=f"{n:04}" + "p" * 249, uid=f"{n:036}")
        for n in range(737)
    )
    assert ledger.fill_slot(held, slot(pods=many))
    assert len(ledger.slots("test")[0].pods) == 737
    # More of them than one transaction holds.
    more = [slot(number=number, instance_id=f"i-{number}", pods=many) for number in range(3, 15)]
    assert all(ledger.fill_slots(held, more))
    if "dynamo" in request.node.name:
        with pytest.raises(PermanentError, match=r"cluster#test / slot#p1#0#1: \d+ bytes"):
            ledger.fill_slot(held, slot(number=1, instance_id="i-2", pods=many * 2))


def test_a_slot_is_changed_only_as_it_was_read(ledger: Ledger, clock: FakeClock) -> None:
    held = ledger.acquire("test", "one", clock.now())
    assert held is not None
    ledger.fill_slot(held, slot())
    (first,) = ledger.slots("test")
    assert ledger.change_slot(first) is True
    assert ledger.change_slot(first) is False
    (fresh,) = ledger.slots("test")
    assert ledger.change_slot(fresh) is True


def test_a_stale_holder_neither_changes_nor_drops_a_slot(ledger: Ledger, clock: FakeClock) -> None:
    held = ledger.acquire("test", "one", clock.now())
    assert held is not None
    ledger.fill_slot(held, slot())
    (seen,) = ledger.slots("test")
    clock.advance(timedelta(minutes=2))
    assert ledger.acquire("test", "two", clock.now()) is not None
    # Although the later holder has not used the slot.
    assert ledger.change_slot(replace(seen, pods=())) is False
    with pytest.raises(Exception, match="was lost"):
        ledger.drop_slot(seen, held)
    (kept,) = ledger.slots("test")
    assert kept == seen
    assert ledger.change_slot(kept)


def test_what_is_only_suspected_is_out_for_half_as_long(ledger: Ledger, clock: FakeClock) -> None:
    ledger.mark_unavailable([offering()], clock.now(), certain=False)
    clock.advance(timedelta(seconds=89))
    assert ledger.unavailable_offerings(clock.now()) == {offering()}
    clock.advance(timedelta(seconds=1))
    assert ledger.unavailable_offerings(clock.now()) == frozenset()

"""Memos: the fake and the table keep the same promises."""

from datetime import timedelta

import pytest

from shared.aws.ledger.ledger import DynamoLedger
from shared.aws.session import Session
from shared.model.note import Note
from shared.ports import Ledger
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger

DAY = timedelta(days=1)


@pytest.fixture(params=["fake", "table"])
def ledger(request: pytest.FixtureRequest, aws: Session, table: str, clock: FakeClock) -> Ledger:
    if request.param == "fake":
        return FakeLedger()
    return DynamoLedger(aws, table=table, clock=clock)


def test_what_is_written_is_read_again(ledger: Ledger, clock: FakeClock) -> None:
    value = {"text": "ä", "number": 3, "truth": True, "list": [1, {"deep": []}], "map": {}}
    assert ledger.note("one", "a") == Note(name="a")
    ledger.put_note("one", Note(name="a", value=value), clock.now() + DAY)
    found = ledger.note("one", "a")
    assert dict(found.value) == value
    assert found.version == 1
    assert ledger.note("two", "a").version == 0


def test_a_change_is_made_only_to_what_was_read(ledger: Ledger, clock: FakeClock) -> None:
    until = clock.now() + DAY
    assert ledger.change_note("one", Note(name="a", value={"n": 1}), until)
    assert not ledger.change_note("one", Note(name="a", value={"n": 2}), until)
    known = ledger.note("one", "a")
    assert ledger.change_note("one", Note(name="a", value={"n": 3}, version=known.version), until)
    assert not ledger.change_note(
        "one", Note(name="a", value={"n": 4}, version=known.version), until
    )
    assert dict(ledger.note("one", "a").value) == {"n": 3}
    ledger.drop_note("one", "a")
    ledger.drop_note("one", "a")
    assert not ledger.change_note("one", Note(name="a", value={"n": 5}, version=2), until)
    assert ledger.note("one", "a").version == 0


def test_memos_are_listed_by_how_their_names_begin(ledger: Ledger, clock: FakeClock) -> None:
    for name in ("going#b", "going#a", "images#x"):
        ledger.put_note("one", Note(name=name, value={"of": name}), clock.now() + DAY)
    ledger.put_note("two", Note(name="going#c"), clock.now() + DAY)
    assert [memo.name for memo in ledger.notes("one", "going#")] == ["going#a", "going#b"]
    assert [dict(memo.value) for memo in ledger.notes("one", "images#")] == [{"of": "images#x"}]
    assert ledger.notes("one", "none#") == ()


def test_a_memo_whose_time_is_over_is_gone(aws: Session, table: str, clock: FakeClock) -> None:
    ledger = DynamoLedger(aws, table=table, clock=clock)
    ledger.put_note("one", Note(name="a", value={"n": 1}), clock.now() + DAY)
    clock.advance(2 * DAY)
    assert ledger.note("one", "a") == Note(name="a")
    assert ledger.notes("one", "a") == ()
    assert ledger.change_note("one", Note(name="a", value={"n": 2}), clock.now() + DAY)
    assert dict(ledger.note("one", "a").value) == {"n": 2}

"""How announcements become calls."""

import json
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from functions.forwarder import outgoing_messages
from functions.forwarder.observer import Announcement, Ref
from functions.forwarder.outgoing_messages import OutgoingMessages
from shared.model.errors import ThrottledError, UnauthorizedError, UnavailableError
from shared.model.messages.message import Message, MessageKind, encode

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def about(
    *names: str, kind: MessageKind = MessageKind.POD_PENDING, version: str = "1"
) -> list[Announcement]:
    return [Announcement(kind, Ref("shop", name, f"uid-{name}", version)) for name in names]


def outgoing() -> OutgoingMessages:
    return OutgoingMessages("c1", lambda: 1.0)


def names(messages: Iterable[Message]) -> list[list[str]]:
    return [[object_ref.name for object_ref in message.detail.objects] for message in messages]


def test_announcements_of_a_tenth_of_a_second_are_sent_together() -> None:
    out = outgoing()
    assert out.due_at() is None
    assert out.next_messages(T0) == ()
    out.add(about("a"), T0)
    out.add(about("b"), at(0.05))
    assert out.due_at() == at(0.1)
    assert out.next_messages(at(0.09)) == ()
    (message,) = out.next_messages(at(0.1))
    assert (message.kind, message.cluster) == (MessageKind.POD_PENDING, "c1")
    assert names([message]) == [["a", "b"]]
    assert message.detail.at == T0
    out.record_response([message], (), at(0.2))
    assert (out.sent, len(out)) == (1, 0)


def test_object_announced_twice_is_sent_once_with_its_newest_version() -> None:
    out = outgoing()
    out.add(about("a"), T0)
    out.add(about("a", version="2"), T0)
    (message,) = out.next_messages(at(1))
    (one,) = message.detail.objects
    assert (one.namespace, one.name, one.uid, one.resource_version) == ("shop", "a", "uid-a", "2")


def test_a_message_leads_when_its_kind_was_quiet_for_twenty_seconds() -> None:
    out = outgoing()

    def leads(kind: MessageKind, seconds: float) -> bool:
        out.add(about("a", kind=kind), at(seconds))
        (message,) = out.next_messages(at(seconds + 0.1))
        out.record_response([message], (), at(seconds + 0.1))
        return message.detail.leading

    assert leads(MessageKind.POD_PENDING, 0)
    assert not leads(MessageKind.POD_PENDING, 10)
    assert leads(MessageKind.NODE_EMPTY, 11)
    assert not leads(MessageKind.POD_PENDING, 29.9)
    assert leads(MessageKind.POD_PENDING, 50)


def test_a_heartbeat_carries_no_object() -> None:
    out = outgoing()
    out.add([Announcement(MessageKind.HEARTBEAT, None)], T0)
    (message,) = out.next_messages(at(1))
    assert message.detail.objects == ()
    assert out.next_messages(at(2)) == ()


def test_an_object_without_a_name_cannot_be_named() -> None:
    out = outgoing()
    out.add([Announcement(MessageKind.NODE_READY, Ref("", "", "u", "1"))], T0)
    assert names(out.next_messages(at(1))) == [[]]


def test_many_objects_are_split_over_messages_and_calls() -> None:
    out = outgoing()
    out.add(about(*(f"p{n:05d}" for n in range(2500))), T0)
    first = out.next_messages(at(1))
    assert [len(name) for name in names(first)] == [200] * len(first)
    # Only the first of a kind leads: one wake of the fast lane is enough.
    assert [message.detail.leading for message in first] == [True, *[False] * (len(first) - 1)]
    second = out.next_messages(at(1))
    assert sum(len(name) for name in names([*first, *second])) == 2500
    assert len(first) <= 10
    for call in (first, second):
        assert sum(len(json.dumps(encode(message))) for message in call) < 256_000


def test_a_call_has_messages_of_one_kind_and_kinds_take_turns() -> None:
    out = outgoing()
    out.add(about(*(f"p{n:05d}" for n in range(2500))), T0)
    out.add(about("n1", kind=MessageKind.NODE_READY), T0)
    out.add([Announcement(MessageKind.HEARTBEAT, None)], at(0.05))
    calls = [{message.kind for message in out.next_messages(at(1))} for _ in range(5)]
    assert calls == [
        {MessageKind.POD_PENDING},
        {MessageKind.NODE_READY},
        {MessageKind.HEARTBEAT},
        {MessageKind.POD_PENDING},
        set(),
    ]


def test_a_kind_that_is_always_refused_keeps_no_other_waiting() -> None:
    out = outgoing()
    out.add(about("a"), T0)
    now = at(1)
    heard: list[MessageKind] = []
    for _ in range(7):
        messages = out.next_messages(now)
        (kind,) = {message.kind for message in messages}
        if kind == MessageKind.POD_PENDING:
            out.record_failure(messages, UnauthorizedError("not this kind"), now)
        else:
            heard.append(kind)
            out.record_response(messages, (), now)
        now = out.due_at() or now
        out.add(about("n", kind=MessageKind.NODE_READY), now)
    assert heard == [MessageKind.NODE_READY] * 3


def test_a_call_stays_under_the_size_limit_with_the_longest_names() -> None:
    out = outgoing()
    long = [f"{n:04d}".ljust(253, "x") for n in range(1000)]
    out.add(about(*long), T0)
    out.add(about("x" * 254), T0)  # no such name exists
    seen = 0
    while messages := out.next_messages(at(1)):
        assert sum(len(json.dumps(encode(message))) for message in messages) < 256_000
        seen += sum(len(name) for name in names(messages))
        out.record_response(messages, (), at(1))
    assert seen == 1000


def test_refused_messages_are_retried_after_a_growing_delay() -> None:
    out = outgoing()
    out.add(about(*(f"p{n}" for n in range(201))), T0)
    messages = out.next_messages(at(1))
    out.record_response(messages, [1], at(1))
    assert (out.sent, out.failures) == (1, 1)
    assert out.due_at() == at(1.5)
    assert out.next_messages(at(1.4)) == ()
    (again,) = out.next_messages(at(1.5))
    assert again == messages[1]
    out.record_response([again], [0], at(1.5))
    assert out.due_at() == at(2.5)
    (third,) = out.next_messages(at(2.5))
    out.record_response([third], (), at(2.5))
    out.add(about("b"), at(3))
    assert out.due_at() == at(3.1)


def test_a_failed_call_returns_everything_and_newer_news_win() -> None:
    out = outgoing()
    out.add(about("a", "b"), T0)
    messages = out.next_messages(at(1))
    out.add(about("b", version="9"), at(1))
    out.record_failure(messages, UnavailableError("down"), at(1))
    (message,) = out.next_messages(at(2))
    assert message.detail.leading
    assert message.detail.at == T0
    assert [
        (object_ref.name, object_ref.resource_version) for object_ref in message.detail.objects
    ] == [
        ("a", "1"),
        ("b", "9"),
    ]


def test_the_delay_grows_to_half_a_minute_and_listens_to_the_service() -> None:
    out = outgoing()
    out.add(about("a"), T0)
    delays = []
    now = at(1)
    errors = [UnauthorizedError("no")] * 8
    for error in errors:
        messages = out.next_messages(now)
        out.record_failure(messages, error, now)
        due = out.due_at()
        assert due is not None
        delays.append((due - now).total_seconds())
        now = due
    assert delays == [0.5, 1, 2, 4, 8, 16, 30, 30]

    other = outgoing()
    other.add(about("a"), T0)
    other.record_failure(
        other.next_messages(at(1)), ThrottledError("slow", delay=timedelta(seconds=7)), at(1)
    )
    assert other.due_at() == at(8)


def test_at_the_end_everything_is_sent_at_once() -> None:
    out = outgoing()
    out.add(about("a"), T0)
    assert names(out.next_messages(T0, at_once=True)) == [["a"]]


def test_too_many_objects_are_dropped_oldest_first_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outgoing_messages, "MAX_WAITING", 3)
    out = outgoing()
    with caplog.at_level(logging.ERROR):
        out.add(about("a", "b", "c", "d", "e"), T0)
    assert (out.dropped, len(out)) == (2, 3)
    assert [record.message for record in caplog.records] == [
        "1 announcements were dropped: the bus cannot be reached"
    ]
    assert names(out.next_messages(at(1))) == [["c", "d", "e"]]

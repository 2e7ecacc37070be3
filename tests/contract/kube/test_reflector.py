"""The reflector against a scripted server: every way in which a watch can end or lie."""

import threading
from datetime import timedelta

import pytest

from shared.kube.reflector import Reflector, ReflectorOptions
from tests.contract.kube.scripted import Answer, Request, scripted
from tests.contract.kube.watched import (
    HANG,
    PATH,
    Watched,
    bookmark,
    error,
    event,
    listed,
    pod,
    project,
    status,
    watching,
)


def test_a_list_comes_in_pages_and_is_reported_once() -> None:
    first = listed(9, pod("a", 1), pod("b", 2), token="more")
    with watching(first, listed(9, pod("c", 3)), HANG) as watched:
        assert watched.synced.wait(60)
        watched.until_requests(3)
        assert watched.changes == [(None, "a:1"), (None, "b:2"), (None, "c:3")]
        first_page, second_page, watch = watched.server.requests
        assert first_page.query == {"limit": "2"}
        assert second_page.query == {"limit": "2", "continue": "more"}
        assert watch.query == {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": "9",
            "timeoutSeconds": "350",
        }
        assert len(watched.reflector) == 3


def test_events_change_the_copy_and_old_values_are_handed_over() -> None:
    events = [
        event("ADDED", "b", 11),
        event("MODIFIED", "a", 12),
        event("MODIFIED", "a", 12),
        event("DELETED", "b", 13),
        event("DELETED", "never-seen", 14),
    ]
    with watching(listed(10, pod("a", 1)), Answer(lines=events, then="hang")) as watched:
        watched.until(lambda: len(watched.changes) == 4)
        assert watched.changes == [
            (None, "a:1"),
            (None, "b:11"),
            ("a:1", "a:12"),
            ("b:11", None),
        ]


def test_a_stream_that_ends_is_resumed_at_the_last_version_seen() -> None:
    with watching(listed(1), Answer(lines=[event("ADDED", "a", 5)]), HANG) as watched:
        watched.until_requests(3)
        assert watched.watched_from == ["1", "5"]
        assert watched.pauses == []


def test_a_bookmark_moves_the_version_but_is_no_event() -> None:
    with watching(listed(1), Answer(lines=[bookmark(9)]), HANG) as watched:
        watched.until_requests(3)
        assert watched.watched_from == ["1", "9"]
        assert watched.changes == []
        assert watched.pauses == [0.375]


@pytest.mark.parametrize(
    "gone",
    [
        Answer(lines=[error(410, "Expired")]),
        Answer(lines=[error(500, "Gone")]),
        status(410, "Expired"),
    ],
)
def test_410_in_every_form_lists_again_and_reports_what_went_missing(gone: Answer) -> None:
    first = listed(1, pod("a", 1), pod("b", 1))
    second = listed(20, pod("b", 1), pod("c", 15))
    with watching(first, gone, second, HANG) as watched:
        watched.until_requests(4)
        assert watched.changes == [
            (None, "a:1"),
            (None, "b:1"),
            (None, "c:15"),
            ("a:1", None),
        ]
        assert watched.watched_from == ["1", "20"]
        assert watched.pauses == [0.375]


def test_a_pod_that_came_back_under_its_old_name_is_two_changes() -> None:
    first, second = listed(1, pod("uid-1", 1, name="x")), listed(9, pod("uid-2", 8, name="x"))
    with watching(first, status(410), second, HANG) as watched:
        watched.until_requests(4)
        assert watched.changes[1:] == [(None, "uid-2:8"), ("uid-1:1", None)]


def test_410_for_ever_backs_off() -> None:
    def answer(request: Request) -> Answer:
        return status(410) if "watch" in request.query else listed(1)

    with scripted(answer) as server:
        watched = Watched(server, max_pauses=10)
        watched.reflector.run()
        assert watched.pauses[:8] == [0.375, 0.75, 1.5, 3.0, 6.0, 12.0, 22.5, 22.5]
        assert watched.lists == 10


def test_an_expired_continue_token_begins_the_list_again() -> None:
    first = listed(1, pod("a", 1), token="old")
    with watching(first, status(410), listed(5, pod("a", 1), pod("b", 4)), HANG) as watched:
        assert watched.synced.wait(60)
        assert watched.changes == [(None, "a:1"), (None, "b:4")]


def test_a_cut_connection_is_resumed() -> None:
    cut = Answer(lines=[event("ADDED", "a", 7)], then="abort")
    with watching(listed(1), cut, HANG) as watched:
        watched.until_requests(3)
        assert watched.watched_from == ["1", "7"]


def test_a_torn_line_is_dropped_and_its_event_comes_again() -> None:
    torn = Answer(lines=[b'{"type":"ADDED","object":{"meta'], then="abort")
    whole = Answer(lines=[event("ADDED", "a", 3)], then="hang")
    with watching(listed(1), torn, whole) as watched:
        watched.until(lambda: watched.changes == [(None, "a:3")])
        assert watched.watched_from == ["1", "1"]


def test_a_line_that_comes_in_pieces_is_put_together() -> None:
    pieces = [b'{"type":"ADDED","object":{"metadata":', b'{"uid":"a","resourceVersion":"2"}}}\n\n']
    with watching(listed(1), Answer(lines=pieces, then="hang")) as watched:
        watched.until(lambda: watched.changes == [(None, "a:2")])


@pytest.mark.parametrize(
    "nonsense",
    [
        b"<html>\n",
        b"[1]\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":[]}\n',
        b'{"type":"ERROR","object":{"code":"x"}}\n',
    ],
)
def test_nonsense_in_the_stream_is_not_followed(nonsense: bytes) -> None:
    with watching(listed(1), Answer(lines=[nonsense]), HANG) as watched:
        watched.until_requests(3)
        assert watched.pauses == [0.375]


@pytest.mark.parametrize(
    "bad", [status(500), status(403), Answer(lines=[]), Answer(drop=True), status(429)]
)
def test_a_server_that_never_serves_a_watch_is_asked_ever_less_often(bad: Answer) -> None:
    def answer(request: Request) -> Answer:
        return bad if "watch" in request.query else listed(1)

    with scripted(answer) as server:
        watched = Watched(server, max_pauses=6)
        watched.reflector.run()
        assert watched.pauses == [0.375, 0.75, 1.5, 3.0, 6.0, 12.0]
        # After five fruitless watches the version itself is doubted.
        assert watched.lists == 2


def test_the_servers_own_delay_is_kept() -> None:
    slow = Answer(status=429, body={}, headers={"Retry-After": "8"})
    with watching(listed(1), slow, HANG) as watched:
        watched.until_requests(3)
        assert watched.pauses == [6.0]


def test_a_list_that_fails_is_tried_again() -> None:
    with watching(status(500), status(401), listed(1, pod("a", 1)), HANG) as watched:
        assert watched.synced.wait(60)
        assert watched.pauses == [0.375, 0.75]


def test_a_stream_that_lived_for_a_while_starts_the_backoff_over() -> None:
    def answer(request: Request) -> Answer:
        number = len(server.requests)
        if number == 3:
            watched.now += 5.0
        return [listed(1), status(500), Answer(lines=[]), status(500), HANG][number - 1]

    with scripted(answer) as server:
        watched = Watched(server)
        watched.reflector.start()
        watched.until_requests(5)
        watched.reflector.stop(timedelta(seconds=60))
        assert watched.pauses == [0.375, 0.375]
        assert watched.watched_from == ["1"] * 4


def test_null_lists_and_unknown_fields_do_no_harm() -> None:
    strange = {**pod("a", 2), "spec": {"containers": None}, "future": {"x": 1}}
    empty = Answer(body={"metadata": {"resourceVersion": "1"}, "items": None})
    stream = Answer(lines=[{"type": "ADDED", "object": strange}], then="hang")
    with watching(empty, stream) as watched:
        watched.until(lambda: watched.changes == [(None, "a:2")])


def test_one_object_that_cannot_be_read_does_not_hide_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unreadable = {"metadata": {"uid": "x"}}
    with watching(listed(1, unreadable, pod("a", 1)), HANG) as watched:
        assert watched.synced.wait(60)
        assert watched.changes == [(None, "a:1")]
        (said,) = caplog.records
        assert said.getMessage() == "/api/v1/pods: object x cannot be read"


def test_stop_ends_a_silent_watch_at_once() -> None:
    with scripted([listed(1), HANG]) as server:
        watched = Watched(server)
        watched.reflector.start()
        watched.until_requests(2)
        watched.reflector.stop(timedelta(seconds=60))
        assert not watched.reflector.is_alive


def test_stop_ends_a_wait_at_once() -> None:
    with scripted([status(500)]) as server:
        reflector = Reflector(
            server.api,
            PATH,
            project,
            lambda _old, _new: None,
            options=ReflectorOptions(spread=lambda: 1.0),
        )
        reflector.start()
        while not server.requests:
            threading.Event().wait(0.005)
        reflector.stop(timedelta(seconds=60))
        assert not reflector.is_alive


def test_a_kind_that_need_not_be_defined_is_empty_and_looked_for_again() -> None:
    there, gone = listed(5, pod("a", 1)), Answer(lines=[error(404, "NotFound")])
    script = (status(404), there, gone, status(404), listed(9), HANG)
    with watching(*script, optional=True) as watched:
        assert watched.synced.wait(60)
        watched.until_requests(6)
        assert watched.changes == [(None, "a:1"), ("a:1", None)]
        assert watched.pauses[0] == 22.5


def test_a_kind_that_must_be_defined_is_not_synced_without_it() -> None:
    with watching(status(404), listed(5), HANG) as watched:
        watched.until_requests(2)
        assert watched.synced.wait(60)
        assert watched.pauses[0] < 1

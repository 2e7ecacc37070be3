"""An API server that answers slowly, hugely or without an end costs a bounded time and memory."""

import contextlib
import gzip
import json
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from shared.kube import lists
from shared.kube.api import MOST_BYTES, TOO_LARGE, KubeApi
from shared.kube.connection import connect_endpoint
from shared.kube.lists import ListWatch, list_all
from shared.model.errors import UnavailableError
from tests.contract.kube.scripted import Answer, Request, scripted

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextlib.contextmanager
def dribbling(opening: bytes, rest: Callable[[int], bytes]) -> Iterator[KubeApi]:
    """Serve connections that get an opening at once, then a piece each hundredth of a second."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(opening)
            number = 0
            while not over.wait(0.01):
                connection.sendall(rest(number))
                number += 1

    def serve() -> None:
        with contextlib.suppress(OSError):
            while not over.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield connect_endpoint(url, "", lambda: "t", timeout=timedelta(seconds=0.3))
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(2)


@pytest.mark.parametrize(
    ("opening", "rest"),
    [
        (b"HTTP/1.1 200 OK\r\n", lambda number: b"X-%d: y\r\n" % (number % 90)),
        (b"HTTP/1.1 200 OK\r\nX: ", lambda _: b"y"),
        (HEADERS + b"Content-Length: 1000000\r\n\r\n{", lambda _: b" "),
        (HEADERS + b"Transfer-Encoding: chunked\r\n\r\n", lambda _: b"1\r\n \r\n"),
        (HEADERS + b"Transfer-Encoding: chunked\r\n\r\n", lambda _: b"0"),
        (HEADERS + b"Connection: close\r\n\r\n{}", lambda _: b" "),
    ],
    ids=["headers", "a header", "a body with a length", "chunks", "the size of a chunk", "no end"],
)
def test_a_server_that_sends_a_byte_now_and_then_has_not_answered_in_time(
    opening: bytes, rest: Callable[[int], bytes]
) -> None:
    with dribbling(opening, rest) as api, pytest.raises(UnavailableError):
        api.get("/x")


def test_a_short_bound_holds_beside_a_long_one_and_no_call_has_a_thread_of_its_own() -> None:
    endless = HEADERS + b"Transfer-Encoding: chunked\r\n\r\n"
    with dribbling(endless, lambda _: b"1\r\n \r\n") as api:
        patient = connect_endpoint(api.url, "", lambda: "t", timeout=timedelta(seconds=60))

        def ask() -> None:
            with contextlib.suppress(UnavailableError):
                patient.get("/x")

        waiting = threading.Thread(target=ask, daemon=True)
        waiting.start()
        waiting.join(0.2)  # Whatever ends it sleeps now until the long bound.
        with pytest.raises(UnavailableError):
            api.get("/x")
        waiting.join(0.5)  # One that was ended with the short one is over by then.
        assert waiting.is_alive()
        assert [thread.name for thread in threading.enumerate()].count("bounds") == 1
    # A call that is still under way would reach the server of another test.
    waiting.join()


def test_an_answer_is_read_up_to_its_bound_alone_also_when_it_is_packed() -> None:
    packed = gzip.compress(b" " * (10 * MOST_BYTES))
    answers = [
        Answer(raw=b" " * (MOST_BYTES + 1)),
        Answer(raw=packed, headers={"Content-Encoding": "gzip"}),
        Answer(body={"a": 1}),
    ]
    with scripted(answers) as server:
        api = connect_endpoint(server.url, "", lambda: "t")
        assert api.send("GET", "/x").status == TOO_LARGE
        tracemalloc.start()
        try:
            with pytest.raises(UnavailableError, match="more than 8388608 bytes"):
                api.get("/x")
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 4 * MOST_BYTES
        assert api.get("/x") == {"a": 1}


def sizes_of_pages(count: int, size_bytes: int) -> list[int]:
    """Return how many objects each page of a list is asked for with."""
    objects = [{"number": number, "text": "x" * size_bytes} for number in range(count)]
    sizes: list[int] = []

    def answer(request: Request) -> Answer:
        size, start = int(request.query["limit"]), int(request.query.get("continue", "0"))
        sizes.append(size)
        end = start + size
        metadata = {"continue": str(end)} if end < len(objects) else {}
        return Answer(body={"metadata": metadata, "items": objects[start:end]})

    with scripted(answer) as server:
        found = list_all(server.api, "/x", lambda raw: raw["number"])
    assert found == list(range(count))
    return sizes


def test_pages_of_large_objects_are_asked_for_with_fewer_of_them() -> None:
    sizes = sizes_of_pages(40, 2**20)
    assert sizes[:4] == [250, 31, 3, 3]
    assert max(sizes[2:]) == 3


def test_the_size_of_a_page_follows_from_the_objects_before() -> None:
    sizes = sizes_of_pages(600, 20_000)
    assert sizes[0] == 250
    assert 200 < sizes[1] < 250
    assert sizes_of_pages(600, 10) == [250, 1000]


def test_an_object_that_is_too_large_alone_ends_the_list() -> None:
    with scripted([Answer(raw=b" " * (MOST_BYTES + 1))]) as server:
        with pytest.raises(UnavailableError):
            list_all(server.api, "/x", lambda raw: raw)
        assert [request.query["limit"] for request in server.requests] == ["250", "31", "3", "1"]


def test_endless_list_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_PAGES", 20)
    with scripted([Answer(body={"metadata": {"continue": "t"}, "items": []})]) as server:
        with pytest.raises(UnavailableError, match="more than 20 pages"):
            list_all(server.api, "/x", lambda raw: raw)
        assert len(server.requests) == 20
    monkeypatch.setattr(lists, "MOST_LIST_BYTES", 10_000)
    page = json.dumps({"metadata": {"continue": "t"}, "items": [{"text": "x" * 3000}]})
    with scripted([Answer(raw=page.encode())]) as server:
        with pytest.raises(UnavailableError, match="more than 10000 bytes"):
            list(ListWatch(server.api, "/x", dict).pages())
        assert len(server.requests) == 4


def test_a_line_of_a_watch_has_a_bound() -> None:
    with scripted([Answer(lines=[b"x" * (MOST_BYTES + 65_536)], then="hang")]) as server:
        stream = server.api.stream("/x", (), 5)
        with pytest.raises(UnavailableError, match="a line of more than"):
            list(stream.lines())
        stream.close()

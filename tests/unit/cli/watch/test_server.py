"""The page's server answers GET alone, under its token, on loopback's names."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import ClientSession

from functions.cli.watch.broadcast import MOST_BEHIND, Broadcast, broadcasting
from functions.cli.watch.live import LiveCluster, Message
from functions.cli.watch.recording import BEGINNING, Recording, Start
from functions.cli.watch.server import PageServer

Ask = Callable[[ClientSession, str], Awaitable[Any]]


class Source(Recording):
    """Two messages and one decision."""

    async def messages(self, start: Start = BEGINNING) -> AsyncIterator[Mapping[str, Any]]:
        yield {"kind": "whole", "text": "line\nbreak", "start": [start.at, start.speed]}
        yield {"kind": "change"}

    async def decision(self, plan_id: str) -> Mapping[str, Any] | None:
        return {"id": "p1"} if plan_id == "p1" else None

    async def document(self, plan_id: str) -> bytes | None:
        return b"gzip" if plan_id == "p1" else None


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>Dovetail</title>")
    (tmp_path / "assets" / "a.js").write_text("1")
    (tmp_path / "secret").write_text("no suffix, so not served")
    return tmp_path


def served(built: Path, ask: Ask) -> Any:
    async def run() -> Any:
        server = PageServer(Source([]), built)
        address = await server.start()
        try:
            async with ClientSession() as session:
                return await ask(session, address)
        finally:
            await server.stop()

    return asyncio.run(run())


def answered(built: Path, path: str, method: str = "GET", host: str = "") -> tuple[int, str, Any]:
    async def ask(session: ClientSession, address: str) -> tuple[int, str, Any]:
        url = address.rsplit("/", 2)[0] + path[1:] if path.startswith("!") else address + path
        headers = {"Host": host} if host else {}
        async with session.request(method, url, headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers

    found: tuple[int, str, Any] = served(built, ask)
    return found


def test_the_page_and_its_files_forbid_anything_from_elsewhere(built: Path) -> None:
    for path, media in (("", "text/html"), ("assets/a.js", "text/javascript")):
        status, _, headers = answered(built, path)
        assert status == 200
        assert headers["Content-Type"].startswith(media)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["!/", "!/other/", "!/stream", "!/wrong/stream", "!/wrong/decisions/p1"]
)
def test_without_the_token_nothing_is_told(built: Path, path: str) -> None:
    status, text, _ = answered(built, path)
    assert status == 404
    assert text == "open the whole address that `dovetail watch` printed\n"


@pytest.mark.parametrize(
    "path",
    [
        *("secret", "assets/../secret", "..%2f..%2fetc/passwd", "none.js"),
        # What no file can be named.
        *("a%00.js", f"{'a' * 5000}.js", f"{'a/' * 2500}a.js"),
    ],
)
def test_only_files_of_the_page_are_served(built: Path, path: str) -> None:
    assert answered(built, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_every_method_but_get_is_refused(built: Path, method: str) -> None:
    status, _, headers = answered(built, "stream", method)
    assert (status, headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1"])
def test_a_request_under_another_name_is_refused(built: Path, host: str) -> None:
    assert answered(built, "", host=host)[0] == 421


def test_localhost_is_a_name_of_this_machine_too(built: Path) -> None:
    async def ask(session: ClientSession, address: str) -> int:
        port = address.split(":")[2].split("/", maxsplit=1)[0]
        async with session.get(address, headers={"Host": f"localhost:{port}"}) as answer:
            return answer.status

    assert served(built, ask) == 200


def test_messages_are_sent_as_events_and_the_end_is_told(built: Path) -> None:
    status, text, headers = answered(built, "stream")
    assert (status, headers["Content-Type"]) == (200, "text/event-stream")
    events = text.strip().split("\n\n")
    assert json.loads(events[0].removeprefix("data: "))["text"] == "line\nbreak"
    assert json.loads(events[1].removeprefix("data: ")) == {"kind": "change"}
    assert events[2].startswith("event: end")


@pytest.mark.parametrize(
    ("asked", "start"), [("", [0, 0]), ("?at=12.5&speed=4", [12.5, 4]), ("?at=3", [3, 0])]
)
def test_a_reader_says_where_a_recording_starts(
    built: Path, asked: str, start: list[float]
) -> None:
    first = answered(built, f"stream{asked}")[1].split("\n\n")[0]
    assert json.loads(first.removeprefix("data: "))["start"] == start


@pytest.mark.parametrize("asked", ["?at=x", "?at=-1", "?speed=nan", "?speed=inf"])
def test_a_start_that_is_no_amount_is_refused(built: Path, asked: str) -> None:
    status, text, _ = answered(built, f"stream{asked}")
    assert status == 400
    assert text == "at and speed: give seconds and a factor, as ?at=12.5&speed=4\n"


def test_a_decision_opens_and_is_saved_under_its_name(built: Path) -> None:
    assert json.loads(answered(built, "decisions/p1")[1]) == {"id": "p1"}
    status, text, headers = answered(built, "decisions/p1.json.gz")
    assert (status, text) == (200, "gzip")
    assert headers["Content-Disposition"] == 'attachment; filename="p1.json.gz"'
    assert answered(built, "decisions/p2")[0] == 404
    assert answered(built, "decisions/p2.json.gz")[0] == 404


def test_every_start_has_another_token(built: Path) -> None:
    async def ask(_: ClientSession, address: str) -> str:
        return address

    first, second = served(built, ask), served(built, ask)
    assert first.split("/")[3] != second.split("/")[3]
    assert len(first.split("/")[3]) >= 24


# --- several readers of one cluster


class Turns(LiveCluster):
    """A live cluster whose turns a test sets."""

    def __init__(self) -> None:
        self.turns: list[dict[str, Any]] = []

    def next_change(self) -> Message | None:
        return self.turns.pop(0) if self.turns else None

    def whole(self) -> Message:
        return {"kind": "whole"}

    def decision(self, plan_id: str) -> Message | None:
        return {"id": plan_id}

    def document(self, plan_id: str) -> bytes | None:
        return plan_id.encode()


def test_each_reader_is_sent_the_whole_and_then_every_change() -> None:
    kept: list[Mapping[str, Any]] = []

    async def run() -> list[Any]:
        live = Turns()
        broadcast = Broadcast(live, kept.append)
        async with broadcasting(broadcast):
            first, second = aiter(broadcast.messages()), aiter(broadcast.messages())
            told = [await anext(first), await anext(second)]
            live.turns = [{"kind": "change", "n": 1}]
            return [*told, await anext(first), await anext(second)]

    told = asyncio.run(run())
    assert told == [{"kind": "whole"}] * 2 + [{"kind": "change", "n": 1}] * 2
    assert [message["kind"] for message in kept] == ["whole", "change"]


def test_a_reader_that_is_far_behind_is_sent_the_whole_instead() -> None:
    async def run() -> list[Any]:
        broadcast = Broadcast(Turns())
        reader = aiter(broadcast.messages())
        await anext(reader)
        [queue] = broadcast._readers
        for number in range(MOST_BEHIND + 1):
            await broadcast._enqueue(queue, {"n": number})
        return [await anext(reader), queue.qsize()]

    assert asyncio.run(run()) == [{"kind": "whole"}, 0]


def test_a_reader_that_leaves_while_another_is_sent_the_whole_stops_nothing() -> None:
    live = Turns()

    async def run() -> None:
        broadcast = Broadcast(live)
        readers = [aiter(broadcast.messages()) for _ in range(3)]
        for reader in readers:
            await anext(reader)
        for queue in broadcast._readers:
            for number in range(MOST_BEHIND):
                queue.put_nowait({"n": number})

        def whole() -> Message:
            broadcast._readers.pop()
            return {"kind": "whole"}

        live.whole = whole  # type: ignore[method-assign]
        await broadcast._send({"kind": "change"})

    asyncio.run(run())


def test_after_a_turn_that_failed_all_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("functions.cli.watch.broadcast._REST_SECONDS", 0.0)

    async def run() -> list[Any]:
        live = Turns()
        live.turns = [{"kind": "change", "n": 1}]
        full = OSError("no space left on the device")
        broadcast = Broadcast(live, Mock(side_effect=[None, full, None, None]))
        async with broadcasting(broadcast):
            reader = aiter(broadcast.messages())
            told = [await anext(reader), await anext(reader)]
            live.turns = [{"kind": "change", "n": 2}]
            return [*told, await anext(reader)]

    assert asyncio.run(run()) == [{"kind": "whole"}] * 2 + [{"kind": "change", "n": 2}]
    assert "what changed could not be sent" in caplog.text


def test_decisions_are_asked_of_the_cluster() -> None:
    async def run() -> tuple[Any, Any]:
        broadcast = Broadcast(Turns())
        return await broadcast.decision("p1"), await broadcast.document("p1")

    assert asyncio.run(run()) == ({"id": "p1"}, b"p1")

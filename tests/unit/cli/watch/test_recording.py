"""Recordings are played as they were recorded."""

import asyncio
import gzip
import io
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from functions.cli.input_error import InputError
from functions.cli.watch import recording
from functions.cli.watch.recording import (
    BEGINNING,
    Recorder,
    Recording,
    Start,
    read_recording,
)

NOW = datetime(2026, 11, 30, tzinfo=UTC)
HEAD = '{"format":"dovetail-recording","version":2}'


def recorded(*messages: dict[str, Any]) -> str:
    file = io.StringIO()
    seconds = iter(range(100))
    decisions = {"p1": {"id": "p1", "cost": 5}}
    recorder = Recorder(file, lambda: float(next(seconds)), decisions.get, lambda: NOW)
    for message in messages:
        recorder.record(message)
    return file.getvalue()


def played(recording: Recording, start: Start = BEGINNING) -> list[Any]:
    async def play() -> list[Any]:
        return [message async for message in recording.messages(start)]

    return asyncio.run(play())


def test_messages_are_played_at_their_times_faster_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(recorded({"kind": "whole"}, {"kind": "change"}, {"kind": "change"}))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    recording = Recording(read_recording(str(path)), 2.0, sleep)
    assert [message["kind"] for message in played(recording)] == ["whole", "change", "change"]
    assert slept == [0.5, 0.5]
    assert [message["recorded"] for message in played(recording)] == [
        {"at": at, "length": 2.0, "speed": 2.0} for at in (0.0, 1.0, 2.0)
    ]
    assert {message["now"] for message in played(recording)} == {1000 * NOW.timestamp()}


MOVES: Final[tuple[dict[str, Any], ...]] = (
    {
        "kind": "whole",
        "synced": False,
        "nodes": [{"name": "old"}],
        "notes": ["n"],
        "history": [[9]],
    },
    {"kind": "whole", "synced": True, "nodes": [{"name": "a"}], "waiting": [1], "history": [[1]]},
    {"kind": "change", "nodes": [{"name": "b"}, {"name": "c"}], "waiting": None, "point": [2]},
    {"kind": "change", "nodes": [{"name": "b", "full": True}], "gone": ["a"], "least": None},
    {"kind": "change", "gone": ["c"]},
)


def test_a_start_later_shows_all_there_was_then_and_plays_on_from_there() -> None:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    slept: list[float] = []
    recording = Recording(recorded(*MOVES).encode().splitlines()[1:], 1.0, sleep)
    whole, change = played(recording, Start(at=3.5, speed=5))
    assert whole == {
        "kind": "whole",
        "synced": True,
        "nodes": [{"name": "b", "full": True}, {"name": "c"}],
        "waiting": [1],
        "notes": ["n"],
        "least": None,
        "history": [[1], [2]],
        "now": 1000 * NOW.timestamp() + 500,
        "recorded": {"at": 3.5, "length": 4.0, "speed": 5},
    }
    assert change["gone"] == ["c"]
    assert slept == [0.1]
    [end] = played(recording, Start(at=99))
    assert (end["nodes"], end["recorded"]["at"]) == ([{"name": "b", "full": True}], 4.0)


def test_a_recording_without_messages_ends_at_once() -> None:
    assert played(Recording([]), Start(at=1)) == []


def test_a_decision_is_kept_once_and_found_again() -> None:
    text = recorded({"decisions": [{"id": "p1"}]}, {"decisions": [{"id": "p1"}, {"id": "p2"}]})
    lines = text.encode().splitlines()[1:]
    assert sum(b'"decision":' in line for line in lines) == 1
    recording = Recording(lines)
    assert asyncio.run(recording.decision("p1")) == {"id": "p1", "cost": 5}
    assert asyncio.run(recording.decision("p2")) is None
    assert asyncio.run(recording.document("p1")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its first line names no dovetail-recording 2"),
        ('{"format":"other"}', "its first line names no dovetail-recording 2"),
        ("no json", "is not JSON line by line"),
        (f'{HEAD}\n{{"message":{{}}}}', "line 2 has no time with a message"),
        (f'{HEAD}\n{{"t":0}}', "line 2 has no time with a message"),
        (f'{HEAD}\n{{"t":0,"decision":{{}}}}', "line 2 has no time with a message"),
        (f"{HEAD}\n[1]", "line 2 has no time with a message"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_recording(str(path))


def test_a_recording_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(recorded({"kind": "whole"}).encode()))
    assert len(read_recording(str(path))) == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no gzip", id="not compressed"),
        pytest.param(gzip.compress(b"{}" * 99, mtime=0)[:-9], id="cut short"),
    ],
)
def test_a_compressed_file_that_is_broken_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected a"):
        read_recording(str(path))


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"t":0,"message":{"a":"' + b"x" * 100 + b'"}}', "line 2 is longer than 99 bytes"),
        (b'{"t":0,"message":{}}\n' * 20, "is larger than 300 bytes"),
        (b'{"t":0,"message":{"a":[0,0,0,0,0,0]}}', "line 2 has more than 8 values"),
    ],
)
def test_a_recording_is_read_within_bounds_after_it_is_decompressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: bytes, said: str
) -> None:
    for bound, most in (("_MOST_BYTES", 300), ("_MOST_LINE_BYTES", 99), ("_MOST_VALUES", 8)):
        monkeypatch.setattr(recording, bound, most)
    content = HEAD.encode() + b"\n" + line
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(InputError, match=said):
        read_recording(str(path))


def test_a_line_that_never_ends_is_not_read_to_its_end(tmp_path: Path) -> None:
    # 200 MiB of one line are 200 KB of gzip.
    path = tmp_path / "r.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"x" * 2**20)
    tracemalloc.start()
    with pytest.raises(InputError, match="line 1 is longer than 67108864 bytes"):
        read_recording(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 2**20


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for path in ("/dev/zero", str(tmp_path)):
        with pytest.raises(InputError, match=f"{path}: is no regular file; expected a file"):
            read_recording(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a readable file"):
        read_recording(str(tmp_path / "none"))

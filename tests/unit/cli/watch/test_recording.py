"""Recordings are played as they were recorded."""

import asyncio
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from functions.cli.inputs import InputError
from functions.cli.watch.recording import Recorder, Recording, read_recording

HEAD = '{"format":"dovetail-recording","version":1}'


def recorded(*messages: dict[str, Any]) -> str:
    file = io.StringIO()
    seconds = iter(range(100))
    decisions = {"p1": {"id": "p1", "cost": 5}}
    recorder = Recorder(file, lambda: float(next(seconds)), decisions.get)
    for message in messages:
        recorder.keep(message)
    return file.getvalue()


def played(recording: Recording) -> list[Any]:
    async def play() -> list[Any]:
        return [message async for message in recording.messages()]

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
    assert all(message["recorded"] for message in played(recording))


def test_a_decision_is_kept_once_and_found_again() -> None:
    text = recorded({"decisions": [{"id": "p1"}]}, {"decisions": [{"id": "p1"}, {"id": "p2"}]})
    lines = [json.loads(line) for line in text.splitlines()[1:]]
    assert sum("decision" in line for line in lines) == 1
    recording = Recording(lines)
    assert asyncio.run(recording.decision("p1")) == {"id": "p1", "cost": 5}
    assert asyncio.run(recording.decision("p2")) is None
    assert asyncio.run(recording.document("p1")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its first line names no dovetail-recording 1"),
        ('{"format":"other"}', "its first line names no dovetail-recording 1"),
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


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a readable file"):
        read_recording(str(tmp_path / "none"))

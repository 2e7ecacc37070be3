"""Recordings: the messages of a live cluster with their times, and how they are played back.

One JSON object a line. The first names format and version; each other has `t`, the seconds since
the recording began, and a `message`, or a `decision` in full. A message has the time at which it
was recorded as `now`, in milliseconds since 1970: ages count to it. It may be compressed with gzip.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from msgspec import Struct

from functions.cli.input_error import InputError
from functions.cli.plan.inputs import open_input

FORMAT: Final = "dovetail-recording"
VERSION: Final = 2
# Limits of a decompressed recording and of one line of it: the whole of 100,000 pods is less.
_MOST_BYTES: Final = 512 * 2**20
_MOST_LINE_BYTES: Final = 64 * 2**20
_MOST_VALUES: Final = 4_000_000  # of a line; one takes some 60 bytes
# What a message replaces; nodes and points add up.
_REPLACED: Final = frozenset(
    {"cluster", "decisions", "least", "notes", "now", "opened", "synced", "totals", "waiting"}
)
_REMEDY: Final = "expected a file of `dovetail watch --record`"

Message = Mapping[str, Any]


class Start(Struct, frozen=True, kw_only=True):
    """Where a recording is played from.

    Attributes:
        at: Seconds since its beginning.
        speed: How many times faster than it was recorded; 0 for as the command was told.
    """

    at: float = 0.0
    speed: float = 0.0


BEGINNING: Final = Start()


class Recorder:
    """Writes a recording, line by line.

    Args:
        file: Opened for writing text.
        seconds: The time since the recording began.
        decision: Returns all about a decision by its id.
        now: The current time, UTC.
    """

    def __init__(
        self,
        file: IO[str],
        seconds: Callable[[], float],
        decision: Callable[[str], Message | None],
        now: Callable[[], datetime],
    ) -> None:
        self._file = file
        self._now = now
        self._seconds = seconds
        self._decision = decision
        self._kept: set[str] = set()
        self._write({"format": FORMAT, "version": VERSION})

    def record(self, message: Message) -> None:
        """Write a message, and the decisions it is the first to name."""
        at = round(self._seconds(), 3)
        for named in message.get("decisions") or ():
            found = None if named["id"] in self._kept else self._decision(named["id"])
            if found is not None:
                self._kept.add(named["id"])
                self._write({"t": at, "decision": dict(found)})
        now = round(self._now().timestamp() * 1000)
        self._write({"t": at, "message": {**message, "now": now}})
        self._file.flush()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


class Recording:
    """A source that plays a recording to each reader.

    Args:
        lines: The recording's lines after the first.
        speed: How many times faster than it was recorded.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        speed: float = 1.0,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self._messages: list[tuple[float, bytes]] = []
        self._decisions: dict[str, bytes] = {}
        for line in lines:
            value = json.loads(line)
            if "decision" in value:
                self._decisions[value["decision"]["id"]] = line
            else:
                self._messages.append((float(value["t"]), line))
        self._speed = speed
        self._sleep = sleep

    async def messages(self, start: Start = BEGINNING) -> AsyncIterator[Message]:
        """Yield all that is shown at the start, then each message at its time."""
        speed = start.speed or self._speed
        length = self._messages[-1][0] if self._messages else 0.0
        played = min(start.at, length)
        before = [line for at, line in self._messages if at <= played]
        if before:
            whole = await asyncio.to_thread(_whole, before, played)
            yield {**whole, "recorded": {"at": played, "length": length, "speed": speed}}
        for at, line in self._messages[len(before) :]:
            if at > played:
                await self._sleep((at - played) / speed)
                played = at
            recorded = {"at": at, "length": length, "speed": speed}
            yield {**json.loads(line)["message"], "recorded": recorded}

    async def decision(self, plan_id: str) -> Message | None:
        """Return all about one decision, None when it is not in the recording."""
        line = self._decisions.get(plan_id)
        found: Message | None = None if line is None else json.loads(line)["decision"]
        return found

    async def document(self, plan_id: str) -> bytes | None:
        """Return None: a recording holds what is shown of decisions, not their snapshots."""
        del plan_id
        return None


def _whole(lines: Iterable[bytes], at: float) -> dict[str, Any]:
    """Return messages, in order of time, as one that says all; its time is `at` seconds."""
    rest: dict[str, Any] = {"kind": "whole", "synced": False}
    nodes: dict[str, Any] = {}
    history: list[Any] = []
    since = 0.0
    for line in lines:
        parsed = json.loads(line)
        since, message = parsed["t"], parsed["message"]
        if message["kind"] == "whole":
            nodes.clear()
        nodes |= {node["name"]: node for node in message.get("nodes", ())}
        for name in message.get("gone", ()):
            nodes.pop(name, None)
        history = message.get("history", history)
        if "point" in message:
            history.append(message["point"])
        replaced = {name: value for name, value in message.items() if name in _REPLACED}
        if replaced.get("waiting", ()) is None:
            del replaced["waiting"]
        rest |= {"synced": True, **replaced}
    now = rest["now"] + round(1000 * (at - since))
    return {**rest, "nodes": [*nodes.values()], "history": history, "now": now}


def read_recording(path: str) -> list[bytes]:
    """Return the lines of a recording after the first, each as it is written.

    A parsed line takes many times the memory of its text, so only one is parsed at a time.

    Raises:
        InputError: If the file cannot be read, is not a recording, or exceeds the limits.
    """
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{path}: is no regular file; {_REMEDY}")
    kept: list[bytes] = []
    with open_input(path) as file:
        try:
            for number, line in enumerate(_lines(path, file), 1):
                value = json.loads(line)
                if number == 1 and value != {"format": FORMAT, "version": VERSION}:
                    break
                if number > 1 and (not isinstance(value, dict) or not _is_line(value)):
                    problem = f"line {number} has no time with a message"
                    raise InputError(f"{path}: {problem}; {_REMEDY}")
                kept.append(line)
        except (gzip.BadGzipFile, ValueError, RecursionError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: is not JSON line by line; {_REMEDY}") from error
    if not kept:
        raise InputError(f"{path}: its first line names no {FORMAT} {VERSION}; {_REMEDY}")
    return kept[1:]


def _lines(path: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield the non-empty lines, decompressed; what exceeds the limits is not read.

    Raises:
        InputError: At the first line that exceeds them.
    """
    text = gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
    size = number = 0
    while line := text.readline(_MOST_LINE_BYTES + 1):
        size += len(line)
        number += 1
        if size > _MOST_BYTES:
            raise InputError(f"{path}: is larger than {_MOST_BYTES} bytes; {_REMEDY}")
        if len(line) > _MOST_LINE_BYTES:
            problem = f"line {number} is longer than {_MOST_LINE_BYTES} bytes"
            raise InputError(f"{path}: {problem}; {_REMEDY}")
        if sum(map(line.count, (b"[", b"{", b","))) > _MOST_VALUES:
            problem = f"line {number} has more than {_MOST_VALUES} values"
            raise InputError(f"{path}: {problem}; {_REMEDY}")
        if line.strip():
            yield line


def _is_line(line: Mapping[str, Any]) -> bool:
    if not isinstance(line.get("t"), int | float):
        return False
    decision, message = line.get("decision"), line.get("message")
    return (isinstance(decision, dict) and isinstance(decision.get("id"), str)) or isinstance(
        message, dict
    )

"""Recordings: the messages of a live cluster with their times, and how they are played back.

One JSON object a line. The first names format and version; each other has `t`, the seconds since
the recording began, and a `message`, or a `decision` in full. It may be compressed with gzip.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

from functions.cli.inputs import InputError

FORMAT: Final = "dovetail-recording"
VERSION: Final = 1
_MOST_BYTES: Final = 512 * 2**20

Message = Mapping[str, Any]


class Recorder:
    """Writes a recording, line by line.

    Args:
        file: Opened for writing text.
        seconds: The time since the recording began.
        decision: Returns all about a decision by its id.
    """

    def __init__(
        self,
        file: IO[str],
        seconds: Callable[[], float],
        decision: Callable[[str], Message | None],
    ) -> None:
        self._file = file
        self._seconds = seconds
        self._decision = decision
        self._kept: set[str] = set()
        self._write({"format": FORMAT, "version": VERSION})

    def keep(self, message: Message) -> None:
        """Write a message, and the decisions it is the first to name."""
        at = round(self._seconds(), 3)
        for named in message.get("decisions") or ():
            found = None if named["id"] in self._kept else self._decision(named["id"])
            if found is not None:
                self._kept.add(named["id"])
                self._write({"t": at, "decision": dict(found)})
        self._write({"t": at, "message": dict(message)})
        self._file.flush()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


class Recording:
    """A source that plays a recording from its beginning to each reader.

    Args:
        lines: The recording's lines after the first.
        speed: How many times faster than it was.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        lines: Iterable[Mapping[str, Any]],
        speed: float = 1.0,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self._messages = []
        self._decisions: dict[str, Message] = {}
        for line in lines:
            if "decision" in line:
                self._decisions[line["decision"]["id"]] = line["decision"]
            else:
                self._messages.append((float(line["t"]), line["message"]))
        self._speed = speed
        self._sleep = sleep

    async def messages(self) -> AsyncIterator[Message]:
        """Yield each message at its time."""
        played = 0.0
        for at, message in self._messages:
            if at > played:
                await self._sleep((at - played) / self._speed)
                played = at
            yield {**message, "recorded": True}

    async def decision(self, plan_id: str) -> Message | None:
        """Return all about one decision, None when it is not in the recording."""
        return self._decisions.get(plan_id)

    async def document(self, plan_id: str) -> bytes | None:
        """Return None: a recording holds what is shown of decisions, not their snapshots."""
        del plan_id
        return None


def read_recording(path: str) -> list[dict[str, Any]]:
    """Return the lines of a recording after the first.

    Raises:
        InputError: If the file cannot be read or is no recording.
    """
    remedy = "expected a file of `dovetail watch --record`"
    try:
        if Path(path).stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: is larger than {_MOST_BYTES >> 20} MiB; {remedy}")
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            lines = [json.loads(line) for line in file if line.strip()]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a readable file") from error
    except (ValueError, RecursionError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: is not JSON line by line; {remedy}") from error
    if not lines or lines[0] != {"format": FORMAT, "version": VERSION}:
        raise InputError(f"{path}: its first line names no {FORMAT} {VERSION}; {remedy}")
    for number, line in enumerate(lines[1:], 2):
        if not isinstance(line, dict) or not _is_line(line):
            raise InputError(f"{path}: line {number} has no time with a message; {remedy}")
    return lines[1:]


def _is_line(line: Mapping[str, Any]) -> bool:
    if not isinstance(line.get("t"), int | float):
        return False
    decision, message = line.get("decision"), line.get("message")
    return (isinstance(decision, dict) and isinstance(decision.get("id"), str)) or isinstance(
        message, dict
    )

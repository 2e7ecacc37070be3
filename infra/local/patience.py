"""Time in which the processes of the world were served: limits are counted in it.

A machine that has other work makes processes wait for a processor, and what they do takes longer.
Linux counts that wait for each thread. Of each look, the longest wait of any thread is left out:
the way from event to running pod leads through one thread after the other.
Source: https://docs.kernel.org/scheduler/sched-stats.html (/proc/<pid>/schedstat, which each thread
has: the second figure is the time spent waiting on a run queue, in nanoseconds), read 2026-11-24.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

T = TypeVar("T")

_NANOS: Final = 1_000_000_000
# Even where all processes wait, so much of the time counts: a limit ends some time.
_LEAST_SHARE: Final = 0.05
_LOOK_SECONDS: Final = 0.5
_PROC: Final = "/proc"
_PAUSE_SECONDS: Final = 0.05


class Patience:
    """A clock that stops while the processes of the world wait for a processor."""

    def __init__(
        self,
        waits: Callable[[], Mapping[int, int]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._waits = waits or (lambda: waits_below(os.getpid()))
        self._clock = clock
        self._began = self._looked = clock()
        self._seen = dict(self._waits())
        self._served = 0.0

    def served(self) -> float:
        """Return the seconds that count since it was made; ask often, each second or so."""
        now = self._clock()
        passed = now - self._looked
        if passed < _LOOK_SECONDS:
            return self._served
        seen = dict(self._waits())
        longest = (
            max((seen[thread] - self._seen.get(thread, 0) for thread in seen), default=0) / _NANOS
        )
        self._served += max(passed - longest, passed * _LEAST_SHARE)
        self._looked, self._seen = now, seen
        return self._served

    def slowness(self) -> float:
        """Return how much longer things took than the time that counted, at least 1."""
        served = self.served()
        return max(1.0, (self._looked - self._began) / served) if served else 1.0


def awaited(look: Callable[[], T], within_seconds: float) -> T:
    """Return the first true answer of `look`, or its last one once so much time was served."""
    found = look()
    if found:
        return found
    patience = Patience()
    while not found and patience.served() <= within_seconds:
        time.sleep(_PAUSE_SECONDS)
        found = look()
    return found


def waits_below(ancestor: int) -> dict[int, int]:
    """Return the nanoseconds that each thread of a process and of those below it has waited."""
    parents = {pid: _parent(pid) for pid in _numbers(_PROC)}
    below, size = {ancestor}, 0
    while len(below) > size:
        size = len(below)
        below |= {pid for pid, parent in parents.items() if parent in below}
    return {
        thread: _waited(f"{_PROC}/{pid}/task/{thread}/schedstat")
        for pid in below
        for thread in _numbers(f"{_PROC}/{pid}/task")
    }


def _numbers(folder: str) -> list[int]:
    try:
        return [int(found.name) for found in os.scandir(folder) if found.name.isdecimal()]
    except OSError:
        return []


def _parent(pid: int) -> int:
    # The name of the program, in parentheses, may contain anything.
    words = _read(f"{_PROC}/{pid}/stat").rpartition(b")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


def _waited(file: str) -> int:
    words = _read(file).split()
    return int(words[1]) if len(words) > 1 else 0


def _read(file: str) -> bytes:
    """Return a file of /proc, as much of it as is needed; empty when its process is gone."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 512)
    except OSError:
        return b""
    finally:
        os.close(descriptor)

"""CPU time of calls, and an end for those that take too long."""

import gc
import os
import signal
import statistics
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

_Found = TypeVar("_Found")


class StoppedError(Exception):
    """A call used up the CPU time it was given."""


def reference_milliseconds() -> float:
    """Return the CPU time of a fixed piece of work: how fast this machine is just now."""
    return cpu_time(lambda: sum(number * number for number in range(2_000_000)), 3)[1]


def cpu_time(call: Callable[[], _Found], runs: int = 1) -> tuple[_Found, float]:
    """Return what a call returns and the median of its CPU time, in milliseconds."""
    times = []
    found = None
    for _ in range(runs):
        gc.collect()
        began = time.process_time()
        found = call()
        times.append((time.process_time() - began) * 1000)
    assert found is not None
    return found, statistics.median(times)


def kept_byte_code(folder: str) -> dict[str, str]:
    """Return the environment of a process that keeps its byte code in a folder.

    What the second such process takes is what installed code takes, whatever this process was
    told about byte code and however fresh the sources are.
    """
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPYCACHEPREFIX": folder}


def several(call: Callable[[], _Found], budget_seconds: float = 6.0) -> tuple[_Found, float]:
    """Return the same with as many runs as the budget has room for: an odd number up to nine.

    The first run is not counted where there are more: it warms caches that a process that lives
    has warm.
    """
    found, first = cpu_time(call)
    runs = int(budget_seconds * 1000 / max(first, 1))
    if runs < 3:
        return found, first
    return cpu_time(call, min(runs - 1 + runs % 2, 9))


def within(seconds: float, call: Callable[[], _Found]) -> tuple[_Found, float]:
    """Return the same of one run, which may take so much CPU time.

    Raises:
        StoppedError: If it took longer and was stopped.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGVTALRM, stop)
    # It rings again, because an exception raised inside a callback of the interpreter is lost.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)
    try:
        found, took = cpu_time(call)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    # While such a timer is set the system counts in steps of 4 ms.
    return cpu_time(call) if took < 500 else (found, took)

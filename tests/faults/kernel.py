"""Virtual time: one thing happens at a time, in an order that the seed alone decides.

Services are straight-line code. Each invocation therefore runs in a thread of its own, but only
one thread runs at a time: whoever pauses hands the baton back to the loop.
"""

import heapq
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)


class Killed(BaseException):
    """The process ends here, whatever it was doing: no handler of ours sees this."""


def micros(span: timedelta) -> int:
    """Return a span in microseconds."""
    return span // _MICRO


class _Worker:
    """A thread that runs one process after the other, each when it is given the baton."""

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.back = threading.Lock()
        self.go.acquire()
        self.back.acquire()
        self.job: Callable[[], None] | None = None
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self) -> None:
        while True:
            self.go.acquire()
            job = self.job
            assert job is not None
            job()
            self.job = None
            self.back.release()

    def resume(self) -> None:
        """Let the thread run until it pauses or its job is over."""
        self.go.release()
        self.back.acquire()

    def pause(self) -> None:
        """Hand the baton back; called by the thread itself."""
        self.back.release()
        self.go.acquire()


_idle: list[_Worker] = []


class Process:
    """One running invocation.

    Attributes:
        function: Kind of function, part of every call site.
        salt: Of its small random choices.
        deadline: Microsecond at which it is killed from outside.
        skew: How far its clock is ahead.
        napped: Whether it slept longer than a lease lasts: a zombie since.
    """

    def __init__(
        self, function: str, number: int, salt: int, deadline: int, skew: timedelta
    ) -> None:
        self.function = function
        self.number = number
        self.salt = salt
        self.deadline = deadline
        self.skew = skew
        self.calls = 0
        self.killed = False
        self.napped = False
        self.worker: _Worker | None = None


class Kernel:
    """The loop: what is due next happens next, in order of time, then of when it was planned.

    Attributes:
        time: Microseconds since the start.
        current: The invocation that has the baton, None for the world itself.
    """

    def __init__(self) -> None:
        self.time = 0
        self.current: Process | None = None
        self.events = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._limit = 0
        self._living: dict[int, Process] = {}
        self._failure: BaseException | None = None

    def now(self) -> datetime:
        """Return the true time."""
        return START + timedelta(microseconds=self.time)

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Let something happen at a time."""
        self._order += 1
        heapq.heappush(self._heap, (max(time, self.time), self._order, action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen so many seconds from now."""
        self.at(self.time + int(seconds * 1_000_000), action)

    def run_until(self, time: int) -> None:
        """Let everything happen that is due up to a time."""
        self._limit = time
        heap = self._heap
        while heap and heap[0][0] <= time:
            due, _, action = heapq.heappop(heap)
            self.time = due
            self.events += 1
            action()
            if self._failure is not None:
                raise self._failure
        self.time = time

    def start(self, process: Process, body: Callable[[], Any], over: Callable[[Any], None]) -> None:
        """Run a body as a process, from now on.

        Args:
            over: Called with what the body returned or with what it raised.
        """
        worker = _idle.pop() if _idle else _Worker()

        def job() -> None:
            outcome: Any
            try:
                outcome = body()
            except Exception as error:  # noqa: BLE001 - the outermost loop of an invocation
                outcome = error
            except Killed as error:
                outcome = error
            self._living.pop(process.number, None)
            self.current = None
            try:
                over(outcome)
            except BaseException as error:  # noqa: BLE001 - handed to the thread of the test
                self._failure = error

        worker.job = job
        process.worker = worker
        self._living[process.number] = process
        self._resume(process)

    def pause(self, span: int) -> None:
        """Let time pass for the process that runs now; others may run meanwhile.

        Raises:
            Killed: If the process is ended before.
        """
        process = self.current
        assert process is not None
        wake = self.time + span
        if wake > process.deadline:
            wake, process.killed = process.deadline, True
        if wake <= self._limit and not (self._heap and self._heap[0][0] <= wake):
            self.time = wake
        else:
            self.at(wake, lambda: self._resume(process))
            assert process.worker is not None
            process.worker.pause()
        if process.killed:
            raise Killed

    def end(self) -> None:
        """End every process that still lives."""
        for process in list(self._living.values()):
            process.killed = True
            self._resume(process)

    def _resume(self, process: Process) -> None:
        worker = process.worker
        assert worker is not None
        if worker.job is None:
            return
        self.current = process
        worker.resume()
        self.current = None
        if worker.job is None:
            _idle.append(worker)

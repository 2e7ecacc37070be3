"""Virtual time: one thing happens at a time, in an order that the seed alone decides.

Services are straight-line code. Each invocation therefore runs in a thread of its own, but only
one thread runs at a time: the one with the baton. A process that pauses keeps it while the world is
at work, and hands it to the next process that is due, which may be itself.
"""

import heapq
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)


class Killed(BaseException):
    """The process ends at this point: no handler of the product catches this."""


def micros(span: timedelta) -> int:
    """Return a span in microseconds."""
    return span // _MICRO


class _Worker:
    """A thread that runs one process after the other, each when it is given the baton."""

    def __init__(self) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.job: Callable[[], None] | None = None
        thread = threading.Thread(target=self._loop, daemon=True)
        thread.start()
        self.ident = thread.ident

    def _loop(self) -> None:
        while True:
            self.go.acquire()
            job, self.job = self.job, None
            assert job is not None
            job()
            del job


_idle: list[_Worker] = []


def _nothing() -> None:
    """Do nothing: the job of a process that has none yet."""


class Process:
    """One running invocation.

    Attributes:
        function: Kind of function, part of every call site.
        salt: Of its small random choices.
        deadline: Microsecond at which it is killed from outside.
        skew: How far its clock is ahead.
        napped: Whether it slept longer than a lease lasts: a zombie since.
        began: Microsecond at which it was started.
        last: Method of the outside that it called last.
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
        self.began = 0
        self.last = ""
        self.worker: _Worker | None = None
        self.job: Callable[[], None] = _nothing


class Kernel:
    """The loop: what is due next happens next, in order of time, then of when it was planned.

    Attributes:
        time: Microseconds since the start.
        current: The invocation that has the baton, None for the world itself.
    """

    def __init__(self) -> None:
        self.time = 0
        self.current: Process | None = None
        self._heap: list[tuple[int, int, Callable[[], None] | Process]] = []
        self._order = 0
        self._limit = 0
        self._living: dict[int, Process] = {}
        self._failure: BaseException | None = None
        self._now = (0, START)
        self._home = threading.Lock()
        self._home.acquire()

    def now(self) -> datetime:
        """Return the true time."""
        time, now = self._now
        if time != self.time:
            now = START + timedelta(microseconds=self.time)
            self._now = (self.time, now)
        return now

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Let something happen at a time."""
        self._push(max(time, self.time), action)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen so many seconds from now."""
        self.at(self.time + int(seconds * 1_000_000), action)

    def run_until(self, time: int) -> None:
        """Run everything that is due up to a time; raise unexpected errors."""
        self._limit = time
        if not self._turn(None):
            self._home.acquire()
        if self._failure is not None:
            raise self._failure
        self.time = time

    def start(self, process: Process, body: Callable[[], Any], over: Callable[[Any], None]) -> None:
        """Run a body as a process, as soon as what happens now is over.

        Args:
            over: Called with what the body returned or with what it raised.
        """

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
            assert process.worker is not None
            _idle.append(process.worker)
            process.worker, process.job = None, _nothing
            self._turn(process)

        process.job, process.began = job, self.time
        self._living[process.number] = process
        self._push(self.time, process)

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
        heap = self._heap
        if wake <= self._limit and not (heap and heap[0][0] <= wake):
            self.time = wake
        else:
            assert process.worker is not None
            self._push(wake, process)
            self.current = None
            if self._turn(process):
                self.current = process
            else:
                process.worker.go.acquire()
        if process.killed:
            raise Killed

    def here(self, process: Process) -> bool:
        """Return whether a process is what runs on this thread: no other may make its calls."""
        return process.worker is not None and process.worker.ident == threading.get_ident()

    def end(self) -> None:
        """End every process that still lives."""
        self._limit = -1
        for process in list(self._living.values()):
            process.killed = True
            if process.worker is not None:
                self._hand(process)
                self._home.acquire()
        self._living.clear()

    def _push(self, time: int, what: "Callable[[], None] | Process") -> None:
        self._order += 1
        heapq.heappush(self._heap, (time, self._order, what))

    def _turn(self, mine: Process | None) -> bool:
        """Run what is due on this thread until another process has the baton.

        Args:
            mine: The process that waits on this thread, None on the thread of the test.

        Returns:
            Whether this thread continues; if not, it must not touch the schedule.
        """
        heap = self._heap
        while self._failure is None and heap and heap[0][0] <= self._limit:
            self.time, _, what = heapq.heappop(heap)
            if isinstance(what, Process):
                if what is mine:
                    return True
                self._hand(what)
                return False
            try:
                what()
            except BaseException as error:  # noqa: BLE001 - handed to the thread of the test
                self._failure = error
        if mine is not None:
            self._home.release()
        return mine is None

    def _hand(self, process: Process) -> None:
        """Give the baton to a process that is due."""
        worker = process.worker
        if worker is None:
            worker = process.worker = _idle.pop() if _idle else _Worker()
            worker.job = process.job
        self.current = process
        worker.go.release()

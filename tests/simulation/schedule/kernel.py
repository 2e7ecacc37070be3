"""Virtual time: one thing happens at a time, in an order that the seed alone decides.

Services are straight-line code. Each invocation therefore runs in a greenlet of its own: it runs
until it pauses, and goes on when its time has come.
"""

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from greenlet import getcurrent, greenlet

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)
# A clock that is wrong by less is an ordinary one.
_SECONDS_WRONG: Final = timedelta(seconds=30)


class Killed(BaseException):
    """The process ends at this point: no handler of the product catches this."""


def micros(span: timedelta) -> int:
    """Return a span in microseconds."""
    return span // _MICRO


class Process:
    """One running invocation.

    Attributes:
        function: Kind of function, part of every call site.
        salt: Of its small random choices.
        deadline: Microsecond at which it is killed from outside.
        skew: How far its clock is ahead.
        napped: Whether it slept longer than a lease lasts: a zombie since.
        began: Microsecond at which it was started.
        called: Methods of the outside that it called, its threads' included.
        invocation: What it is a thread of; itself for a whole invocation.
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
        self.called: set[str] = set()
        self.runs: greenlet | None = None
        self.invocation = self

    @property
    def is_astray(self) -> bool:
        """Whether it slept for long, or its clock is minutes wrong."""
        return self.napped or self.is_wrong

    @property
    def is_wrong(self) -> bool:
        """Whether its clock is minutes wrong."""
        return abs(self.skew) > _SECONDS_WRONG


class Kernel:
    """The loop: what is due next happens next, in order of time, then of when it was planned.

    Attributes:
        time: Microseconds since the start.
        current: The invocation that runs, None for the world itself.
    """

    def __init__(self) -> None:
        self.time = 0
        self.current: Process | None = None
        self._heap: list[tuple[int, int, Callable[[], None] | Process]] = []
        self._order = 0
        self._limit = 0
        self._living: dict[int, Process] = {}
        self._now = (0, START)
        self._home = getcurrent()

    def now(self) -> datetime:
        """Return the true time."""
        time, now = self._now
        if time != self.time:
            now = START + timedelta(microseconds=self.time)
            self._now = (self.time, now)
        return now

    def next_due(self) -> int | None:
        """Return the microsecond at which something happens next, None for never."""
        return self._heap[0][0] if self._heap else None

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Let something happen at a time."""
        self._push(max(time, self.time), action)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen so many seconds from now."""
        self.at(self.time + int(seconds * 1_000_000), action)

    def run_until(self, time: int) -> None:
        """Run everything that is due up to a time; raise unexpected errors."""
        self._home, self._limit = getcurrent(), time
        heap = self._heap
        while heap and heap[0][0] <= time:
            self.time, _, what = heapq.heappop(heap)
            if isinstance(what, Process):
                self._go_on(what)
            else:
                what()
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
            over(outcome)

        process.runs, process.began = greenlet(job, parent=self._home), self.time
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
            self._push(wake, process)
            self._home.switch()
        if process.killed:
            raise Killed

    def lives(self, process: Process) -> bool:
        """Return whether an invocation still runs."""
        return self._living.get(process.number) is process and not process.killed

    def here(self, process: Process) -> bool:
        """Return whether a process is what runs here: no other, and no thread, makes its calls."""
        return process.runs is getcurrent()

    def end(self) -> None:
        """End every process that still lives."""
        self._home, self._limit = getcurrent(), -1
        for process in list(self._living.values()):
            process.killed = True
            if process.runs:
                self._go_on(process)
        self._living.clear()

    def _push(self, time: int, what: "Callable[[], None] | Process") -> None:
        self._order += 1
        heapq.heappush(self._heap, (time, self._order, what))

    def _go_on(self, process: Process) -> None:
        """Let a process run until it pauses or is over."""
        assert process.runs is not None
        self.current = process
        process.runs.switch()
        self.current = None

"""The threads of an invocation: processes of the kernel, which decides whose call comes next."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from shared.ports.executor import Executor
from tests.simulation.schedule.kernel import Kernel, Killed, Process

T = TypeVar("T")
R = TypeVar("R")

_LANES: Final = 4
# How often an invocation looks whether its threads are done, in microseconds.
_LOOK: Final = 5_000


class KernelCrew(Executor):
    """Lets the kernel run the threads.

    A thread that is killed takes its invocation and the other threads with it.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._numbers = itertools.count(1)

    def each(self, work: Callable[[T], R], things: Sequence[T]) -> list[R]:
        parent = self._kernel.current
        if parent is None or len(things) < 2:
            return [work(thing) for thing in things]
        todo = list(enumerate(things))
        todo.reverse()
        found: dict[int, R] = {}
        failed: dict[int, Exception] = {}

        def lane() -> None:
            while todo:
                place, thing = todo.pop()
                try:
                    found[place] = work(thing)
                except Exception as error:  # noqa: BLE001 - raised by the invocation, as by a future
                    failed[place] = error

        self._run_beside(parent, lane, min(_LANES, len(things)))
        if failed:
            raise failed[min(failed)]
        return [found[place] for place in range(len(things))]

    def _run_beside(self, parent: Process, lane: Callable[[], None], lanes: int) -> None:
        """Run so many threads of an invocation until all are over."""
        running = [self._thread(parent, number) for number in range(lanes)]
        family = (parent, *running)

        def over(thread: Process, outcome: object) -> None:
            running.remove(thread)
            if isinstance(outcome, Killed):
                for process in family:
                    process.killed = True

        for thread in family[1:]:
            self._kernel.start(thread, lane, functools.partial(over, thread))
        while running:
            self._kernel.pause(_LOOK)

    def _thread(self, parent: Process, number: int) -> Process:
        name = -next(self._numbers)
        salt = parent.salt + 131 * (parent.calls + number + 1)
        thread = Process(parent.function, name, salt, parent.deadline, parent.skew)
        thread.called, thread.invocation = parent.called, parent.invocation
        return thread

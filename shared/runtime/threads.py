"""A crew of threads: calls to AWS and to API servers wait side by side."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from shared.ports.crew import AT_ONCE, Crew

T = TypeVar("T")
R = TypeVar("R")


class Threads(Crew):
    """Does several things at a time; the adapters may be used by several threads."""

    def each(self, work: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Return what the work returns for each thing; raise the first error once all are over."""
        if len(things) < 2:
            return [work(thing) for thing in things]
        with ThreadPoolExecutor(min(AT_ONCE, len(things)), thread_name_prefix="crew") as pool:
            asked = [pool.submit(work, thing) for thing in things]
        return [future.result() for future in asked]

"""A crew of threads: calls to AWS and to API servers wait side by side."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from shared.ports.crew import Crew

T = TypeVar("T")
R = TypeVar("R")

# As many as the adapters of API servers use, and fewer than the connections that clients keep.
AT_ONCE: Final = 8


class Threads(Crew):
    """Does eight things at a time; the adapters may be used by several threads."""

    def each(self, work: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Return what the work returns for each thing; raise the first error once all are over."""
        if len(things) < 2:
            return [work(thing) for thing in things]
        with ThreadPoolExecutor(min(AT_ONCE, len(things)), thread_name_prefix="crew") as pool:
            asked = [pool.submit(work, thing) for thing in things]
        return [future.result() for future in asked]

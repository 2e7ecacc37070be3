"""Runs calls to AWS and to API servers in concurrent threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from shared.ports.executor import MAX_CONCURRENT_CALLS, Executor

T = TypeVar("T")
R = TypeVar("R")


class Threads(Executor):
    """Runs several calls at a time; adapters may be used by several threads."""

    def each(self, work: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Return the result for each thing, in order; raise the first error once all are done."""
        if len(things) < 2:
            return [work(thing) for thing in things]
        with ThreadPoolExecutor(
            min(MAX_CONCURRENT_CALLS, len(things)), thread_name_prefix="crew"
        ) as executor:
            futures = [executor.submit(work, thing) for thing in things]
        return [future.result() for future in futures]

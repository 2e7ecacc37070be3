"""Runs one function for many items."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

# Calls that wait concurrently: see docs/decisions/0028-nodes-are-created-in-parallel.md.
MAX_CONCURRENT_CALLS: Final = 16


class Executor:
    """Runs a function for each item, sequentially; subclasses run several calls concurrently."""

    def each(self, work: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Return the result of `work` for each thing, in their order; raise the first error."""
        return [work(thing) for thing in things]

    def run_both(self, first: Callable[[], T], second: Callable[[], R]) -> tuple[T, R]:
        """Return the results of both; raise the error of the first, else of the second."""
        work = cast("tuple[Callable[[], T | R], ...]", (first, second))
        return cast("tuple[T, R]", tuple(self.each(lambda one: one(), work)))

"""Work that many things need alike."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

# Calls that wait side by side: see docs/decisions/0028-several-nodes-are-made-at-a-time.md.
AT_ONCE: Final = 16


class Crew:
    """Does the same for many things, one after the other; others do several at a time."""

    def each(self, work: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Return what the work returns for each thing, in their order; raise its first error."""
        return [work(thing) for thing in things]

    def both(self, first: Callable[[], T], second: Callable[[], R]) -> tuple[T, R]:
        """Return what both return; raise the error of the first, else of the second."""
        work = cast("tuple[Callable[[], T | R], ...]", (first, second))
        return cast("tuple[T, R]", tuple(self.each(lambda one: one(), work)))

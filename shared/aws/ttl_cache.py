"""Remembering answers for a while."""

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from shared.ports import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recall(Generic[K, V]):
    """Answers by key, each kept for a span from when it was given."""

    def __init__(self, span: timedelta, clock: Clock) -> None:
        self._span = span
        self._clock = clock
        self._kept: dict[K, tuple[datetime, V]] = {}

    def get(self, key: K, ask: Callable[[], V]) -> V:
        """Return the answer that is kept, or ask for it; what `ask` raises is not kept."""
        kept = self.peek(key)
        if kept is not None:
            return kept[0]
        answer = ask()
        self.put(key, answer)
        return answer

    def peek(self, key: K) -> tuple[V] | None:
        """Return the answer that is kept, alone in a tuple, None when there is none."""
        kept = self._kept.get(key)
        if kept is None or kept[0] + self._span <= self._clock.now():
            return None
        return (kept[1],)

    def put(self, key: K, answer: V) -> None:
        """Keep an answer, given now."""
        self._kept[key] = (self._clock.now(), answer)

    def forget(self) -> None:
        """Keep no answer any longer."""
        self._kept.clear()

"""A cache whose entries expire."""

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from shared.ports import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Answers by key, each kept for a span after it was stored."""

    def __init__(self, span: timedelta, clock: Clock) -> None:
        self._span = span
        self._clock = clock
        self._kept: dict[K, tuple[datetime, V]] = {}

    def get(self, key: K, load: Callable[[], V]) -> V:
        """Return the cached answer, or load and cache it; errors of `load` are not cached."""
        kept = self.peek(key)
        if kept is not None:
            return kept[0]
        answer = load()
        self.put(key, answer)
        return answer

    def peek(self, key: K) -> tuple[V] | None:
        """Return the cached answer in a tuple of one, None when there is none."""
        kept = self._kept.get(key)
        if kept is None or kept[0] + self._span <= self._clock.now():
            return None
        return (kept[1],)

    def put(self, key: K, answer: V) -> None:
        """Cache an answer from now on."""
        self._kept[key] = (self._clock.now(), answer)

    def forget(self) -> None:
        """Drop all cached answers."""
        self._kept.clear()

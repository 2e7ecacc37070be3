"""A cache of what was computed recently, by what it depends on."""

from collections.abc import Callable
from typing import Generic, TypeVar

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


class RecentCache(Generic[_Question, _Answer]):
    """The answers that were used last, each found by an equal question.

    Questions are compared and not hashed: they may hold mappings, and comparing a catalogue that is
    still the same object takes no time. They must never change.
    """

    def __init__(self, most: int) -> None:
        """Keep the `most` answers that were used last."""
        self._most = most
        self._kept: list[tuple[_Question, _Answer]] = []

    def get(self, key: _Question, compute: Callable[[_Question], _Answer]) -> _Answer:
        """Return the answer, computed if it is not kept."""
        for number, (known, kept) in enumerate(self._kept):
            if known == key:
                if number:
                    self._kept.insert(0, self._kept.pop(number))
                return kept
        computed = compute(key)
        self._kept.insert(0, (key, computed))
        del self._kept[self._most :]
        return computed

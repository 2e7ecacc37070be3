"""What was computed lately, kept by what it depends on."""

from collections.abc import Callable
from typing import Generic, TypeVar

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


class Recent(Generic[_Question, _Answer]):
    """The last few answers, each found again by a question that is equal.

    Questions are compared and not hashed: they may hold mappings, and of a catalogue that is still
    the same object nothing is looked at. They must never change.
    """

    def __init__(self, most: int) -> None:
        """Keep so many answers, those asked for last."""
        self._most = most
        self._kept: list[tuple[_Question, _Answer]] = []

    def get(self, question: _Question, answer: Callable[[_Question], _Answer]) -> _Answer:
        """Return the answer, computed if it is not kept."""
        for number, (known, kept) in enumerate(self._kept):
            if known == question:
                if number:
                    self._kept.insert(0, self._kept.pop(number))
                return kept
        computed = answer(question)
        self._kept.insert(0, (question, computed))
        del self._kept[self._most :]
        return computed

"""Which known label key or value was probably meant."""

from collections.abc import Callable, Iterable
from typing import Final

# Letters in which a word may differ from the one that was probably meant.
_MOST_EDITS: Final = 2


def nearest_label(key: str, known: Iterable[str]) -> str:
    """Return the known label key that was probably meant, empty when none is near.

    A key is near when it, or its name without the domain, differs in two letters at most, and in
    a third of the name's letters at most.
    """
    name = _name_of(key)
    return _nearest(
        known, lambda other: min(_edits(name, _name_of(other)), _edits(key, other)), len(name)
    )


def nearest_value(value: str, known: Iterable[str]) -> str:
    """Return the known value that was probably meant, empty when none is near."""
    return _nearest(known, lambda other: _edits(value, other), len(value))


def _nearest(known: Iterable[str], edits: Callable[[str], int], letters: int) -> str:
    found = min(((edits(word), word) for word in known), default=None)
    if found is None or found[0] > min(_MOST_EDITS, letters // 3):
        return ""
    return found[1]


def _name_of(key: str) -> str:
    return key.rsplit("/", 1)[-1].lower().replace("_", "-")


def _edits(word: str, other: str) -> int:
    """Return how many letters must be added, dropped or changed to make one word the other."""
    if abs(len(word) - len(other)) > _MOST_EDITS:
        return _MOST_EDITS + 1
    row = list(range(len(other) + 1))
    for place, letter in enumerate(word, 1):
        last, row[0] = row[0], place
        for column, another in enumerate(other, 1):
            changed = last + (letter != another)
            last = row[column]
            row[column] = min(changed, last + 1, row[column - 1] + 1)
    return row[-1]

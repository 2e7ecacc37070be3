"""The changes between two sorted collections: computes and applies them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from shared.model.codec import CodecError

# How many values are compared at a time; one by one if they differ.
_RUN: Final = 64

T = TypeVar("T")


class Changes(Struct, Generic[T], frozen=True, kw_only=True):
    """How one sequence becomes another.

    Attributes:
        removed: Indexes in the old sequence of values that are not in the new one, ascending.
        added: Values that are only in the new sequence, each with its index there, ascending.
    """

    removed: tuple[int, ...]
    added: tuple[tuple[int, T], ...]

    def __len__(self) -> int:
        return max(len(self.removed), len(self.added))


def changes(
    base: list[T], now: Sequence[T], key: Callable[[T], Any], same: Callable[[T, T], bool]
) -> Changes[T]:
    """Return the changes from `base` to `now`: exact in any order, short if both are sorted.

    Unchanged values in `base` are replaced by the objects of `now`, so that the next comparison is
    by identity, which is a hundred times faster.

    Args:
        key: The sort key of the values.
        same: Whether a value equals another; called only for two different objects.
    """
    removed: list[int] = []
    added: list[tuple[int, T]] = []
    values = list(now)
    old = new = 0
    while old < len(base) and new < len(values):
        run = min(_RUN, len(base) - old, len(values) - new)
        if base[old : old + run] == values[new : new + run]:
            base[old : old + run] = values[new : new + run]
            old, new = old + run, new + run
            continue
        ends = old + run, new + run
        while old < ends[0] and new < ends[1]:
            was, comes = base[old], values[new]
            if was is comes or same(was, comes):
                base[old] = comes
                old, new = old + 1, new + 1
                continue
            before, after = key(was), key(comes)
            if before <= after:
                removed.append(old)
                old += 1
            if after <= before:
                added.append((new, comes))
                new += 1
    removed += range(old, len(base))
    added += enumerate(values[new:], new)
    return Changes(removed=tuple(removed), added=tuple(added))


def applied(base: Sequence[Any], plain: Any) -> list[Any]:
    """Apply recorded changes to a sequence and return the result.

    Args:
        plain: The changes, `{"removed": [index, ...], "added": [[index, value], ...]}`.

    Raises:
        CodecError: If these are not changes of this sequence.
    """
    if not isinstance(plain, Mapping) or plain.keys() != {"removed", "added"}:
        raise CodecError("must be what was removed and added")
    kept = _without(base, plain["removed"])
    found: list[Any] = []
    used = 0
    if not isinstance(plain["added"], list):
        raise CodecError("must be a list", ("added",))
    for number, entry in enumerate(plain["added"]):
        if not (isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int):
            raise CodecError("must be a place and a value", ("added", str(number)))
        ahead = entry[0] - len(found)
        if not 0 <= ahead <= len(kept) - used:
            raise CodecError("is at a place that is not there", ("added", str(number)))
        found += kept[used : used + ahead]
        used += ahead
        found.append(entry[1])
    return found + kept[used:]


def _without(base: Sequence[Any], places: Any) -> list[Any]:
    if not isinstance(places, list) or not all(type(place) is int for place in places):
        raise CodecError("must be a list of places", ("removed",))
    kept: list[Any] = []
    start = 0
    for place in places:
        if not start <= place < len(base):
            raise CodecError(f"names place {place}, which is not there", ("removed",))
        kept += base[start:place]
        start = place + 1
    return kept + list(base[start:])

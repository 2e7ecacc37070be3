"""What changed between two sorted collections: found, and applied again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from shared.decisions.restoring import RestoreError

# Compared at once where nothing changed; one by one where something did.
_RUN: Final = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes(Generic[T]):
    """How one sequence becomes another.

    Attributes:
        removed: Places in the former sequence of what is not in the new one, ascending.
        added: Values that are only in the new one, each with its place there, ascending.
    """

    removed: tuple[int, ...]
    added: tuple[tuple[int, T], ...]

    def __len__(self) -> int:
        return max(len(self.removed), len(self.added))


def changes(
    base: list[T], now: Sequence[T], key: Callable[[T], Any], same: Callable[[T, T], bool]
) -> Changes[T]:
    """Return how `base` becomes `now`: exact in any order, and short where both are sorted.

    What stayed is replaced in `base` by the very values of `now`: next time they are compared by
    identity, which takes a hundredth of the time.

    Args:
        key: What values are sorted by.
        same: Whether a value equals another; asked only where they are two objects.
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
    """Return what a sequence became, by its changes as they are written down.

    Args:
        plain: `{"removed": [place, ...], "added": [[place, value], ...]}`.

    Raises:
        RestoreError: If these are no changes of this sequence.
    """
    if not isinstance(plain, Mapping) or plain.keys() != {"removed", "added"}:
        raise RestoreError("must be what was removed and added")
    kept = _without(base, plain["removed"])
    found: list[Any] = []
    taken = 0
    if not isinstance(plain["added"], list):
        raise RestoreError("must be a list", ("added",))
    for number, entry in enumerate(plain["added"]):
        if not (isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int):
            raise RestoreError("must be a place and a value", ("added", str(number)))
        ahead = entry[0] - len(found)
        if not 0 <= ahead <= len(kept) - taken:
            raise RestoreError("is at a place that is not there", ("added", str(number)))
        found += kept[taken : taken + ahead]
        taken += ahead
        found.append(entry[1])
    return found + kept[taken:]


def _without(base: Sequence[Any], places: Any) -> list[Any]:
    if not isinstance(places, list) or not all(type(place) is int for place in places):
        raise RestoreError("must be a list of places", ("removed",))
    kept: list[Any] = []
    start = 0
    for place in places:
        if not start <= place < len(base):
            raise RestoreError(f"names place {place}, which is not there", ("removed",))
        kept += base[start:place]
        start = place + 1
    return kept + list(base[start:])

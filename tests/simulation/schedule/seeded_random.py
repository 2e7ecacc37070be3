"""Small choices, each made from the seed and a name: leaving one out never changes another."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")
_WHOLE = 2**64


def draw(seed: int, *names: object) -> float:
    """Return a number from 0 up to 1 that is always the same for these names."""
    text = f"{seed}/{'/'.join(map(str, names))}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / _WHOLE


def between(low: float, high: float, seed: int, *names: object) -> float:
    return low + (high - low) * draw(seed, *names)


def whole(low: int, high: int, seed: int, *names: object) -> int:
    """Return a whole number from low to high, both possible."""
    return low + int((high - low + 1) * draw(seed, *names))


def chosen(values: Sequence[T], seed: int, *names: object) -> T:
    return values[int(len(values) * draw(seed, *names))]

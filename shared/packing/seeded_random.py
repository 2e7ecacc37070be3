"""Pseudo-random choices from a seed, the same in every process."""

from collections.abc import Sequence
from typing import Final

_MASK: Final = (1 << 64) - 1


class SeededRandom:
    """A stream of choices that its seed determines.

    Source: SplitMix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    OOPSLA 2014.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """Return the next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
        return z ^ (z >> 31)

    def below(self, end: int) -> int:
        """Return an integer from 0 to `end` - 1."""
        return self.bits() * end >> 64

    def part(self) -> float:
        """Return a number from 0 up to but not 1."""
        return (self.bits() >> 11) / (1 << 53)

    def weighted(self, weights: Sequence[float]) -> int:
        """Return a position, with probability by weight; evenly when all weights are zero."""
        total = sum(weights)
        if total <= 0:
            return self.below(len(weights))
        point = self.part() * total
        for position, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return position
        return len(weights) - 1

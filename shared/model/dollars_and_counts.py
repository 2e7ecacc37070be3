"""Amounts and names as people read them, in messages, Events and tables alike."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

# Dollars are integers of this many to the dollar: prices are exact.
MICROS: Final = 1_000_000
# 365 days of 24 hours in twelve months.
HOURS_A_MONTH: Final = 730


def dollars(micros: int) -> str:
    """Return micro-dollars as dollars, four digits after the point."""
    return f"${micros / MICROS:,.4f}"


def signed_dollars(micros: int) -> str:
    """Return a difference in micro-dollars as dollars, with its sign."""
    return f"{'-' if micros < 0 else '+'}{dollars(abs(micros))}"


def hourly(micros_per_hour: int) -> str:
    """Return a price as Events write it, such as `$0.0960/h`."""
    return f"${micros_per_hour / MICROS:.4f}/h"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 pod" and "2 pods"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counted_kinds(kinds: Iterable[str]) -> str:
    """Return how many there are of each kind, sorted: "1 × c5.large spot, 2 × m5.large spot"."""
    return ", ".join(f"{count} × {kind}" for kind, count in sorted(Counter(kinds).items()))


def pods_that_wait(count: int) -> str:
    """Return how many pods wait: "1 pod waits" and "2 pods wait"."""
    return f"{counted(count, 'pod')} {'waits' if count == 1 else 'wait'}"


def first_names(names: Iterable[str], most: int = 3) -> str:
    """Return the first names and how many more there are.

    Example:
        >>> first_names(["a", "b"]), first_names("abcde")
        ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more} more" if more > 0 else "")

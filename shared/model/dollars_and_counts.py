"""Amounts and names as people read them, in messages, Events and tables alike."""

from collections.abc import Iterable
from typing import Final

# Dollars are integers of this many to the dollar: prices are exact.
MICROS: Final = 1_000_000


def dollars(micros: int) -> str:
    """Return micro-dollars as dollars, four digits after the point."""
    return f"${micros / MICROS:,.4f}"


def hourly(micros_per_hour: int) -> str:
    """Return a price as Events write it, such as `$0.0960/h`."""
    return f"${micros_per_hour / MICROS:.4f}/h"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 pod" and "2 pods"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def first_names(names: Iterable[str], most: int = 3) -> str:
    """Return the first names and how many more there are.

    Example:
        >>> first_names(["a", "b"]), first_names("abcde")
        ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more} more" if more > 0 else "")

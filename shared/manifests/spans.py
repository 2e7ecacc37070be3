"""Parses durations: of v1 documents (hours, minutes and seconds, or Never), and of Go.

Source: https://karpenter.sh/docs/concepts/nodepools/ (2026-11).
"""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

NEVER: Final = "Never"
_PART: Final = re.compile(r"(\d{1,9})(h|m|s)", re.ASCII)
_UNITS: Final = {"h": 3600, "m": 60, "s": 1}
_WHOLE: Final = re.compile(r"(\d{1,9}[hms])+\Z", re.ASCII)
# The longest span of a timer, which is practically Never.
_MAX_SECONDS: Final = 100 * 365 * 24 * 3600
_GO_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_GO: Final = re.compile(rf"([+-]?)(0|(?:{_GO_PART.pattern})+)\Z", re.ASCII)
# In microseconds; of the two signs for micro, one is a Greek letter.
_GO_UNITS: Final = {
    "ns": Fraction(1, 1000),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1)),
    "ms": Fraction(10**3),
    "s": Fraction(10**6),
    "m": Fraction(60 * 10**6),
    "h": Fraction(3600 * 10**6),
}
# Go counts nanoseconds in 64 bits: 292 years.
_GO_MAX: Final = Fraction(2**63 - 1, 1000)


def read_span(value: object) -> timedelta | None:
    """Return the span, None for Never.

    Raises:
        ValueError: If it is no span, or longer than a hundred years.
    """
    if value == NEVER:
        return None
    if isinstance(value, str) and _WHOLE.match(value):
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(value))
        if seconds <= _MAX_SECONDS:
            return timedelta(seconds=seconds)
    raise ValueError(f"no span of time: {value!r}")


def read_go_duration(value: str) -> timedelta:
    """Return the span of a text such as 1.5h, 2h45m or -300ms, rounded up to microseconds.

    Source: https://pkg.go.dev/time#ParseDuration (2026-11-27).

    Raises:
        ValueError: If it is no duration, or too long for Go.
    """
    found = _GO.match(value)
    if found is not None:
        parts = _GO_PART.findall(found[2])
        length = sum((Fraction(number) * _GO_UNITS[unit] for number, unit in parts), Fraction())
        if length <= _GO_MAX:
            micros = -(-length.numerator // length.denominator)
            return timedelta(microseconds=-micros if found[1] == "-" else micros)
    raise ValueError(f"no duration: {value!r}")

"""Spans of time as v1 documents write them: hours, minutes and seconds, or Never.

Source: https://karpenter.sh/docs/concepts/nodepools/ (2026-11).
"""

import re
from datetime import timedelta
from typing import Final

NEVER: Final = "Never"
_PART: Final = re.compile(r"(\d{1,9})(h|m|s)", re.ASCII)
_UNITS: Final = {"h": 3600, "m": 60, "s": 1}
_WHOLE: Final = re.compile(r"(\d{1,9}[hms])+\Z", re.ASCII)
# Longest span a timer can be given; Never says the same.
_MAX_SECONDS: Final = 100 * 365 * 24 * 3600


def read_span(value: object) -> timedelta | None:
    """Return the span, None for Never.

    Raises:
        ValueError: If it is no span, or one of more than a hundred years.
    """
    if value == NEVER:
        return None
    if isinstance(value, str) and _WHOLE.match(value):
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(value))
        if seconds <= _MAX_SECONDS:
            return timedelta(seconds=seconds)
    raise ValueError(f"no span of time: {value!r}")

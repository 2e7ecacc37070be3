"""Spans of time as v1 documents write them: hours, minutes and seconds, or Never.

Source: https://karpenter.sh/docs/concepts/nodepools/ (2026-11).
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

from shared.manifests.api.parts import Fault, refuse

NEVER: Final = "Never"
_PART: Final = re.compile(r"(\d{1,9})(h|m|s)", re.ASCII)
_UNITS: Final = {"h": 3600, "m": 60, "s": 1}
_WHOLE: Final = re.compile(r"(\d{1,9}[hms])+\Z", re.ASCII)
# Longest span a timer can be given; Never says the same.
_MAX_SECONDS: Final = 100 * 365 * 24 * 3600


def _span(value: Any) -> timedelta:
    return _read(value, "write a span in h, m and s, such as 720h or 1h30m")


def _span_or_never(value: Any) -> timedelta | None:
    if value == NEVER:
        return None
    return _read(value, "write a span in h, m and s, such as 720h or 1h30m, or Never")


def _read(value: Any, remedy: str) -> timedelta:
    seconds = _MAX_SECONDS + 1
    if isinstance(value, str) and _WHOLE.match(value):
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    if seconds > _MAX_SECONDS:
        refuse([Fault((), value, remedy)])
    return timedelta(seconds=seconds)


_PATTERN: Final = "([0-9]{1,9}[hms])+"
Span = Annotated[
    timedelta,
    PlainValidator(_span),
    WithJsonSchema({"type": "string", "pattern": f"^{_PATTERN}$"}),
]
SpanOrNever = Annotated[
    timedelta | None,
    PlainValidator(_span_or_never),
    WithJsonSchema({"type": "string", "pattern": f"^({_PATTERN}|{NEVER})$"}),
]

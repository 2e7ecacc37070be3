"""Durations in the models of v1 documents.

Source: https://karpenter.sh/docs/concepts/nodepools/ (2026-11).
"""

from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

from shared.manifests.api.parts import Fault, refuse
from shared.manifests.spans import NEVER, read_span

_REMEDY: Final = "write a span in h, m and s, such as 720h or 1h30m"


def _span(value: Any) -> timedelta | None:
    return _span_or_never(None if value == NEVER else value, remedy=_REMEDY)


def _span_or_never(value: Any, remedy: str = f"{_REMEDY}, or {NEVER}") -> timedelta | None:
    found = None
    try:
        found = read_span(value)
    except ValueError:
        refuse([Fault((), value, remedy)])
    return found


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

"""Schedules of disruption budgets: five fields of cron in UTC, or a word such as @daily.

Only what Karpenter accepts is accepted: a weekday is 0 to 6 or a name. The result has numbers,
ranges and steps that mean the same to Debian's cron.

Source: https://pkg.go.dev/github.com/robfig/cron/v3 (2026-11).
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_TERM: Final = re.compile(
    r"(?P<first>[*?]|[a-z]{3}|\d{1,2})(-(?P<last>[a-z]{3}|\d{1,2}))?(/(?P<step>\d{1,2}))?\Z",
    re.ASCII,
)


class _Field(Struct, frozen=True):
    first: int
    last: int
    names: Mapping[str, int] = field(default_factory=dict)

    def number(self, written: str) -> int:
        return self.names[written] if written in self.names else int(written)


def _numbered(names: str, start: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start)}


_FIELDS: Final = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Field(0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)


def read_schedule(written: str) -> str:
    """Return the schedule as five fields of cron.

    Raises:
        ValueError: If it is no schedule.
    """
    parts = _WORDS.get(written, written).lower().split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"no five fields: {written!r}")
    return " ".join(
        ",".join(_term(place, term) for term in part.split(","))
        for place, part in zip(_FIELDS, parts, strict=True)
    )


def _term(place: _Field, written: str) -> str:
    found = _TERM.match(written)
    if found is None:
        raise ValueError(f"no value of cron: {written!r}")
    step, end = int(found["step"] or 1), found["last"]
    if found["first"] in "*?":
        if end is not None:
            raise ValueError(f"no range of cron: {written!r}")
        if step == 1:
            return "*"
        first, last = place.first, place.last
    else:
        first = place.number(found["first"])
        last = place.number(end) if end else (place.last if found["step"] else first)
    if step == 0 or not place.first <= first <= last <= place.last:
        raise ValueError(f"out of range: {written!r}")
    if first == last:
        return str(first)
    # Debian's cron treats a field that begins with a star as unrestricted.
    return f"{first}-{last}" + (f"/{step}" if step > 1 else "")

"""Schedules of rules: rate() and cron() expressions, in UTC.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/
eb-create-rule-schedule.html and eb-cron-expressions (2026-11-21).
"""

import re
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.aws.backends import backend
from infra.local.aws.background import repeat
from infra.local.aws.events.bus import EventBus

_LOOK_SECONDS = 0.5
_RATE = re.compile(r"^rate\((\d+) (minute|hour|day)s?\)$")
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class ScheduleError(ValueError):
    """The expression is not one this emulation can follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a rule fires: a period, or the fields of a cron expression as allowed values."""

    period: timedelta | None = None
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] | None = None
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] | None = None
    years: frozenset[int] | None = None

    def is_due(self, now: datetime, last: datetime) -> bool:
        """Whether it fires at `now`, having fired (or been created) at `last`."""
        if self.period is not None:
            return now - last >= self.period
        minute = now.replace(second=0, microsecond=0)
        return minute > last.replace(second=0, microsecond=0) and self._matches(minute)

    def _matches(self, moment: datetime) -> bool:
        weekday = moment.isoweekday() % 7 + 1
        return (
            moment.minute in self.minutes
            and moment.hour in self.hours
            and moment.month in self.months
            and (self.days is None or moment.day in self.days)
            and (self.weekdays is None or weekday in self.weekdays)
            and (self.years is None or moment.year in self.years)
        )


def parse_schedule(expression: str) -> Schedule:
    """Read `rate(5 minutes)` or `cron(0 12 ? * MON-FRI *)`.

    Raises:
        ScheduleError: another shape, or one of the rare cron letters L, W and #.
    """
    rate = _RATE.match(expression)
    if rate:
        return Schedule(period=int(rate[1]) * _UNITS[rate[2]])
    fields = expression.removeprefix("cron(").removesuffix(")").split()
    if not expression.startswith("cron(") or len(fields) != 6:
        raise ScheduleError(f"schedule {expression!r} is neither rate(...) nor six cron fields")
    minutes, hours, days, months, weekdays, years = fields
    return Schedule(
        minutes=_values(minutes, 0, 59),
        hours=_values(hours, 0, 23),
        days=None if days in "*?" else _values(days, 1, 31),
        months=_values(_numbers(months, _MONTHS), 1, 12),
        weekdays=None if weekdays in "*?" else _values(_numbers(weekdays, _DAYS), 1, 7),
        years=None if years == "*" else _values(years, 1970, 2199),
    )


def _numbers(text: str, names: tuple[str, ...]) -> str:
    for number, name in enumerate(names, start=1):
        text = re.sub(name, str(number), text, flags=re.IGNORECASE)
    return text


def _values(text: str, low: int, high: int) -> frozenset[int]:
    allowed: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        try:
            begin = low if first == "*" else int(first)
            end = int(last) if last else (high if step or first == "*" else begin)
            allowed.update(range(begin, end + 1, int(step or 1)))
        except ValueError:
            raise ScheduleError(f"cron field {text!r} cannot be emulated: use numbers") from None
    if not allowed <= set(range(low, high + 1)):
        raise ScheduleError(f"cron field {text!r} leaves {low} to {high}")
    return frozenset(allowed)


class Scheduler:
    """Fires the schedules of the default bus."""

    def __init__(self, bus: EventBus, *, account_id: str, region: str) -> None:
        self._bus = bus
        self._account_id = account_id
        self._region = region
        self._stopped = threading.Event()
        self._last: dict[tuple[str, str], datetime] = {}

    def start(self) -> None:
        """Begin to look at the clock."""
        repeat(
            lambda: self.look(datetime.now(UTC)),
            name="schedules",
            every_seconds=_LOOK_SECONDS,
            stopped=self._stopped,
        )

    def stop(self) -> None:
        """Fire nothing more."""
        self._stopped.set()

    def clear(self) -> None:
        """Forget when rules fired last (reset)."""
        self._last = {}

    def find(self, name: str) -> Any:
        """Return the rule of a name on the default bus, or None."""
        return self._rules().get(name)

    def _rules(self) -> dict[str, Any]:
        events = backend("events", self._account_id, self._region)
        return dict(events.event_buses["default"].rules)

    def look(self, now: datetime) -> None:
        """Fire what is due at `now`; a rule first seen now waits one full period."""
        last: dict[tuple[str, str], datetime] = {}
        for name, rule in sorted(self._rules().items()):
            if not rule.scheduled_expression or rule.state == "DISABLED":
                continue
            key = (name, rule.scheduled_expression)
            last[key] = self._last.get(key, now)
            try:
                due = parse_schedule(rule.scheduled_expression).is_due(now, last[key])
            except ScheduleError:
                continue
            if due:
                last[key] = now
                self._bus.fire(rule)
        self._last = last

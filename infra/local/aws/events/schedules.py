"""Schedules of rules: rate() expressions.

Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/
eb-create-rule-schedule.html (2026-11-21).
"""

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.aws.backends import backend
from infra.local.aws.background import repeat
from infra.local.aws.events.bus import EventBus

_LOOK_SECONDS = 0.5
_RATE = re.compile(r"^rate\((\d+) (minute|hour|day)s?\)$")
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}


def schedule_problem(expression: str) -> str:
    """Return why a rule would never fire here, empty when it fires or has no schedule."""
    if not expression or _RATE.match(expression):
        return ""
    return f"schedule {expression!r} is not emulated: use rate(...)"


def _period_of(expression: str) -> timedelta:
    rate = _RATE.match(expression)
    assert rate is not None, "refused when the rule was put"
    return int(rate[1]) * _UNITS[rate[2]]


class Scheduler:
    """Fires the schedules of the default bus."""

    def __init__(self, bus: EventBus, *, account_id: str, region: str) -> None:
        self._bus = bus
        self._account_id = account_id
        self._region = region
        self._stopped = threading.Event()
        self._last: dict[tuple[str, str], datetime] = {}

    def start(self) -> None:
        repeat(
            lambda: self.look(datetime.now(UTC)),
            name="schedules",
            every_seconds=_LOOK_SECONDS,
            stopped=self._stopped,
        )

    def stop(self) -> None:
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
            if now - last[key] >= _period_of(rule.scheduled_expression):
                last[key] = now
                self._bus.fire(rule)
        self._last = last

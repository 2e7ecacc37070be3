"""A clock that stands still until it is told otherwise."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """Implements shared.ports.Clock: sleeping and `advance` are what moves it."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self.slept: list[timedelta] = []

    def now(self) -> datetime:
        return self._now

    def sleep(self, span: timedelta) -> None:
        self.slept.append(span)
        self.advance(span)

    def advance(self, span: timedelta) -> datetime:
        """Move on; return the new time."""
        self._now += max(span, timedelta(0))
        return self._now

"""Time."""

from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the current time, aware, UTC."""
        ...

    def sleep(self, span: timedelta) -> None:
        """Wait; only for seconds: a batch window, a lease that is taken over, a throttled call."""
        ...

"""Faults of a whole Region: services that do not answer, or throttle all callers."""

from typing import Final

from shared.model.errors import RetryableError, ThrottledError, UnavailableError
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel
from tests.simulation.schedule.seeded_random import between, draw

# Port and methods, how often in a minute, and for how many seconds.
_AWAY: Final = (("ledger", 0.012, 25.0), ("decisions", 0.015, 90.0))
_THROTTLES: Final = (
    ("ledger", frozenset[str](), 0.02, 40.0),
    ("outbox", frozenset({"start_timer"}), 0.02, 40.0),
)
_PART: Final = 0.5


class Weather:
    """Decides which calls of DynamoDB, S3 and Step Functions fail for a while.

    Attributes:
        bad_until: Microsecond from which all is well.
    """

    def __init__(self, kernel: Kernel, faults: CallFaults) -> None:
        self._kernel = kernel
        self._faults = faults
        self._away: dict[str, int] = {}
        self._throttles: dict[str, int] = {}
        self._calls = 0
        self.bad_until = 0

    def change(self, number: int) -> None:
        """Let a minute begin."""
        kernel, faults = self._kernel, self._faults
        for port, chance, longest in _AWAY:
            site = Site("region", "outage", port)
            if faults.event(site, kernel.time, (Action.OUTAGE, chance)) is not None:
                self._away[port] = self._until(between(2, longest, faults.seed, site, number))
        for port, _, chance, longest in _THROTTLES:
            site = Site("region", "throttles", port)
            if faults.event(site, kernel.time, (Action.THROTTLED_BY_OTHERS, chance)) is not None:
                self._throttles[port] = self._until(between(5, longest, faults.seed, site, number))

    def strikes(self, port: str, method: str) -> RetryableError | None:
        """Return why a call fails now, None when it does not."""
        time = self._kernel.time
        if time < self._away.get(port, 0):
            return UnavailableError(f"{port}.{method}: no answer")
        if time < self._throttles.get(port, 0):
            self._calls += 1
            methods = next(some for name, some, _, _ in _THROTTLES if name == port)
            hit = draw(self._faults.seed, "throttled", port, self._calls) < _PART
            if hit and (not methods or method in methods):
                return ThrottledError(f"{port}.{method}: slow down")
        return None

    def _until(self, seconds: float) -> int:
        until = self._kernel.time + int(1e6 * seconds)
        self.bad_until = max(self.bad_until, until)
        return until

"""Faults of a whole Region: services that do not answer, are slow, or throttle all callers."""

from collections.abc import Callable
from typing import Final

from shared.model.errors import RetryableError, ThrottledError, UnavailableError
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel
from tests.simulation.schedule.seeded_random import between, chosen, draw

# Port and methods, how often in a minute, and for how many seconds.
_AWAY: Final = (("ledger", 0.012, 25.0), ("decisions", 0.015, 90.0))
_THROTTLES: Final = (
    ("ledger", frozenset[str](), 0.02, 40.0),
    ("outbox", frozenset({"start_timer"}), 0.02, 40.0),
)
_PART: Final = 0.5
# DynamoDB, S3, the API server of a cluster, EC2 and SQS: the port that leads to each.
SERVICES: Final = ("ledger", "decisions", "cluster", "cloud", "outbox")
_OF_SQS: Final = frozenset({"wake", "evaluate"})
# How often in a minute one of them, or two together, are away or slow, and for how many seconds.
_MINUTES: Final = 0.025
_LONGEST: Final = 300.0
# A call of a slow one takes so many seconds: less than the time after which a client gives up.
_SLOW: Final = (0.5, 5.0)


class Weather:
    """Decides which calls of DynamoDB, S3, Kubernetes, EC2, SQS and Step Functions fail, and when.

    Args:
        clusters: Names of all clusters; an API server is away for one alone.
        close: Called with a cluster and the microsecond until which its API server is away.

    Attributes:
        bad_until: Microsecond from which all is well.
    """

    def __init__(
        self,
        kernel: Kernel,
        faults: CallFaults,
        clusters: tuple[str, ...],
        close: Callable[[str, int], None],
    ) -> None:
        self._kernel = kernel
        self._faults = faults
        self._clusters = clusters
        self._close = close
        self._away: dict[str, int] = {}
        self._slow: dict[str, int] = {}
        self._throttles: dict[str, int] = {}
        self._calls = 0
        self.bad_until = 0

    def change(self, number: int) -> None:
        """Let a minute begin."""
        kernel, faults = self._kernel, self._faults
        for port, chance, longest in _AWAY:
            site = Site("region", "outage", port)
            if faults.event(site, kernel.time, (Action.OUTAGE, chance)) is not None:
                self.leave(port, "", between(2, longest, faults.seed, site, number))
        for port, _, chance, longest in _THROTTLES:
            site = Site("region", "throttles", port)
            if faults.event(site, kernel.time, (Action.THROTTLED_BY_OTHERS, chance)) is not None:
                self._throttles[port] = self._until(between(5, longest, faults.seed, site, number))
        for name in self._clusters:
            site = Site("api", "outage", name)
            if faults.event(site, kernel.time, (Action.OUTAGE, 0.02)) is not None:
                span = 5 + 170 * draw(faults.seed, "outage", name, number) ** 2
                self.leave("cluster", name, span)
        self._change_for_minutes(number)

    def _change_for_minutes(self, number: int) -> None:
        """Let one service, or two together, be away or slow for minutes."""
        seed, site = self._faults.seed, Site("region", "outage", "services")
        chances = ((Action.MINUTES, _MINUTES), (Action.SLOW_MINUTES, _MINUTES))
        action = self._faults.event(site, self._kernel.time, *chances)
        if action is None:
            return
        seconds = between(60, _LONGEST, seed, "minutes", number)
        for which in range(1 + (draw(seed, "two", number) < 0.4)):
            port = chosen(SERVICES, seed, "service", number, which)
            if action is Action.SLOW_MINUTES:
                self._slow[port] = self._until(seconds)
            else:
                name = chosen(self._clusters, seed, "cluster", number, which)
                self.leave(port, name, seconds)

    def is_away(self, port: str) -> bool:
        """Return whether a service does not answer now, whoever asks."""
        return self._kernel.time < self._away.get(port, 0)

    def back_at(self, port: str) -> int:
        """Return the microsecond from which a service answers."""
        return self._away.get(port, 0)

    def delays(self, port: str) -> int:
        """Return by how many microseconds a call takes longer, as its service is slow."""
        if self._kernel.time >= self._slow.get(port, 0):
            return 0
        self._calls += 1
        return int(1e6 * between(*_SLOW, self._faults.seed, "slow", port, self._calls))

    def strikes(self, port: str, method: str) -> RetryableError | None:
        """Return why a call fails now, None when it does not."""
        if self.is_away(port) and (port != "outbox" or method in _OF_SQS):
            return UnavailableError(f"{port}.{method}: no answer")
        if self._kernel.time < self._throttles.get(port, 0):
            self._calls += 1
            methods = next(some for name, some, _, _ in _THROTTLES if name == port)
            hit = draw(self._faults.seed, "throttled", port, self._calls) < _PART
            if hit and (not methods or method in methods):
                return ThrottledError(f"{port}.{method}: slow down")
        return None

    def leave(self, port: str, cluster: str, seconds: float) -> None:
        """Let a service be away for so long, the API server of one cluster alone."""
        until = self._until(seconds)
        if port == "cluster":
            self._close(cluster, until)
        else:
            self._away[port] = max(self._away.get(port, 0), until)

    def _until(self, seconds: float) -> int:
        until = self._kernel.time + int(1e6 * seconds)
        self.bad_until = max(self.bad_until, until)
        return until

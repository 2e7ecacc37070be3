"""An outbox that keeps what was sent."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from shared.ports import TimerKind

LONGEST_DELAY = timedelta(minutes=15)


class StartedTimer(NamedTuple):
    """A timer that was started."""

    kind: TimerKind
    name: str
    payload: Mapping[str, Any]


class FakeOutbox:
    """Implements shared.ports.Outbox; names of timers are taken once for each kind.

    `fail_next(error)` makes the next call raise.
    """

    def __init__(self) -> None:
        self.wakes: list[tuple[str, timedelta]] = []
        self.timers: list[StartedTimer] = []
        self.refused: list[StartedTimer] = []
        self.binds: list[tuple[str, tuple[str, ...]]] = []
        self.evaluations: list[str] = []
        self.evaluation_delays: list[timedelta] = []
        self.plans_at_once: list[tuple[str, bool, bool]] = []
        self.sweeps: list[str] = []
        self._taken: set[tuple[TimerKind, str]] = set()
        self._errors: list[Exception] = []

    def fail_next(self, *errors: Exception) -> None:
        """Make the next calls raise these, one each."""
        self._errors.extend(errors)

    def wake(self, cluster: str, delay: timedelta) -> None:
        self._maybe_fail()
        self.wakes.append((cluster, min(max(delay, timedelta(0)), LONGEST_DELAY)))

    def evaluate(self, cluster: str, delay: timedelta = timedelta(0)) -> None:
        self._maybe_fail()
        self.evaluations.append(cluster)
        self.evaluation_delays.append(delay)

    def invoke_provision(
        self, cluster: str, *, evaluate: bool = False, changed: bool = False
    ) -> None:
        self._maybe_fail()
        self.plans_at_once.append((cluster, evaluate, changed))

    def invoke_sweep(self, cluster: str) -> None:
        self._maybe_fail()
        self.sweeps.append(cluster)

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        self._maybe_fail()
        timer = StartedTimer(kind, name, dict(payload))
        if (kind, name) in self._taken:
            self.refused.append(timer)
            return False
        self._taken.add((kind, name))
        self.timers.append(timer)
        return True

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        self._maybe_fail()
        if nodes:
            self.binds.append((cluster, tuple(nodes)))

    def timers_of(self, kind: TimerKind) -> list[StartedTimer]:
        """Return the timers of a kind that were started, in order."""
        return [timer for timer in self.timers if timer.kind == kind]

    def _maybe_fail(self) -> None:
        if self._errors:
            raise self._errors.pop(0)

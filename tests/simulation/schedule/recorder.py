"""Stands between services and ports: every call is a site where an invocation can fail."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from shared.model.errors import (
    ConflictError,
    RetryableError,
    ThrottledError,
    UnavailableError,
)
from tests.simulation.schedule.faults import Action, CallFaults, Site
from tests.simulation.schedule.kernel import Kernel, Killed, Process, micros
from tests.simulation.schedule.seeded_random import between, draw

# How often an invocation freezes just before EC2 is asked, or does not learn what EC2 launched,
# beside what is drawn for each site.
_AT_LAUNCH: Final = ((Action.ZOMBIE_BEFORE, 0.03), (Action.ERROR_AFTER, 0.02))
# How long calls take until they are carried out, in microseconds: mostly a few milliseconds, now
# and then a second. Their answers are there at once: that time would pass before the next call.
_LATENCIES: Final = tuple(
    int(1500 * (3 + 40 * draw(7, "latency", n) ** 3 + (900 if n % 97 == 0 else 0)))
    for n in range(1009)
)
_TIMEOUT: Final = 20_000_000
_SLOW: Final = 17_000_000


_RAISED: Final = frozenset(
    {
        Action.TIMEOUT_BEFORE,
        Action.TIMEOUT_AFTER,
        Action.THROTTLE,
        Action.THROTTLE_AFTER,
        Action.ERROR,
        Action.ERROR_AFTER,
        Action.CONFLICT,
    }
)


Moves = Callable[[Process, Site, tuple[Any, ...], str], None]
Freezes = Callable[[Site, tuple[Any, ...], str, int], None]


class Witness(Protocol):
    """Receives every call before it is carried out, and its answer."""

    def before(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None: ...

    def after(
        self, process: Process, site: Site, args: tuple[Any, ...], answer: object, cluster: str
    ) -> None: ...

    def trouble(self, cluster: str, port: str, method: str) -> RetryableError | None: ...

    def delays(self, port: str) -> int: ...

    def ended(self, process: Process, outcome: object) -> None: ...


class Port:
    """One port as an invocation sees it.

    Args:
        label: `cluster`, `cloud`, `ledger` ...: the name of the port in the site.
    """

    def __init__(self, recorder: "Recorder", label: str, target: object, cluster: str = "") -> None:
        self._recorder = recorder
        self._label = label
        self._target = target
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            if name == "name":
                self.__dict__[name] = found
            return found

        sites: dict[str, Site] = {}
        recorder, label, cluster = self._recorder, self._label, self._cluster

        def call(*args: Any, **more: Any) -> Any:
            process = recorder.kernel.current
            if process is None:
                return found(*args, **more)
            site = sites.get(process.function)
            if site is None:
                site = sites[process.function] = Site(process.function, label, name)
            return recorder.call(process, site, cluster, found, args, more)

        self.__dict__[name] = call
        return call


class Recorder:
    """Lets time pass around each call, and faults happen.

    Attributes:
        every_second: Methods of which every second call is throttled.
        between: Called just before a call is carried out: the world moves between any two.
        asleep: Called when an invocation freezes before a call, with the microseconds.
        made: Calls by method, those included that were throttled.
    """

    def __init__(self, kernel: Kernel, faults: CallFaults, witness: Witness) -> None:
        self.kernel = kernel
        self.faults = faults
        self.witness = witness
        self.log: list[str] | None = None
        self.every_second: frozenset[str] = frozenset()
        self.between: Moves = lambda *_: None
        self.asleep: Freezes = lambda *_: None
        self.made: Counter[str] = Counter()

    def port(self, label: str, target: object, cluster: str = "") -> Any:
        return Port(self, label, target, cluster)

    def call(
        self,
        process: Process,
        site: Site,
        cluster: str,
        found: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Any:
        """Carry out one call of a process, if it gets so far."""
        self._may_call(process, site)
        method = site.method
        action = self._action(process, site)
        if method == "happened" and action in _RAISED:
            # Its failures are counted, never raised.
            return None
        if self.log is not None:
            self._note(process, site, args, action)
        process.calls += 1
        process.called.add(method)
        latency = _LATENCIES[(process.salt + 7919 * process.calls) % 1009]
        self.made[method] += 1
        if method in self.every_second and self.made[method] % 2 == 0:
            raise ThrottledError(f"{site.port}.{method}: slow down")
        if action is not None:
            self._before(process, site, args, cluster, action)
        self.kernel.pause(latency + self.witness.delays(site.port))
        trouble = self.witness.trouble(cluster, site.port, method)
        if trouble is not None:
            if method == "happened":
                return None
            if isinstance(trouble, UnavailableError):
                self.kernel.pause(_TIMEOUT // 4)
            raise trouble
        self.between(process, site, args, cluster)
        self.witness.before(process, site, args, cluster)
        answer = found(*args, **more)
        self.witness.after(process, site, args, answer, cluster)
        if action is not None:
            self._after(process, site, action)
        return answer

    def _action(self, process: Process, site: Site) -> Action | None:
        """Return what goes wrong with a call."""
        action = self.faults.of(site, self.kernel.time)
        if action is None and site.method == "create_fleet":
            launch = Site("lambda", "launch", process.function)
            action = self.faults.event(launch, self.kernel.time, *_AT_LAUNCH)
        return action

    def _before(
        self, process: Process, site: Site, args: tuple[Any, ...], cluster: str, action: Action
    ) -> None:
        """Let what goes wrong before the call is carried out go wrong."""
        text = f"{site.port}.{site.method}"
        match action:
            case Action.CRASH_BEFORE:
                self._kill(process)
            case Action.TIMEOUT_BEFORE:
                self.kernel.pause(_TIMEOUT)
                raise UnavailableError(f"{text}: timed out")
            case Action.THROTTLE:
                raise ThrottledError(f"{text}: slow down")
            case Action.ERROR:
                raise UnavailableError(f"{text}: 500")
            case Action.CONFLICT:
                raise ConflictError(f"{text}: conflict")
            case Action.ZOMBIE_BEFORE:
                span = self._span(process)
                self.asleep(site, args, cluster, span)
                self._nap(process, span)
            case Action.SLOW:
                self.kernel.pause(_SLOW)

    def _after(self, process: Process, site: Site, action: Action) -> None:
        """Let what goes wrong after the call was carried out go wrong."""
        text = f"{site.port}.{site.method}"
        match action:
            case Action.CRASH_AFTER:
                self._kill(process)
            case Action.TIMEOUT_AFTER:
                self.kernel.pause(_TIMEOUT)
                raise UnavailableError(f"{text}: timed out")
            case Action.THROTTLE_AFTER:
                raise ThrottledError(f"{text}: slow down")
            case Action.ERROR_AFTER:
                raise UnavailableError(f"{text}: 500")
            case Action.ZOMBIE_AFTER:
                self._nap(process, self._span(process))

    def _kill(self, process: Process) -> None:
        process.killed = True
        raise Killed

    def _span(self, process: Process) -> int:
        """Return for how many microseconds a process freezes."""
        return int(1e6 * between(52, 100, self.faults.seed, "nap", process.salt))

    def _nap(self, process: Process, span: int) -> None:
        process.napped = process.invocation.napped = True
        self.kernel.pause(span)

    def _may_call(self, process: Process, site: Site) -> None:
        if not self.kernel.here(process):
            raise AssertionError(f"{site}: called from a thread that the kernel does not run")
        if process.killed:
            raise Killed

    def _note(
        self, process: Process, site: Site, args: tuple[Any, ...], action: Action | None
    ) -> None:
        assert self.log is not None
        what = ", ".join(_short(arg) for arg in args)
        fault = f"  <-- {action}" if action is not None else ""
        seconds = self.kernel.time / 1e6
        name = f"{process.function}#{process.number}"
        self.log.append(f"{seconds:9.3f} {name:16} {site.port}.{site.method}({what}){fault}")


def _short(value: object) -> str:
    plain = sorted(value, key=str) if isinstance(value, frozenset) else value
    text = str(getattr(plain, "name", plain))
    return text if len(text) <= 60 else f"{text[:57]}..."


class ProcessClock:
    """Implements shared.ports.Clock for whichever invocation runs: each has a skew of its own."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def now(self) -> datetime:
        process = self._kernel.current
        now = self._kernel.now()
        return now if process is None or not process.skew else now + process.skew

    def sleep(self, span: timedelta) -> None:
        self._kernel.pause(micros(span))

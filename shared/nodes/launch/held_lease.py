"""The lease while this invocation holds it: renewed before calls, so that no call outlasts it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

from shared.model.ec2.launches import Lease
from shared.model.values import replace
from shared.ports import Clock, ClusterPorts, Ledger

T = TypeVar("T")


class HeldLease:
    """A lease that is renewed when it is due, until it is released."""

    def __init__(self, ledger: Ledger, clock: Clock, lease: Lease, span: timedelta) -> None:
        """Hold a lease.

        Args:
            span: Its duration after a renewal.
        """
        self._ledger = ledger
        self._clock = clock
        self._lease = lease
        self._span = span
        self._released = False

    @property
    def value(self) -> Lease:
        """The lease as last written."""
        return self._lease

    def replace(self, renewed: Lease) -> None:
        """Store the lease that another write has renewed."""
        self._lease = renewed

    def renew(self) -> Lease:
        """Extend the lease and return it.

        Raises:
            ConflictError: If it has another holder now: stop, that one resumes from here.
        """
        self._lease = self._ledger.renew(self._lease, self._clock.now())
        return self._lease

    def renew_if_due(self) -> None:
        """Extend the lease if less than seven tenths of it are left.

        Two calls, one after the other, take no longer than that, each with its time-out.

        Raises:
            ConflictError: If it has another holder now: stop, that one resumes from here.
        """
        left: timedelta = self._lease.expires_at - self._clock.now()
        if 10 * left < 7 * self._span and not self._released:
            self.renew()

    def release(self) -> bool:
        """Release the lease.

        Returns:
            False if another plan was requested: that mark is cleared and the lease is kept.
        """
        self._released = self._ledger.release(self._lease)
        return self._released

    def guard(self, ports: ClusterPorts) -> ClusterPorts:
        """Return ports that renew the lease, if it is due, before each call.

        A long list takes more than one call: `each_page` of its method is called between them.
        """
        return replace(
            ports,
            cluster=self._guarded(ports.cluster),
            cloud=self._guarded(ports.cloud),
            ledger=self._guarded(ports.ledger),
            decisions=self._guarded(ports.decisions),
            outbox=self._guarded(ports.outbox),
            rivals=self._guarded(ports.rivals),
        )

    def _guarded(self, port: T) -> T:
        return cast("T", _GuardedPort(port, self.renew_if_due))


class _GuardedPort:
    """A port that calls a function before each of its methods."""

    def __init__(self, port: object, before: Callable[[], None]) -> None:
        self._port = port
        self._before = before

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._port, name)
        if not callable(member):
            return member

        def call(*args: Any, **options: Any) -> Any:
            self._before()
            return member(*args, **options)

        return call

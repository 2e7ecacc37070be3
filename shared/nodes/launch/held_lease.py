"""The lease while this invocation holds it: renewed before each call that changes something."""

from datetime import timedelta

from shared.model.ec2.launches import Lease
from shared.ports import Clock, Ledger


class HeldLease:
    """A lease that is renewed before each mutating call, so that no call outlasts it."""

    def __init__(self, ledger: Ledger, clock: Clock, lease: Lease, span: timedelta) -> None:
        """Hold a lease.

        Args:
            span: Its duration after a renewal.
        """
        self._ledger = ledger
        self._clock = clock
        self._lease = lease
        self._span = span

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

    def renew_if_due(self) -> Lease:
        """Extend the lease if less than seven tenths of it are left; return it.

        For calls to the API server and writes to the ledger: two of them, one after the other, take
        no longer than that, each with its time-out.

        Raises:
            ConflictError: If it has another holder now: stop, that one resumes from here.
        """
        left: timedelta = self._lease.expires_at - self._clock.now()
        return self.renew() if 10 * left < 7 * self._span else self._lease

"""The lease while we hold it: kept long enough for each call that changes the world."""

from datetime import timedelta

from shared.model.ec2.launches import Lease
from shared.ports import Clock, Ledger


class HeldLease:
    """A lease that is pushed on before each mutating call, so that no call outlives it."""

    def __init__(self, ledger: Ledger, clock: Clock, lease: Lease, span: timedelta) -> None:
        """Hold a lease.

        Args:
            span: Its length when it is renewed.
        """
        self._ledger = ledger
        self._clock = clock
        self._lease = lease
        self._span = span

    @property
    def value(self) -> Lease:
        """The lease as last written."""
        return self._lease

    def note(self, renewed: Lease) -> None:
        """Keep the lease as another write has renewed it."""
        self._lease = renewed

    def renew(self) -> Lease:
        """Push the expiry and return the lease.

        Raises:
            ConflictError: If it has another holder now: stop, that one resumes from here.
        """
        self._lease = self._ledger.renew(self._lease, self._clock.now())
        return self._lease

    def keep(self) -> Lease:
        """Push the expiry if less than half of the lease is left, and return the lease.

        For calls to the cluster and writes to the ledger: the half that is left is longer than any
        of them may take.

        Raises:
            ConflictError: If it has another holder now: stop, that one resumes from here.
        """
        left: timedelta = self._lease.expires_at - self._clock.now()
        return self.renew() if 2 * left < self._span else self._lease

"""How long an evaluation of all nodes may continue: pending pods come first."""

from datetime import datetime, timedelta
from typing import Final

from shared.ports import Clock
from shared.provisioning.session import ProvisioningSession

# Often enough that no pod waits long, and rarely enough to limit the load on the ledger.
_CHECK_EVERY: Final = timedelta(seconds=1)


class EvaluationBudget:
    """Ends an evaluation when another plan is requested, or when its time is over.

    Attributes:
        aborted: Whether another plan was requested: the result is out of date.
    """

    def __init__(self, session: ProvisioningSession, clock: Clock, until: datetime) -> None:
        """Start the budget.

        Args:
            until: When the evaluation must end, so that there is time to carry out its result.
        """
        self._session = session
        self._clock = clock
        self._until = until
        self._checked_at = clock.now()
        self.aborted = False

    def may_continue(self) -> bool:
        """Return whether there is time for another simulation; renew the lease each second.

        Raises:
            ConflictError: If the lease was lost.
        """
        now = self._clock.now()
        if now - self._checked_at >= _CHECK_EVERY:
            self._checked_at = now
            self.aborted |= not self._session.renew_lease()
        return not self.aborted and now < self._until

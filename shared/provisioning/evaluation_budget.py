"""How long a look over all nodes may go on: pods that wait for capacity come first."""

from datetime import datetime, timedelta
from typing import Final

from shared.ports import Clock
from shared.provisioning.planning_session import Turn

# Often enough that no pod waits long, seldom enough to spare the ledger.
_ASK_EVERY: Final = timedelta(seconds=1)


class EvaluationBudget:
    """Ends an evaluation when another plan is requested, or when its time is over.

    Attributes:
        broken_off: Whether another plan was requested: the result is out of date.
    """

    def __init__(self, turn: Turn, clock: Clock, until: datetime) -> None:
        """Begin.

        Args:
            until: When the look must end, so that there is time to carry out what it found.
        """
        self._turn = turn
        self._clock = clock
        self._until = until
        self._asked_at = clock.now()
        self.broken_off = False

    def lasts(self) -> bool:
        """Return whether there is time for another simulation; the lease is kept meanwhile.

        Raises:
            ConflictError: If the lease was lost.
        """
        now = self._clock.now()
        if now - self._asked_at >= _ASK_EVERY:
            self._asked_at = now
            self.broken_off |= not self._turn.keep_lease()
        return not self.broken_off and now < self._until

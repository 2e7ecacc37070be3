"""The search budget: how long the search for a cheaper plan may go on."""

from collections.abc import Callable

OutOfTime = Callable[[], bool]


class SearchBudget:
    """Decides when to stop the search, and records whether it did.

    The first plan is always finished; only the search for a cheaper one is cut short. Without a
    limit nothing is cut short, and the same problem gives the same plan.
    """

    def __init__(self, out_of_time: OutOfTime | None = None) -> None:
        """Args: out_of_time: Called now and then; once it returns True it is not called again."""
        self._out_of_time = out_of_time
        self.cut_short = False

    def ended(self) -> bool:
        """Return whether there is no time left. Call it only where work would be left out."""
        if not self.cut_short and self._out_of_time is not None and self._out_of_time():
            self.cut_short = True
        return self.cut_short

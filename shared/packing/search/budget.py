"""The search budget: how long the search for a cheaper plan may go on."""

from collections.abc import Callable

OutOfTime = Callable[[], bool]


class SearchBudget:
    """Decides when to stop the search, and records whether it did.

    The first plan is always finished; only the search for a cheaper one is cut short. Without a
    limit nothing is cut short, and the same problem gives the same plan.
    """

    def __init__(self, out_of_time: OutOfTime | None = None) -> None:
        """Args: out_of_time: Asked now and then; once it says yes it is not asked again."""
        self._out_of_time = out_of_time
        self.cut_short = False

    def ended(self) -> bool:
        """Return whether there is no time left. To be asked only where work would be left out."""
        if not self.cut_short and self._out_of_time is not None and self._out_of_time():
            self.cut_short = True
        return self.cut_short

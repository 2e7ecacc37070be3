"""The budget of a search: how long it may go on while pods are waiting."""

from collections.abc import Callable

OutOfTime = Callable[[], bool]


class SearchBudget:
    """Says when to stop searching, and remembers whether it ever did.

    The first plan is always finished; what is given up is looking for a cheaper one. Without a
    limit nothing is ever cut short, and the same problem gives the same plan.
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

"""The result of a bound."""

from typing import Final, NamedTuple

_CLOSE: Final = 1.01


class LeastCost(NamedTuple):
    """What any plan for some pods costs at least.

    Attributes:
        micros_per_hour: Rounded down.
        close: Whether that is known to be within 1 % of the linear program over all patterns, or of
            the plan in question.
        exact: Whether there is a plan at that price.
    """

    micros_per_hour: int
    close: bool = False
    exact: bool = False

    def for_plan(self, cost: int) -> "LeastCost":
        """Return the bound for a plan: at most what that costs, and close where it is near."""
        least = self.micros_per_hour
        return LeastCost(min(least, cost), self.close or is_close(least, cost))


def is_close(least: float, cost: float) -> bool:
    """Return whether a bound is within 1 % of a price."""
    return cost <= least * _CLOSE

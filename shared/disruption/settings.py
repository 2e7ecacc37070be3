"""What a disruption must be worth, and how much of it there may be."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionSettings:
    """When removing nodes by choice pays.

    Attributes:
        minimum_saving_percent: A change of nodes must save this much of what they cost, in
            percent. Default 5: moving pods is never free.
        minimum_saving_micros_per_hour: ... and at least this much, in micro-dollars per hour.
            Default 10,000 ($0.01).
        minimum_age: A node younger than this is left alone: its pods have only just moved.
            Default 5 minutes.
        spot_pools: A spot node is replaced by a spot node only when at least this many cheaper
            pools could serve: else the next interruption would undo it. Default 15.
        max_simulations: Plans tried in one look. Default 80; a number of tries instead of a time
            keeps decisions reproducible.
    """

    minimum_saving_percent: int = 5
    minimum_saving_micros_per_hour: int = 10_000
    minimum_age: timedelta = timedelta(minutes=5)
    spot_pools: int = 15
    max_simulations: int = 80

    def required_saving(self, price_micros_per_hour: int) -> int:
        """Return what replacing nodes of this price must save, in micro-dollars per hour."""
        share = -(-price_micros_per_hour * self.minimum_saving_percent // 100)
        return max(share, self.minimum_saving_micros_per_hour)

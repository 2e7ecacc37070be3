"""What holds Dovetail back: switches and ceilings, of a Provisioner or of a whole cluster."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that may stand and be on its way at once; None for no ceiling.

    Attributes:
        max_nodes: Machines.
        max_price_micros_per_hour: What they cost together, at the price they were bought at.
    """

    max_nodes: int | None = None
    max_price_micros_per_hour: int | None = None

    def __bool__(self) -> bool:
        return self.max_nodes is not None or self.max_price_micros_per_hour is not None

    def lower(self, other: "Ceiling") -> "Ceiling":
        """Return the stricter of the two, for each amount."""
        return Ceiling(
            max_nodes=_lower(self.max_nodes, other.max_nodes),
            max_price_micros_per_hour=_lower(
                self.max_price_micros_per_hour, other.max_price_micros_per_hour
            ),
        )


NO_CEILING: Final = Ceiling()


@dataclass(frozen=True, slots=True, kw_only=True)
class Brakes:
    """The brakes of a whole cluster.

    Attributes:
        paused: Dovetail launches no machine, and terminates none by choice.
        shadow: The same, but decisions are made, recorded and reported.
    """

    paused: bool = False
    shadow: bool = False
    ceiling: Ceiling = NO_CEILING

    @property
    def holds(self) -> bool:
        """Whether no machine may be launched, and none terminated by choice."""
        return self.paused or self.shadow

    def tighter(self, other: "Brakes") -> "Brakes":
        """Return the brakes that both ask for."""
        return Brakes(
            paused=self.paused or other.paused,
            shadow=self.shadow or other.shadow,
            ceiling=self.ceiling.lower(other.ceiling),
        )


NO_BRAKES: Final = Brakes()


def _lower(value: int | None, other: int | None) -> int | None:
    given = [amount for amount in (value, other) if amount is not None]
    return min(given) if given else None

"""Pause, shadow mode and ceilings, of one Provisioner or of a whole cluster."""

from typing import Final

from msgspec import Struct

from shared.model.resources import NODES, PRICE


class Ceiling(Struct, frozen=True, kw_only=True):
    """The limits of existing nodes and launches in flight together; None for no ceiling.

    Attributes:
        max_nodes: The most nodes.
        max_price_micros_per_hour: Their highest total price, each at its price at launch.
    """

    max_nodes: int | None = None
    max_price_micros_per_hour: int | None = None

    @property
    def amounts(self) -> dict[str, int]:
        """The limits as amounts by resource; what has no limit is absent."""
        most = {NODES: self.max_nodes, PRICE: self.max_price_micros_per_hour}
        return {name: amount for name, amount in most.items() if amount is not None}

    def __bool__(self) -> bool:
        return bool(self.amounts)

    def lower(self, other: "Ceiling") -> "Ceiling":
        """Return the stricter of the two, for each amount."""
        return Ceiling(
            max_nodes=_lower(self.max_nodes, other.max_nodes),
            max_price_micros_per_hour=_lower(
                self.max_price_micros_per_hour, other.max_price_micros_per_hour
            ),
        )


NO_CEILING: Final = Ceiling()


class Brakes(Struct, frozen=True, kw_only=True):
    """The brakes of a whole cluster.

    Attributes:
        paused: Dovetail launches no instance, and terminates none voluntarily.
        shadow: The same, but decisions are made, recorded and reported.
    """

    paused: bool = False
    shadow: bool = False
    ceiling: Ceiling = NO_CEILING

    @property
    def forbids_changes(self) -> bool:
        """Whether no instance may be launched, and none terminated voluntarily."""
        return self.paused or self.shadow

    def stricter(self, other: "Brakes") -> "Brakes":
        """Return the stricter of the two, for each brake."""
        return Brakes(
            paused=self.paused or other.paused,
            shadow=self.shadow or other.shadow,
            ceiling=self.ceiling.lower(other.ceiling),
        )


NO_BRAKES: Final = Brakes()


def _lower(value: int | None, other: int | None) -> int | None:
    given = [amount for amount in (value, other) if amount is not None]
    return min(given) if given else None

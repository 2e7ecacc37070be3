"""Amounts of named resources, exact and immutable."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

from msgspec import Meta, Struct

from shared.model import quantity

CPU: Final = "cpu"
# What limits count and no instance reports: its price in micro-dollars, and 1 for the node.
PRICE: Final = "price-per-hour"
NODES: Final = "nodes"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

# The resources of every node; anything else is a device, a volume slot or a huge page.
PLAIN: Final = frozenset({CPU, MEMORY, PODS, EPHEMERAL_STORAGE})
# Marks a field whose zeros mean that there may be none; an absent resource has no limit.
WITH_ZEROS: Final = Meta(extra={"with_zeros": True})
_BYTES: Final = frozenset({MEMORY, EPHEMERAL_STORAGE})
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_READABLE: Final = 6  # letters, as in 1536Mi


class Resources(Struct, frozen=True):
    """Amounts by resource name: cpu in millicores, memory and storage in bytes, others as counts.

    A name that is absent means zero, and zeros are not kept, so equal amounts are equal values.
    Amounts may be negative (the free capacity of an overcommitted node).

    Example:
        >>> Resources.of(cpu=500) + Resources.of(cpu=250, pods=1)
        Resources(items=(('cpu', 750), ('pods', 1)))
    """

    items: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_mapping(cls, amounts: Mapping[str, int]) -> Self:
        """Return the amounts, sorted by name, zeros dropped."""
        return cls(tuple(sorted([amount for amount in amounts.items() if amount[1]])))

    @classmethod
    def of(cls, **amounts: int) -> Self:
        """Return the amounts given by keyword: `of(cpu=500, memory=2**30, pods=1)`."""
        return cls.from_mapping(amounts)

    @classmethod
    def parse(cls, quantities: Mapping[str, str | int | float]) -> Self:
        """Return the amounts of a Kubernetes ResourceList.

        Raises:
            ValueError: If a quantity cannot be parsed; the message names the resource.
        """
        amounts = {}
        for name, text in quantities.items():
            try:
                amounts[name] = (
                    quantity.parse_cpu_millis(text) if name == CPU else quantity.parse_amount(text)
                )
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return cls.from_mapping(amounts)

    @classmethod
    def total(cls, many: Iterable["Resources"]) -> Self:
        """Return the sum of all, zero for none."""
        amounts: dict[str, int] = {}
        for resources in many:
            for name, amount in resources.items:
                amounts[name] = amounts.get(name, 0) + amount
        return cls.from_mapping(amounts)

    def __getitem__(self, name: str) -> int:
        for key, amount in self.items:
            if key == name:
                return amount
        return 0

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __add__(self, other: "Resources") -> "Resources":
        return Resources.total((self, other))

    def __sub__(self, other: "Resources") -> "Resources":
        amounts = dict(self.items)
        for name, amount in other.items:
            amounts[name] = amounts.get(name, 0) - amount
        return Resources.from_mapping(amounts)

    def only(self, names: frozenset[str]) -> "Resources":
        """Return the amounts of some names."""
        return Resources(tuple(item for item in self.items if item[0] in names))

    def times(self, count: int) -> "Resources":
        """Return `count` times every amount."""
        return Resources.from_mapping({k: v * count for k, v in self.items})

    def fits(self, capacity: "Resources") -> bool:
        """Return whether no amount exceeds that in `capacity` (a name absent there is zero)."""
        available = dict(capacity.items)
        return all(amount <= 0 or amount <= available.get(k, 0) for k, amount in self.items)

    def exceeding(self, capacity: "Resources") -> tuple[str, ...]:
        """Return the names, sorted, whose amount exceeds that in `capacity`."""
        available = dict(capacity.items)
        return tuple(k for k, v in self.items if v > 0 and v > available.get(k, 0))

    def largest(self, other: "Resources") -> "Resources":
        """Return the larger amount of the two for every name."""
        names = {*self, *other}
        return Resources.from_mapping({k: max(self[k], other[k]) for k in names})

    def to_quantities(self) -> dict[str, str]:
        """Return a Kubernetes ResourceList, names sorted."""
        return {name: format_amount(name, amount) for name, amount in self.items}


def format_amount(name: str, amount: int) -> str:
    """Return an amount of the resource as Kubernetes writes it."""
    if name == CPU:
        return quantity.format_cpu(amount)
    if name == PRICE:
        return f"${amount / 1_000_000:.4f}"
    if name in _BYTES or name.startswith("hugepages-"):
        return quantity.format_bytes(amount)
    return str(amount)


def readable_amount(name: str, amount: int, *, up: bool = False) -> str:
    """Return an amount for people: bytes in the largest unit, with two decimals.

    Args:
        up: Whether to round up, as for a request that is compared with a smaller amount.
    """
    exact = format_amount(name, amount)
    if len(exact) <= _READABLE or not (name in _BYTES or name.startswith("hugepages-")):
        return exact
    power = min((abs(amount).bit_length() - 1) // 10, len(_UNITS) - 1)
    hundredths, rest = divmod(amount * 100, 1 << 10 * power)
    hundredths += bool(rest) and up
    return f"{hundredths / 100:g}{_UNITS[power]}"

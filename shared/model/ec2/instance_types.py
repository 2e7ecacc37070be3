"""Instance types and their offerings."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.model.values import HashableValue


class CapacityType(StrEnum):
    """The purchase option of an instance."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class Offering(Struct, frozen=True, kw_only=True, order=True):
    """An instance type in a zone with a capacity type, and its price.

    Attributes:
        price_micros_per_hour: Price in millionths of a US dollar per hour, above zero.
        interpolated: Whether the price was derived because the source's own was unusable.

    Raises:
        ValueError: The price is not above zero.
    """

    zone: str
    capacity_type: CapacityType
    price_micros_per_hour: int
    interpolated: bool = False

    def __post_init__(self) -> None:
        if self.price_micros_per_hour < 1:
            raise ValueError("price_micros_per_hour must be above zero")


class Overhead(Struct, frozen=True, kw_only=True):
    """The capacity that pods cannot use, in its three parts."""

    kube_reserved: Resources = Resources()
    system_reserved: Resources = Resources()
    eviction_threshold: Resources = Resources()

    @property
    def total(self) -> Resources:
        """Sum of the three parts."""
        return Resources.total((self.kube_reserved, self.system_reserved, self.eviction_threshold))


class InstanceType(HashableValue, frozen=True, kw_only=True):
    """An instance type.

    Attributes:
        labels: Labels of every instance of this type (type, arch, os, family, ...), without zone
            and capacity type, which belong to the offering.
        capacity: All resources of the instance, `pods` among them.
        overhead: The part of `capacity` that pods cannot use.
        offerings: Sorted by price, then zone, then capacity type.
        volume_limit: EBS volumes that an instance can attach for pods.
        image_max_pods: The pod limit that images compute for themselves, None where it is that of
            `capacity`.
    """

    name: str
    labels: Mapping[str, str]
    capacity: Resources
    overhead: Overhead
    offerings: tuple[Offering, ...]
    volume_limit: int = 25
    image_max_pods: int | None = None

    @property
    def highest_price_micros_per_hour(self) -> int:
        """The price of the most expensive offering, 0 without any."""
        return max((offering.price_micros_per_hour for offering in self.offerings), default=0)

    @property
    def allocatable(self) -> Resources:
        """Capacity less overhead, never below zero for any resource."""
        taken = self.overhead.total
        left = ((name, amount - taken[name]) for name, amount in self.capacity.items)
        return Resources(tuple(entry for entry in left if entry[1] > 0))


class OfferingKey(Struct, frozen=True, kw_only=True, order=True):
    """The key of an offering, for which EC2 may have no capacity."""

    instance_type: str
    zone: str
    capacity_type: CapacityType

    @property
    def text(self) -> str:
        """Its parts in one text for notes, as in `m5.large/eu-west-1a/spot`."""
        return f"{self.instance_type}/{self.zone}/{self.capacity_type.value}"

    @classmethod
    def from_text(cls, text: str) -> "OfferingKey":
        """Return the key with this text."""
        instance_type, zone, capacity_type = text.split("/")
        return cls(
            instance_type=instance_type, zone=zone, capacity_type=CapacityType(capacity_type)
        )

    @property
    def labels(self) -> dict[str, str]:
        """The labels that every Node of such an instance has."""
        return {
            keys.INSTANCE_TYPE: self.instance_type,
            keys.ZONE: self.zone,
            keys.CAPACITY_TYPE: self.capacity_type.value,
        }

"""What the error codes of CreateFleet mean."""

from collections.abc import Iterable
from typing import Final

from shared.model.instance_types import OfferingKey
from shared.model.launch import FleetAnswer

# EC2 cannot supply an offering now: none in stock, a quota reached, no free address.
NO_CAPACITY: Final = frozenset(
    {
        "InsufficientCapacityOnHost",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientVolumeCapacity",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",
        "VcpuLimitExceeded",
    }
)


def refused_offerings(answer: FleetAnswer, asked: Iterable[OfferingKey]) -> frozenset[OfferingKey]:
    """Return the offerings that EC2 cannot supply now.

    Args:
        asked: All offerings of the request.
    """
    errors = [one for one in answer.errors if one.code in NO_CAPACITY]
    refused = {one.offering for one in errors if one.offering is not None}
    if any(one.offering is None for one in errors):
        refused |= {*asked} - {one.offering for one in answer.instances}
    return frozenset(refused)

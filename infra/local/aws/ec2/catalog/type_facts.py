"""What the emulator's tables say of instance types and where they are offered."""

from functools import cache
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES


def known(instance_type: str) -> bool:
    return instance_type in INSTANCE_TYPES


def facts(instance_type: str) -> dict[str, Any]:
    """The record of one known type in the shape of DescribeInstanceTypes."""
    record: dict[str, Any] = INSTANCE_TYPES[instance_type]
    return record


def vcpus(instance_type: str) -> int:
    """Default vCPUs; 0 for an unknown type."""
    if not known(instance_type):
        return 0
    return int(facts(instance_type)["VCpuInfo"]["DefaultVCpus"])


def architectures(instance_type: str) -> tuple[str, ...]:
    return tuple(facts(instance_type)["ProcessorInfo"]["SupportedArchitectures"])


def usage_classes(instance_type: str) -> tuple[str, ...]:
    """`on-demand`, `spot`, `capacity-block`."""
    return tuple(facts(instance_type)["SupportedUsageClasses"])


@cache
def zonal_offerings(region: str) -> frozenset[tuple[str, str]]:
    rows = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return frozenset((row["InstanceType"], row["Location"]) for row in rows)


@cache
def offered_in(region: str) -> frozenset[str]:
    """Types offered somewhere in a Region."""
    return frozenset(row["InstanceType"] for row in INSTANCE_TYPE_OFFERINGS["region"][region])


@cache
def zones_of(region: str, instance_type: str) -> tuple[str, ...]:
    """Zones of a Region that offer the type, sorted."""
    return tuple(sorted(zone for name, zone in zonal_offerings(region) if name == instance_type))

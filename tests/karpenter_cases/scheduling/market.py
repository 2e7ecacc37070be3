"""A small market: four plain sizes, an arm one, and four with a device."""

from collections.abc import Iterable, Mapping
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering, Overhead
from shared.model.resources import Resources

GIB: Final = 2**30
A, B, C = ZONES = ("zone-a", "zone-b", "zone-c")
BOTH: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT)
GENERATION: Final = keys.INSTANCE_GENERATION


def machine(
    name: str,
    cpu: int,
    memory: int,
    price: int,
    *,
    arch: str = "amd64",
    zones: Iterable[str] = ZONES,
    sold_as: Iterable[CapacityType] = BOTH,
    pods: int = 30,
    extra: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    spot_price: int = 0,
) -> InstanceType:
    """Return a type with `cpu` cores, `memory` GiB and a price in thousandths of a dollar.

    Spot costs half unless said otherwise; each later zone costs a millionth more.
    """
    family, size = name.split(".")
    prices = {
        CapacityType.ON_DEMAND: price * 1000,
        CapacityType.SPOT: spot_price * 1000 or price * 500,
    }
    offerings = [
        Offering(zone=zone, capacity_type=kind, price_micros_per_hour=prices[kind] + step)
        for step, zone in enumerate(zones)
        for kind in sold_as
    ]
    offerings.sort(key=lambda entry: (entry.price_micros_per_hour, entry.zone, entry.capacity_type))
    amounts = {"cpu": cpu * 1000, "memory": memory * GIB, "pods": pods}
    amounts |= {"ephemeral-storage": 20 * GIB, **(extra or {})}
    return InstanceType(
        name=name,
        labels={
            keys.INSTANCE_TYPE: name,
            keys.ARCH: arch,
            keys.OS: "linux",
            keys.REGION: "zone",
            keys.INSTANCE_FAMILY: family,
            keys.INSTANCE_SIZE: size,
            keys.INSTANCE_CATEGORY: family[0],
            GENERATION: family[1],
            keys.INSTANCE_CPU: str(cpu),
            **(labels or {}),
        },
        capacity=Resources.from_mapping(amounts),
        overhead=Overhead(kube_reserved=Resources.of(cpu=100, memory=GIB // 8)),
        offerings=tuple(offerings),
    )


TINY, SMALL, MEDIUM, LARGE = (
    machine("m5.tiny", 2, 4, 100),
    machine("m5.small", 4, 8, 190),
    machine("m5.medium", 8, 16, 370),
    machine("m5.large", 16, 32, 730),
)
ARM: Final = machine("c6.arm", 4, 8, 200, arch="arm64")
NVIDIA: Final = machine("g4.duo", 8, 16, 900, extra={"nvidia.com/gpu": 2})
AMD: Final = machine("g3.duo", 8, 16, 950, extra={"amd.com/gpu": 2})
NEURON: Final = machine("i1.duo", 8, 16, 800, extra={"aws.amazon.com/neuron": 2})
TRUNK: Final = machine("r5.trunk", 4, 8, 250, extra={"vpc.amazonaws.com/pod-eni": 1})
MARKET: Final = (TINY, SMALL, MEDIUM, LARGE, ARM, NVIDIA, AMD, NEURON, TRUNK)

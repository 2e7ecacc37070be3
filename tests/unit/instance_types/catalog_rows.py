"""Rows for the tests of the catalogue, as AWS and as a file would have them."""

from typing import Any

from shared.instance_types.building import build_catalog
from shared.instance_types.document import TypeRow
from shared.instance_types.instance_setup import InstanceSetup


def fact(
    name: str = "m5.large",
    *,
    vcpus: int = 2,
    memory_mib: int = 8192,
    arch: str = "x86_64",
    interfaces: int = 3,
    addresses: int = 10,
    usage: tuple[str, ...] = ("on-demand", "spot"),
    **more: Any,
) -> dict[str, Any]:
    """Return one row of DescribeInstanceTypes."""
    card = {
        "NetworkCardIndex": 0,
        "MaximumNetworkInterfaces": interfaces,
        "BaselineBandwidthInGbps": 0.75,
    }
    row = {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": vcpus},
        "MemoryInfo": {"SizeInMiB": memory_mib},
        "ProcessorInfo": {"SupportedArchitectures": [arch]},
        "SupportedUsageClasses": list(usage),
        "SupportedVirtualizationTypes": ["hvm"],
        "Hypervisor": "nitro",
        "NetworkInfo": {
            "MaximumNetworkInterfaces": interfaces,
            "Ipv4AddressesPerInterface": addresses,
            "DefaultNetworkCardIndex": 0,
            "NetworkCards": [card],
            "EncryptionInTransitSupported": False,
        },
    }
    return row | more


def gpus(name: str, manufacturer: str, count: int, memory_mib: int = 16384) -> dict[str, Any]:
    """Return the GpuInfo of one kind of GPU."""
    gpu = {
        "Name": name,
        "Manufacturer": manufacturer,
        "Count": count,
        "MemoryInfo": {"SizeInMiB": memory_mib},
    }
    return {"Gpus": [gpu]}


def offering(**more: Any) -> dict[str, Any]:
    """Return one offering of a catalogue file."""
    way = {"zone": "z1", "capacity_type": "on-demand", "price_micros_per_hour": 96_000}
    return way | more


def flat_row(**more: Any) -> dict[str, Any]:
    """Return one type of a catalogue file with only a flat overhead."""
    row = {
        "name": "m5.large",
        "arch": "amd64",
        "vcpus": 2,
        "memory_mib": 8192,
        "max_pods": 29,
        "gpus": [],
        "labels": {"team": "a"},
        "overhead": {"cpu": "170m", "memory": "1093Mi"},
        "offerings": [offering()],
    }
    return row | more


def document(*rows: Any, **more: Any) -> dict[str, Any]:
    """Return a catalogue file of these types."""
    head = {"version": 1, "region": "r1", "source": "a test", "date": "2026-01-31"}
    return head | {"types": list(rows)} | more


def row_of(told: dict[str, Any], setup: InstanceSetup) -> TypeRow:
    """Return the type of the catalogue that is built of one row of DescribeInstanceTypes."""
    name = told["InstanceType"]
    (row,) = build_catalog(
        facts=[told],
        offerings=[(name, "z1")],
        on_demand_prices={name: 0.096},
        spot_prices={},
        region="r1",
        source="a test",
        date="2026-01-31",
        setup=setup,
    )["types"]
    return row

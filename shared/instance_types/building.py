"""Builds the catalog document from facts, zones and prices."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from shared.instance_types import overhead
from shared.instance_types.document import VERSION, CatalogDocument, OfferingRow, TypeRow
from shared.instance_types.ebs_volumes import DEFAULT_EBS_VOLUME_LIMIT, ebs_volume_limit
from shared.instance_types.facts import (
    Fact,
    arch_of,
    gpus_of,
    labels_of,
    network_of,
    neuron_cores_of,
)
from shared.instance_types.instance_setup import DEFAULT_SETUP, InstanceSetup, mib
from shared.instance_types.price_book import Price, listed_prices, repaired_prices, to_micros
from shared.model.ec2.instance_types import CapacityType
from shared.model.quantity import format_bytes, format_cpu
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY

_MIB: Final = 2**20
_GIB: Final = 2**30


def build_catalog(  # noqa: PLR0913 -- eight keyword-only facts of one document
    *,
    facts: Iterable[Fact],
    offerings: Iterable[tuple[str, str]],
    on_demand_prices: Mapping[str, str | float],
    spot_prices: Mapping[tuple[str, str], str | float],
    region: str,
    source: str,
    date: str,
    repair: bool = False,
    setup: InstanceSetup = DEFAULT_SETUP,
) -> CatalogDocument:
    """Return the catalog of one Region: types by name, offerings by price, zone, capacity type.

    A type is left out when Linux nodes cannot run on it or when it cannot be launched: no zone
    offers it, or it has no price above zero.

    Args:
        facts: Rows of DescribeInstanceTypes, as boto3 returns them.
        offerings: (type, zone) pairs of DescribeInstanceTypeOfferings.
        on_demand_prices: Dollars per hour by type; rows not above zero are not used.
        spot_prices: Dollars per hour by (type, zone); rows not above zero are not used.
        region: Name of the Region.
        source: Where facts and prices come from, printed wherever prices are.
        date: ISO date of the prices.
        repair: Whether to replace zeros and outliers of `on_demand_prices` by the rate of their
            family; for tables that are known to be unclean, not for the Pricing API.
        setup: The setup of the Region's instances.
    """
    rows = {fact["InstanceType"]: fact for fact in facts}
    if repair:
        on_demand = repaired_prices(rows.values(), on_demand_prices)
    else:
        on_demand = listed_prices(on_demand_prices)
    zones: dict[str, set[str]] = {}
    for name, zone in offerings:
        zones.setdefault(name, set()).add(zone)
    types = []
    for name, fact in sorted(rows.items()):
        offering_rows = _offering_rows(
            fact, zones.get(name, set()), on_demand.get(name), spot_prices
        )
        arch = arch_of(fact)
        if arch is not None and offering_rows:
            types.append(_type_row(fact, region, arch, offering_rows, setup))
    return CatalogDocument(version=VERSION, region=region, source=source, date=date, types=types)


def format_catalog(document: CatalogDocument) -> str:
    """Return the document as JSON text, one line per type, the same for the same document."""
    head = {key: value for key, value in document.items() if key != "types"}
    lines = ",\n".join(_compact(row) for row in document["types"])
    return f'{_compact(head)[:-1]},"types":[\n{lines}\n]}}\n'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _type_row(
    fact: Fact,
    region: str,
    arch: str,
    offering_rows: list[OfferingRow],
    setup: InstanceSetup,
) -> TypeRow:
    vcpus = fact["VCpuInfo"]["DefaultVCpus"]
    kube_storage = overhead.KUBE_RESERVED_STORAGE_GIB * _GIB
    free_storage = overhead.eviction_storage_bytes(overhead.ROOT_VOLUME_GIB * _GIB)
    row = TypeRow(
        name=fact["InstanceType"],
        arch=arch,
        vcpus=vcpus,
        memory_mib=fact["MemoryInfo"]["SizeInMiB"],
        max_pods=0,
        gpus=gpus_of(fact),
        labels=labels_of(fact, region=region, arch=arch),
        overhead={
            CPU: format_cpu(overhead.kube_reserved_cpu_millis(vcpus)),
            MEMORY: "0",
            EPHEMERAL_STORAGE: format_bytes(kube_storage + free_storage),
        },
        offerings=offering_rows,
        storage_gib=overhead.ROOT_VOLUME_GIB,
        vm_overhead_mib=0,
        kube_reserved={
            CPU: format_cpu(overhead.kube_reserved_cpu_millis(vcpus)),
            MEMORY: "0",
            EPHEMERAL_STORAGE: format_bytes(kube_storage),
        },
        eviction_threshold={
            MEMORY: mib(overhead.EVICTION_MEMORY_MIB),
            EPHEMERAL_STORAGE: format_bytes(free_storage),
        },
        network=network_of(fact),
    )
    volumes = ebs_volume_limit(fact)
    if volumes != DEFAULT_EBS_VOLUME_LIMIT:
        row["ebs_volumes"] = volumes
    extended = neuron_cores_of(fact)
    if extended:
        row["extended"] = extended
    return setup.applied(row)


def _offering_rows(
    fact: Fact,
    zones: Iterable[str],
    on_demand: Price | None,
    spot_prices: Mapping[tuple[str, str], str | float],
) -> list[OfferingRow]:
    usage = fact.get("SupportedUsageClasses", ())
    rows: list[OfferingRow] = []
    for zone in sorted(zones):
        if on_demand is not None and CapacityType.ON_DEMAND in usage:
            row = _offering_row(zone, CapacityType.ON_DEMAND, on_demand.micros_per_hour)
            if on_demand.interpolated:
                row["interpolated"] = True
            rows.append(row)
        spot = to_micros(spot_prices.get((fact["InstanceType"], zone), 0))
        if spot > 0 and CapacityType.SPOT in usage:
            rows.append(_offering_row(zone, CapacityType.SPOT, spot))
    return sorted(
        rows, key=lambda row: (row["price_micros_per_hour"], row["zone"], row["capacity_type"])
    )


def _offering_row(zone: str, capacity_type: CapacityType, micros: int) -> OfferingRow:
    return OfferingRow(zone=zone, capacity_type=str(capacity_type), price_micros_per_hour=micros)

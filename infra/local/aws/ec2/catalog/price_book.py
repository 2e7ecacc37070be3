"""Prices of the embedded EC2, in micro-dollars per hour.

They come from the catalogue file where it has them. What it lacks is computed: on-demand prices
from a near-linear formula, spot prices as a fixed fraction of on-demand. Both are synthetic; they
have the shape of real prices and make no claim to be them.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from infra.local.aws.ec2.catalog import type_facts
from infra.local.ec2.pools import ON_DEMAND, SPOT
from shared import instance_types

SPOT_PERCENT_LOW: Final = 28
SPOT_PERCENT_HIGH: Final = 62

# Fitted to c5/m5/r5 list prices in us-east-1 (0.085, 0.096 and 0.126 dollars an hour for two
# vCPUs), good to about 4 %. The rest are round figures for the demo.
_MICROS_PER_VCPU: Final = 34_000
_MICROS_PER_GIB: Final = 3_600
_MICROS_PER_GPU: Final = 450_000
_SUFFIX_PERCENT: Final = {"g": 80, "a": 90, "d": 113, "n": 125}


@dataclass(slots=True, kw_only=True)
class PriceBook:
    """Prices by type, zone and capacity type.

    Attributes:
        source: one line that says where the prices come from.
        on_demand: from the file, by type.
        zonal: from the file or a control verb, by (type, zone, capacity type).
    """

    source: str = "computed: synthetic near-linear prices"
    on_demand: dict[str, int] = field(default_factory=dict)
    zonal: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def price(self, instance_type: str, zone: str, capacity_type: str) -> int:
        """Micro-dollars per hour of one offering."""
        found = self.zonal.get((instance_type, zone, capacity_type))
        if found is not None:
            return found
        listed = self.list_price(instance_type)
        if capacity_type == ON_DEMAND:
            return listed
        return listed * spot_percent(instance_type, zone) // 100

    def list_price(self, instance_type: str) -> int:
        """On-demand price of a type, the same in all zones."""
        found = self.on_demand.get(instance_type)
        return computed_price(instance_type) if found is None else found


def spot_percent(instance_type: str, zone: str) -> int:
    """Synthetic spot price as a percentage of on-demand, 28 to 62, fixed by a hash."""
    digest = hashlib.sha256(f"spot/{instance_type}/{zone}".encode()).digest()
    span = SPOT_PERCENT_HIGH - SPOT_PERCENT_LOW + 1
    return SPOT_PERCENT_LOW + int.from_bytes(digest[:4], "big") % span


def computed_price(instance_type: str) -> int:
    """Synthetic on-demand price of a type; 0 for an unknown one."""
    if not type_facts.known(instance_type):
        return 0
    record = type_facts.facts(instance_type)
    gib = int(record["MemoryInfo"]["SizeInMiB"]) / 1024
    gpus = sum(int(gpu["Count"]) for gpu in record.get("GpuInfo", {}).get("Gpus", ()))
    base = type_facts.vcpus(instance_type) * _MICROS_PER_VCPU + gib * _MICROS_PER_GIB
    total = round(base + gpus * _MICROS_PER_GPU)
    family = instance_type.split(".", maxsplit=1)[0]
    digits = [place for place, letter in enumerate(family) if letter.isdigit()]
    suffix = family[digits[0] + 1 :] if digits else ""
    for letter in sorted(set(suffix)):
        total = total * _SUFFIX_PERCENT.get(letter, 100) // 100
    return total


def embedded_catalog(region: str) -> Path:
    """Where the catalogue of a Region is that ships with the code; it may not exist."""
    return Path(instance_types.__path__[0]) / "embedded" / f"{region}.json"


def read_price_book(path: Path | None) -> PriceBook:
    """Read a catalogue file; without one, or without the file, every price is computed.

    The file is the catalogue of `dovetail plan`: `types[].offerings[]` with `zone`,
    `capacity_type` and `price_micros_per_hour`.
    """
    if path is None or not path.is_file():
        return PriceBook()
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    book = PriceBook(source=f"{document.get('source', path.name)}, {document.get('date', '')}")
    for entry in document.get("types", ()):
        for offering in entry.get("offerings", ()):
            kind = offering["capacity_type"]
            price = int(offering["price_micros_per_hour"])
            book.zonal[entry["name"], offering["zone"], kind] = price
            if kind != SPOT:
                book.on_demand.setdefault(entry["name"], price)
    return book

"""Decodes the catalog document to model values."""

import json
from bisect import bisect_left
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from shared.instance_types.document import VERSION, NetworkRow
from shared.instance_types.ebs_volumes import DEFAULT_EBS_VOLUME_LIMIT
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.overhead import ROOT_VOLUME_GIB
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering, Overhead
from shared.model.errors import InvalidManifestError
from shared.model.quantity import parse_amount, parse_cpu_millis
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from shared.model.surrogates import SURROGATE_REMEDY, escapes_surrogate, first_surrogate
from shared.model.values import replace

EMBEDDED_REGION: Final = "us-east-1"

_MIB: Final = 2**20
_GIB: Final = 2**30
_CAPACITY_TYPES: Final = {str(capacity_type): capacity_type for capacity_type in CapacityType}
_by_price: Final = attrgetter("price_micros_per_hour", "zone", "capacity_type")
_QUANTITY_TYPES: Final = frozenset({str, int, float})
_QUANTITY_REMEDY: Final = "must be a quantity such as 100Mi"
_PARTS: Final = ("vm_overhead_mib", "kube_reserved", "eviction_threshold")


class Catalog(Struct, frozen=True, kw_only=True):
    """The instance types of one Region.

    Attributes:
        source: Origin of facts and prices; print it, with the date, wherever prices are.
        date: ISO date of the prices.
        instance_types: Sorted by name.
    """

    region: str
    source: str
    date: str
    instance_types: tuple[InstanceType, ...]

    def get(self, name: str) -> InstanceType | None:
        """Return the type of this name, None when the catalog does not have it."""
        index = bisect_left(self.instance_types, name, key=lambda instance_type: instance_type.name)
        if index < len(self.instance_types) and self.instance_types[index].name == name:
            return self.instance_types[index]
        return None

    def instance_types_in(self, zones: Collection[str]) -> tuple[InstanceType, ...]:
        """Return the types that some of the zones offer, with the offerings of these zones only."""
        wanted = frozenset(zones)
        found = []
        for instance_type in self.instance_types:
            kept = tuple(
                offering for offering in instance_type.offerings if offering.zone in wanted
            )
            if len(kept) == len(instance_type.offerings):
                found.append(instance_type)
            elif kept:
                found.append(replace(instance_type, offerings=kept))
        return tuple(found)

    def with_zones(self, zones: Collection[str]) -> "Catalog":
        """Return the catalog of these zones only."""
        return replace(self, instance_types=self.instance_types_in(zones))


def embedded_text() -> str:
    """Return the text of the catalog that ships with Dovetail."""
    from importlib import resources  # noqa: PLC0415 -- 8 ms that other catalogs do not need

    packaged = resources.files(__package__) / "embedded" / f"{EMBEDDED_REGION}.json"
    return packaged.read_text(encoding="utf-8")


@cache
def embedded_catalog() -> Catalog:
    """Return the catalog that ships with Dovetail, read once."""
    return load_catalog(embedded_text())


def load_catalog(text: str, setup: InstanceSetup | None = None) -> Catalog:
    """Return the catalog of a JSON text.

    Args:
        setup: The setup of instances; None for that of the text.

    Raises:
        InvalidManifestError: If it is no catalog; one line that names type, field and value.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        remedy = "is not JSON; `dovetail catalog` writes one"
        raise _invalid("catalog", str(error), remedy) from error
    half = first_surrogate(document) if escapes_surrogate(text) else None
    if half is not None:
        raise _invalid(*half, SURROGATE_REMEDY)
    if not isinstance(document, dict):
        raise _invalid("catalog", document, "must be an object with a list `types`")
    if document.get("version", VERSION) != VERSION:
        raise _invalid("version", document["version"], f"must be {VERSION}")
    rows = document.get("types")
    if not isinstance(rows, list):
        raise _invalid("types", rows, "must be a list of instance types")
    types = sorted((_set_up(row, setup) for row in rows), key=lambda row: row.name)
    for instance_type, following in pairwise(types):
        if instance_type.name == following.name:
            raise _invalid("types", instance_type.name, "stands there twice")
    return Catalog(
        region=_text(document, "region", ""),
        source=_text(document, "source", ""),
        date=_date(document),
        instance_types=tuple(types),
    )


def _set_up(row: Any, setup: InstanceSetup | None) -> InstanceType:
    read = to_instance_type(row)
    return read if setup is None else to_instance_type(setup.applied(row))


def to_instance_type(row: Mapping[str, Any]) -> InstanceType:
    """Return one row of the catalog as a model value.

    From a row with only a flat `overhead`, that becomes the kube-reserved part. A row with the
    parts of its overhead gives the parts, and capacity as a kubelet would report it (without what
    the hypervisor keeps). Allocatable is the same: capacity - overhead.

    Raises:
        InvalidManifestError: If a field is missing or wrong; one line that names type and field.
    """
    if not isinstance(row, dict):
        raise _invalid("types", row, "each type must be an object")
    name = _text(row, "name", "")
    at = f"{name}."
    arch = _text(row, "arch", at)
    labels = {
        keys.INSTANCE_TYPE: name,
        keys.ARCH: arch,
        keys.OS: "linux",
        **_texts(row, "labels", at),
    }
    vm_bytes = _whole(row, "vm_overhead_mib", at, default=0) * _MIB
    if "network" in row:
        _check_network(row["network"], at)
    capacity = {
        CPU: _whole(row, "vcpus", at, least=1) * 1000,
        MEMORY: _whole(row, "memory_mib", at, least=1) * _MIB - vm_bytes,
        PODS: _whole(row, "max_pods", at),
        EPHEMERAL_STORAGE: _whole(row, "storage_gib", at, default=ROOT_VOLUME_GIB) * _GIB,
    }
    for gpu in _objects(row, "gpus", at) if "gpus" in row else ():
        resource = _text(gpu, "resource", f"{at}gpus.")
        capacity[resource] = capacity.get(resource, 0) + _whole(gpu, "count", f"{at}gpus.", least=1)
    if "extended" in row:
        capacity.update(dict(_resources(row, "extended", at).items))
    return InstanceType(
        name=name,
        labels=labels,
        capacity=Resources.from_mapping(capacity),
        overhead=_overhead(row, at, vm_bytes),
        offerings=_offerings(row, at),
        volume_limit=_whole(row, "ebs_volumes", at, default=DEFAULT_EBS_VOLUME_LIMIT),
        image_max_pods=_whole(row, "image_max_pods", at) if "image_max_pods" in row else None,
    )


def _check_network(row: Any, at: str) -> None:
    if not isinstance(row, dict):
        raise _invalid(f"{at}network", row, "must be an object")
    for name in NetworkRow.__required_keys__:
        _whole(row, name, f"{at}network.", least=1)


def _overhead(row: Mapping[str, Any], at: str, vm_bytes: int) -> Overhead:
    flat = _resources(row, "overhead", at)
    if not any(part in row for part in _PARTS):
        return Overhead(kube_reserved=flat)
    kept, evicted = _resources(row, "kube_reserved", at), _resources(row, "eviction_threshold", at)
    overhead, whole = _overhead_of(kept, evicted, vm_bytes)
    if whole != flat:
        remedy = f"must be the sum of {', '.join(_PARTS)}: {whole.to_quantities()}"
        raise _invalid(f"{at}overhead", flat.to_quantities(), remedy)
    return overhead


@lru_cache(maxsize=4096)
def _overhead_of(kept: Resources, evicted: Resources, vm_bytes: int) -> tuple[Overhead, Resources]:
    """Return the overhead, and its sum with the hypervisor's; cached, as catalogs have few."""
    overhead = Overhead(kube_reserved=kept, eviction_threshold=evicted)
    return overhead, overhead.total + Resources.from_mapping({MEMORY: vm_bytes})


def _offerings(row: Mapping[str, Any], at: str) -> tuple[Offering, ...]:
    here = f"{at}offerings."
    found = [_offering(entry, here) for entry in _objects(row, "offerings", at)]
    if len({(offering.zone, offering.capacity_type) for offering in found}) != len(found):
        raise _invalid(f"{at}offerings", len(found), "has a zone and capacity type twice")
    return tuple(sorted(found, key=_by_price))


def _offering(row: Mapping[str, Any], at: str) -> Offering:
    zone = row.get("zone")
    capacity_type = row.get("capacity_type")
    micros = row.get("price_micros_per_hour")
    interpolated = row.get("interpolated", False)
    if not isinstance(zone, str) or not zone:
        raise _invalid(f"{at}zone", zone, "must be the name of a zone")
    if not isinstance(capacity_type, str) or capacity_type not in _CAPACITY_TYPES:
        remedy = f"must be one of {', '.join(_CAPACITY_TYPES)}"
        raise _invalid(f"{at}capacity_type", capacity_type, remedy)
    if type(micros) is not int or micros <= 0:
        remedy = "must be a whole number of millionths of a dollar above zero"
        raise _invalid(f"{at}price_micros_per_hour", micros, remedy)
    if not isinstance(interpolated, bool):
        raise _invalid(f"{at}interpolated", interpolated, "must be true or false")
    return Offering(
        zone=zone,
        capacity_type=_CAPACITY_TYPES[capacity_type],
        price_micros_per_hour=micros,
        interpolated=interpolated,
    )


def _resources(row: Mapping[str, Any], field: str, at: str) -> Resources:
    quantities = row.get(field, {})
    if not isinstance(quantities, dict):
        raise _invalid(f"{at}{field}", quantities, "must be an object of quantities")
    for name, value in quantities.items():
        if type(value) not in _QUANTITY_TYPES:
            raise _invalid(f"{at}{field}.{name}", value, _QUANTITY_REMEDY)
    try:
        return _parsed(tuple(quantities.items()))
    except InvalidManifestError as error:
        raise _invalid(f"{at}{field}.{error.field}", error.value, error.remedy) from error


@lru_cache(maxsize=4096)
def _parsed(quantities: tuple[tuple[str, str | float], ...]) -> Resources:
    """Return the amounts; cached, as catalogs repeat few quantities many times."""
    amounts = {}
    for name, text in quantities:
        try:
            amount = parse_cpu_millis(text) if name == CPU else parse_amount(text)
        except ValueError as error:
            raise _invalid(name, text, _QUANTITY_REMEDY) from error
        if amount < 0:
            raise _invalid(name, text, "must not be negative")
        amounts[name] = amount
    return Resources.from_mapping(amounts)


def _whole(
    row: Mapping[str, Any], field: str, at: str, *, least: int = 0, default: int | None = None
) -> int:
    value = row.get(field, default)
    if type(value) is not int or value < least:
        raise _invalid(f"{at}{field}", value, f"must be a whole number of at least {least}")
    return value


def _text(row: Mapping[str, Any], field: str, at: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value:
        raise _invalid(f"{at}{field}", value, "must be a text that is not empty")
    return value


def _texts(row: Mapping[str, Any], field: str, at: str) -> dict[str, str]:
    value = row.get(field)
    if not isinstance(value, dict):
        raise _invalid(f"{at}{field}", value, "must be an object of texts")
    if not set(map(type, value.values())) <= {str}:
        key, text = next(item for item in value.items() if not isinstance(item[1], str))
        raise _invalid(f"{at}{field}.{key}", text, "must be a text; put it in quotes")
    return value


def _objects(row: Mapping[str, Any], field: str, at: str) -> list[dict[str, Any]]:
    value = row.get(field)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise _invalid(f"{at}{field}", value, "must be a list of objects")
    return value


def _date(document: Mapping[str, Any]) -> str:
    text = _text(document, "date", "")
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise _invalid("date", text, "must be a date such as 2026-01-31") from error
    return text


def _invalid(field: str, value: object, remedy: str) -> InvalidManifestError:
    """Return an error that is one short line, whatever the file holds."""
    shown = value if len(repr(value)) <= 80 else f"{repr(value)[:77]}..."
    name = field if field.isprintable() and len(field) <= 120 else f"{repr(field)[1:118]}..."
    return InvalidManifestError(field=name, value=shown, remedy=remedy)

"""DescribeInstanceTypes and -Offerings: in pages, with wildcards, each page made only once."""

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import InstanceTypeOfferingBackend
from moto.ec2.responses.instances import InstanceResponse

from infra.local.aws.ec2.catalog import type_facts
from infra.local.aws.moto_patches import Repairs

TYPES_PAGE: Final = 100
OFFERINGS_PAGE: Final = 1000


def _paged(response: Any, key: str, rows: list[Any], size: int) -> dict[str, Any]:
    start = int(response._get_param("NextToken") or 0)
    asked = int(response._get_param("MaxResults") or size)
    size = min(size, asked)
    more = start + size < len(rows)
    return {key: rows[start : start + size], "NextToken": str(start + size) if more else None}


def _offered(offering: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    names = {"location": "Location", "instance-type": "InstanceType"}
    return all(
        any(fnmatchcase(offering[names[name]], pattern) for pattern in wanted)
        for name, wanted in filters.items()
        if name in names
    )


def repair(repairs: Repairs) -> None:
    """Put our listings in place. Pages are kept as text: making one costs 0.2 seconds."""
    pages: dict[tuple[str, str, str], str] = {}

    def kept(response: Any, action: str, make: Callable[[], dict[str, Any]]) -> str:
        asked = json.dumps(response.params, sort_keys=True, default=str)
        key = (response.region, action, asked)
        if key not in pages:
            pages[key] = response.serialized(ActionResult(make()))[2]
        return pages[key]

    def describe_instance_types(self: Any) -> str:
        self.error_on_dryrun()

        def make() -> dict[str, Any]:
            found = self.ec2_backend.describe_instance_types(
                self._get_param("InstanceTypes", []), self._filters_from_querystring()
            )
            offered = type_facts.offered_in(self.region)
            found = [entry for entry in found if entry["InstanceType"] in offered]
            rows = sorted(found, key=lambda record: str(record["InstanceType"]))
            return _paged(self, "InstanceTypes", rows, TYPES_PAGE)

        return kept(self, "types", make)

    def describe_instance_type_offerings(self: Any) -> str:
        self.error_on_dryrun()

        def make() -> dict[str, Any]:
            filters = self._filters_from_querystring()
            found = self.ec2_backend.describe_instance_type_offerings(
                self._get_param("LocationType"), {}
            )
            rows = [row for row in found if _offered(row, filters)]
            rows.sort(key=lambda row: (row["InstanceType"], row["Location"]))
            return _paged(self, "InstanceTypeOfferings", rows, OFFERINGS_PAGE)

        return kept(self, "offerings", make)

    repairs.stock(
        InstanceTypeOfferingBackend,
        "describe_instance_type_offerings",
        ("self", "location_type", "filters"),
    )
    for name, new in (
        ("describe_instance_types", describe_instance_types),
        ("describe_instance_type_offerings", describe_instance_type_offerings),
    ):
        repairs.replace(InstanceResponse, name, new)

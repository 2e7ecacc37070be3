"""DescribeSpotPriceHistory from the price book."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses.spot_instances import SpotInstances

from infra.local.aws.ec2.catalog import type_facts
from infra.local.aws.ec2.world import World
from infra.local.aws.moto_patches import Repairs
from infra.local.ec2.pools import SPOT
from infra.local.ec2.request import dollars

PRODUCT: Final = "Linux/UNIX"
_PRODUCTS: Final = (PRODUCT, "Linux/UNIX (Amazon VPC)")
_PAGE: Final = 1000
_FILTERS: Final = {
    "availability-zone": "AvailabilityZone",
    "instance-type": "InstanceType",
    "product-description": "ProductDescription",
}


def _wants_linux(parameters: Mapping[str, Any]) -> bool:
    wanted = parameters.get("ProductDescriptions") or ()
    return not wanted or any(product in _PRODUCTS for product in wanted)


def _passes(row: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    for name, wanted in filters.items():
        if name not in _FILTERS:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        value = row[_FILTERS[name]]
        also = _PRODUCTS if name == "product-description" else (value,)
        if not any(fnmatchcase(item, pattern) for item in also for pattern in wanted):
            return False
    return True


def price_rows(
    world: World, region: str, types: frozenset[str], zone: str | None
) -> Iterator[dict[str, Any]]:
    """Rows of a Region, by type then zone: one each, since a synthetic price never moves.

    The time of a row is midnight two days ago: before any StartTime a caller would use for
    "current prices", and EC2 too answers with the row that was in force at StartTime.
    """
    today = world.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for name, place in sorted(type_facts.zonal_offerings(region)):
        if (types and name not in types) or (zone and place != zone):
            continue
        if SPOT not in type_facts.usage_classes(name):
            continue
        yield {
            "InstanceType": name,
            "ProductDescription": PRODUCT,
            "SpotPrice": dollars(world.book.price(name, place, SPOT)),
            "AvailabilityZone": place,
            "Timestamp": today - timedelta(days=2),
        }


def _in_range(row: Mapping[str, Any], end: datetime | None) -> bool:
    return end is None or row["Timestamp"].timestamp() <= end.timestamp()


def repair(repairs: Repairs, world: World) -> None:
    """Put our price history in place."""

    def describe_spot_price_history(self: Any) -> ActionResult:
        self.error_on_dryrun()
        filters = self._filters_from_querystring()
        parameters = self.params
        rows: list[dict[str, Any]] = []
        if _wants_linux(parameters):
            found = price_rows(
                world,
                self.region,
                frozenset(parameters.get("InstanceTypes") or ()),
                parameters.get("AvailabilityZone"),
            )
            end = parameters.get("EndTime")
            rows = [row for row in found if _passes(row, filters) and _in_range(row, end)]
        start = int(parameters.get("NextToken") or 0)
        size = min(_PAGE, int(parameters.get("MaxResults") or _PAGE))
        more = start + size < len(rows)
        return ActionResult(
            {
                "SpotPriceHistory": rows[start : start + size],
                "NextToken": str(start + size) if more else "",
            }
        )

    repairs.replace(SpotInstances, "describe_spot_price_history", describe_spot_price_history)

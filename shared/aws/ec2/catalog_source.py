"""Builds the catalog from instance types, zones and prices of AWS's APIs.

Source: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/price-list-api.html and
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html (2026-08).
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from shared.aws.ec2.catalog import write_catalog
from shared.aws.errors import translated
from shared.aws.session import Session
from shared.instance_types.building import build_catalog, format_catalog
from shared.instance_types.document import CatalogDocument
from shared.instance_types.instance_setup import DEFAULT_SETUP, InstanceSetup
from shared.model.errors import PermanentError
from shared.ports import Clock

_SOURCE: Final = "AWS Pricing API (on-demand, Linux) and EC2 spot price history"
_ATTEMPTS: Final = 5
_LINUX: Final = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]
_ON_DEMAND: Final[Mapping[str, str]] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "licenseModel": "No License required",
    "marketoption": "OnDemand",
}


class CatalogSource:
    """Reads facts, offerings and prices of the session's Region, and writes its catalog.

    Calls are retried: a refresh reads some hundred pages, and holds no lease.

    Args:
        session: Session in the Region to be read.
        pricing_region: Region whose endpoint serves the Pricing API.
        clock: Returns the date of the prices.
    """

    def __init__(
        self,
        session: Session,
        *,
        bucket: str,
        pricing_region: str,
        clock: Clock,
        setup: InstanceSetup = DEFAULT_SETUP,
    ) -> None:
        self._session = session.with_attempts(_ATTEMPTS)
        self._bucket = bucket
        self._pricing_region = pricing_region
        self._clock = clock
        self._setup = setup

    def refresh(self) -> str:
        """Write the Region's current catalog into the bucket; return its text.

        Raises:
            PermanentError: If no instance type has a price; the old catalog stays.
        """
        document = self.document()
        write_catalog(self._session, self._bucket, document)
        return format_catalog(document)

    def document(self) -> CatalogDocument:
        """Return the Region's current catalog.

        Raises:
            PermanentError: If no instance type has a price.
        """
        now = self._clock.now()
        found = build_catalog(
            facts=list(self.facts()),
            offerings=list(self.offerings()),
            on_demand_prices=self.on_demand_prices(),
            spot_prices=self.spot_prices(now),
            region=self._session.region,
            source=_SOURCE,
            date=now.date().isoformat(),
            setup=self._setup,
        )
        if not found["types"]:
            raise PermanentError(f"no instance type of {self._session.region} has a price")
        return found

    def facts(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of DescribeInstanceTypes."""
        yield from self._pages("ec2", "describe_instance_types", "InstanceTypes")

    def offerings(self) -> Iterator[tuple[str, str]]:
        """Yield (type, zone) of each offering."""
        pages = self._pages(
            "ec2",
            "describe_instance_type_offerings",
            "InstanceTypeOfferings",
            LocationType="availability-zone",
        )
        for row in pages:
            yield row["InstanceType"], row["Location"]

    def on_demand_prices(self) -> dict[str, str]:
        """Return dollars per hour by type, as the Pricing API writes them."""
        wanted = {**_ON_DEMAND, "regionCode": self._session.region}
        filters = [
            {"Type": "TERM_MATCH", "Field": key, "Value": value}
            for key, value in sorted(wanted.items())
        ]
        pages = self._pages(
            "pricing",
            "get_products",
            "PriceList",
            region=self._pricing_region,
            ServiceCode="AmazonEC2",
            Filters=filters,
            FormatVersion="aws_v1",
        )
        prices: dict[str, str] = {}
        for text in pages:
            product = json.loads(text)
            name = product["product"]["attributes"].get("instanceType", "")
            dollars = _hourly(product)
            if name and dollars:
                prices[name] = dollars
        return prices

    def spot_prices(self, now: datetime) -> dict[tuple[str, str], str]:
        """Return the latest dollars per hour by (type, zone)."""
        latest: dict[tuple[str, str], tuple[datetime, str]] = {}
        pages = self._pages(
            "ec2",
            "describe_spot_price_history",
            "SpotPriceHistory",
            StartTime=now,
            ProductDescriptions=_LINUX,
        )
        for row in pages:
            key = (row["InstanceType"], row["AvailabilityZone"])
            entry = (row["Timestamp"], row["SpotPrice"])
            latest[key] = max(latest.get(key, entry), entry)
        return {key: price for key, (_, price) in sorted(latest.items())}

    def _pages(
        self, service: str, operation: str, result: str, *, region: str = "", **request: Any
    ) -> Iterator[Any]:
        client = self._session.client(service, region=region)
        pages = iter(client.get_paginator(operation).paginate(**request))
        while True:
            with translated(f"{service} {operation}"):
                page = next(pages, None)
            if page is None:
                return
            yield from page[result]


def _hourly(product: Mapping[str, Any]) -> str:
    """Return dollars per hour of a product, empty when it has no hourly price above zero."""
    for _, term in sorted(product.get("terms", {}).get("OnDemand", {}).items()):
        for _, dimension in sorted(term["priceDimensions"].items()):
            dollars = str(dimension["pricePerUnit"].get("USD", ""))
            if dimension.get("unit") == "Hrs" and dollars.strip("0.") != "":
                return dollars
    return ""

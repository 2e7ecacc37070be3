"""Pricing GetProducts for EC2 on-demand Linux, from the price book.

Bare metal is a family of its own and sold with tenancy Dedicated as well as Shared, at one price:
Karpenter asks for the former, others for the latter. Other types have tenancy Shared alone here.

Source: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
(its example names the field `ServiceCode`, which the attribute is not called);
https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/pricing/pricing.go and
https://github.com/infracost/infracost/pull/3471 (bare metal; 2026-12).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from infra.local.aws.control import ServiceError
from infra.local.aws.ec2.catalog import type_facts
from infra.local.aws.ec2.world import World
from infra.local.ec2.request import dollars

TARGET: Final = "AWSPriceListService"
_PAGE: Final = 100

# The one kind of product there is; a filter on any of these with another value finds nothing.
_FIXED: Final[Mapping[str, str]] = {
    "servicecode": "AmazonEC2",
    "locationType": "AWS Region",
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "licenseModel": "No License required",
    "marketoption": "OnDemand",
    "operation": "RunInstances",
}
_FAMILY: Final = "Compute Instance"
_METAL: Final = "Compute Instance (bare metal)"
_SHARED: Final = "Shared"


def _family(instance_type: str) -> str:
    return _METAL if type_facts.facts(instance_type).get("BareMetal") else _FAMILY


def _tenancies(instance_type: str) -> tuple[str, ...]:
    return (_SHARED, "Dedicated") if _family(instance_type) == _METAL else (_SHARED,)


def _attributes(instance_type: str, region: str, tenancy: str) -> dict[str, str]:
    record = type_facts.facts(instance_type)
    mebibytes = int(record["MemoryInfo"]["SizeInMiB"])
    return {
        **_FIXED,
        "tenancy": tenancy,
        "instanceType": instance_type,
        "regionCode": region,
        "vcpu": str(type_facts.vcpus(instance_type)),
        "memory": f"{mebibytes / 1024:g} GiB",
        "currentGeneration": "Yes" if record.get("CurrentGeneration") else "No",
    }


def _product(instance_type: str, attributes: Mapping[str, str], price: str) -> str:
    tenancy = attributes["tenancy"].removeprefix(_SHARED)
    sku = f"LOCAL{instance_type.replace('.', '').replace('-', '')}{tenancy}".upper()
    term, rate = f"{sku}.JRTCKXETXF", f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    dimension = {
        "rateCode": rate,
        "unit": "Hrs",
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${price} per On Demand Linux {instance_type} Instance Hour (synthetic)",
        "appliesTo": [],
        "pricePerUnit": {"USD": price},
    }
    document = {
        "product": {
            "productFamily": _family(instance_type),
            "attributes": dict(attributes),
            "sku": sku,
        },
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {
                term: {
                    "sku": sku,
                    "offerTermCode": "JRTCKXETXF",
                    "termAttributes": {},
                    "priceDimensions": {rate: dimension},
                }
            }
        },
        "version": "local",
        "publicationDate": "2026-01-01T00:00:00Z",
    }
    return json.dumps(document)


def _passes(attributes: Mapping[str, str], filters: list[Mapping[str, str]]) -> bool:
    for entry in filters:
        if entry.get("Type") != "TERM_MATCH":
            raise ServiceError(
                "InvalidParameterException", f"filter type {entry.get('Type')!r}: use TERM_MATCH"
            )
        name, wanted = entry["Field"], entry["Value"]
        if name == "productFamily":
            found = _family(attributes["instanceType"])
        else:
            found = attributes.get("servicecode" if name.lower() == "servicecode" else name, "")
        if found.lower() != wanted.lower():
            return False
    return True


def products(world: World) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """Make the handler of `X-Amz-Target: AWSPriceListService.<operation>`.

    Answers GetProducts for AmazonEC2, by type name, 100 a page. Prices are those of the book
    whatever the Region asked for.
    """

    def handle(operation: str, body: dict[str, Any]) -> dict[str, Any]:
        if operation != "GetProducts":
            raise ServiceError("InvalidAction", f"Pricing {operation} is not emulated here")
        if body.get("ServiceCode") != "AmazonEC2":
            raise ServiceError("NotFoundException", f"service {body.get('ServiceCode')!r}: unknown")
        filters = body.get("Filters") or []
        region = next(
            (entry["Value"] for entry in filters if entry.get("Field") == "regionCode"),
            world.region,
        )
        found: list[tuple[str, dict[str, str]]] = []
        offered = {name for name, _ in type_facts.zonal_offerings(region)}
        for name in sorted(offered):
            for tenancy in _tenancies(name):
                attributes = _attributes(name, region, tenancy)
                if _passes(attributes, filters):
                    found.append((name, attributes))
        start = int(body.get("NextToken") or 0)
        size = min(_PAGE, int(body.get("MaxResults") or _PAGE))
        page = [
            _product(name, attributes, dollars(world.book.list_price(name)))
            for name, attributes in found[start : start + size]
        ]
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": page}
        if start + size < len(found):
            answer["NextToken"] = str(start + size)
        return answer

    return handle

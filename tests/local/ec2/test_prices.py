"""Prices and type listings."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infra.local.aws.control import ServiceError
from infra.local.aws.ec2.catalog.price_book import (
    PriceBook,
    computed_price,
    read_price_book,
    spot_percent,
)
from infra.local.ec2.request import dollars

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def history(account: Any, **request: Any) -> list[dict[str, Any]]:
    pages = account.ec2.get_paginator("describe_spot_price_history").paginate(**request)
    return [row for page in pages for row in page["SpotPriceHistory"]]


def get_products(account: Any, **body: Any) -> Any:
    return account.control.services["AWSPriceListService"](
        "GetProducts", {"ServiceCode": "AmazonEC2", **body}
    )


def term(field: str, value: str) -> dict[str, str]:
    return {"Type": "TERM_MATCH", "Field": field, "Value": value}


@pytest.mark.parametrize(
    ("name", "listed"), [("c5.large", 85_000), ("m5.large", 96_000), ("r5.large", 126_000)]
)
def test_computed_prices_are_close_to_the_families_they_were_fitted_to(
    name: str, listed: int
) -> None:
    assert abs(computed_price(name) - listed) / listed < 0.05


def test_spot_is_a_fixed_fraction_of_on_demand() -> None:
    book = PriceBook()
    found = {zone: spot_percent("m5.large", f"us-east-1{zone}") for zone in "abcdef"}
    assert all(28 <= percent <= 62 for percent in found.values())
    assert len(set(found.values())) > 1
    expected = book.list_price("m5.large") * found["a"] // 100
    assert book.price("m5.large", "us-east-1a", "spot") == expected


def test_a_catalogue_file_has_the_last_word(tmp_path: Path) -> None:
    offerings = [
        {"zone": "us-east-1a", "capacity_type": "on-demand", "price_micros_per_hour": 96_500},
        {"zone": "us-east-1a", "capacity_type": "spot", "price_micros_per_hour": 31_000},
    ]
    path = tmp_path / "us-east-1.json"
    path.write_text(
        json.dumps({"source": "test", "types": [{"name": "m5.large", "offerings": offerings}]})
    )
    book = read_price_book(path)
    assert book.list_price("m5.large") == 96_500
    assert book.price("m5.large", "us-east-1a", "spot") == 31_000
    assert book.price("m5.large", "us-east-1b", "on-demand") == 96_500
    assert book.price("c5.large", "us-east-1a", "on-demand") == computed_price("c5.large")
    assert read_price_book(tmp_path / "absent.json").on_demand == {}


def test_price_history_answers_current_prices(account: Any) -> None:
    rows = history(
        account,
        InstanceTypes=["m5.large", "c5.large"],
        ProductDescriptions=["Linux/UNIX"],
        StartTime=datetime.now(UTC),
        AvailabilityZone="us-east-1a",
    )
    assert [row["InstanceType"] for row in rows] == ["c5.large", "m5.large"]
    book = account.installation.world.book
    assert rows[1]["SpotPrice"] == dollars(book.price("m5.large", "us-east-1a", "spot"))
    assert rows[1]["ProductDescription"] == "Linux/UNIX"


def test_price_history_has_filters_and_pages(account: Any) -> None:
    request = {"Filters": [{"Name": "instance-type", "Values": ["m5.*"]}]}
    rows = history(account, **request)
    assert len(rows) > 20
    assert {row["InstanceType"].split(".")[0] for row in rows} == {"m5"}
    first = account.ec2.describe_spot_price_history(MaxResults=7, **request)
    assert len(first["SpotPriceHistory"]) == 7
    assert first["NextToken"]
    assert history(account, ProductDescriptions=["Windows"]) == []
    assert history(account, EndTime=datetime.now(UTC) - timedelta(days=90)) == []


def test_products_are_found_by_type_and_region(account: Any) -> None:
    answer = get_products(
        account,
        Filters=[
            term("regionCode", "us-east-1"),
            term("operatingSystem", "Linux"),
            term("tenancy", "Shared"),
            term("preInstalledSw", "NA"),
            term("capacitystatus", "Used"),
            term("productFamily", "Compute Instance"),
            term("instanceType", "m5.large"),
        ],
    )
    [product] = [json.loads(text) for text in answer["PriceList"]]
    assert product["product"]["attributes"]["instanceType"] == "m5.large"
    [offer] = product["terms"]["OnDemand"].values()
    [dimension] = offer["priceDimensions"].values()
    micros = account.installation.world.book.list_price("m5.large")
    assert dimension["pricePerUnit"]["USD"] == dollars(micros)
    assert get_products(account, Filters=[term("operatingSystem", "Windows")])["PriceList"] == []


@pytest.mark.parametrize(
    ("family", "tenancy", "found"),
    [
        ("Compute Instance", "Shared", ["m5.large"]),
        ("Compute Instance", "Dedicated", []),
        ("Compute Instance (bare metal)", "Shared", ["m5.metal"]),
        ("Compute Instance (bare metal)", "Dedicated", ["m5.metal"]),
    ],
)
def test_bare_metal_is_a_family_of_its_own_and_sold_as_dedicated_too(
    account: Any, family: str, tenancy: str, found: list[str]
) -> None:
    asked = [term("serviceCode", "AmazonEC2"), term("productFamily", family)]
    asked.append(term("tenancy", tenancy))
    products = [
        json.loads(text)["product"]
        for name in ("m5.large", "m5.metal")
        for text in get_products(account, Filters=[*asked, term("instanceType", name)])["PriceList"]
    ]
    assert [row["attributes"]["instanceType"] for row in products] == found
    assert {(row["productFamily"], row["attributes"]["tenancy"]) for row in products} <= {
        (family, tenancy)
    }


@pytest.mark.parametrize("name", ["servicecode", "serviceCode", "ServiceCode"])
def test_the_service_is_a_filter_in_any_case(account: Any, name: str) -> None:
    here = [term("instanceType", "m5.large"), term(name, "AmazonEC2")]
    assert len(get_products(account, Filters=here)["PriceList"]) == 1
    assert get_products(account, Filters=[term(name, "AmazonRDS")])["PriceList"] == []


def test_products_come_in_pages(account: Any) -> None:
    here = [term("regionCode", "us-east-1")]
    page = get_products(account, Filters=here)
    total = len(page["PriceList"])
    while "NextToken" in page:
        assert len(page["PriceList"]) == 100
        page = get_products(account, Filters=here, NextToken=page["NextToken"])
        total += len(page["PriceList"])
    assert total > 1_000


def test_pricing_refuses_what_it_lacks(account: Any) -> None:
    with pytest.raises(ServiceError) as refusal:
        get_products(account, ServiceCode="AmazonRDS")
    assert refusal.value.code == "NotFoundException"


def test_type_listing_is_paged_and_made_once(account: Any) -> None:
    request = {"Filters": [{"Name": "instance-type", "Values": ["m5.*", "c5.*"]}]}
    found = account.ec2.describe_instance_types(MaxResults=5, **request)
    assert [row["InstanceType"] for row in found["InstanceTypes"]][:2] == [
        "c5.12xlarge",
        "c5.18xlarge",
    ]
    again = account.ec2.describe_instance_types(MaxResults=5, **request)
    assert again["InstanceTypes"] == found["InstanceTypes"]
    rest = account.ec2.describe_instance_types(
        MaxResults=5, NextToken=found["NextToken"], **request
    )
    assert rest["InstanceTypes"][0] != found["InstanceTypes"][0]


def test_offerings_take_wildcards(account: Any) -> None:
    rows = account.ec2.describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[
            {"Name": "instance-type", "Values": ["c5.*"]},
            {"Name": "location", "Values": ["us-east-1a"]},
        ],
    )["InstanceTypeOfferings"]
    assert len(rows) > 5
    assert {row["Location"] for row in rows} == {"us-east-1a"}

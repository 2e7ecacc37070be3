import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from shared.aws.ec2.catalog import BucketCatalog, catalog_written_at, write_catalog
from shared.aws.ec2.catalog_source import CatalogSource
from shared.aws.session import Session
from shared.instance_types.building import format_catalog
from shared.instance_types.catalog import embedded_text, load_catalog
from shared.instance_types.document import CatalogDocument
from shared.instance_types.instance_setup import InstanceSetup
from shared.instance_types.pod_addresses import PodNetwork
from shared.model.ec2.instance_types import CapacityType, Offering
from shared.model.errors import PermanentError, UnavailableError
from tests.contract.aws.canned import canned
from tests.contract.aws.values import REGION
from tests.fakes.clock import FakeClock

MINUTE = timedelta(minutes=1)


@cache
def embedded() -> str:
    return embedded_text()


def few_types(count: int, date: str = "2026-11-01") -> CatalogDocument:
    document: CatalogDocument = json.loads(embedded())
    return {**document, "date": date, "types": document["types"][:count]}


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def catalog(aws: Session, bucket: str, clock: FakeClock, notices: list[str]) -> BucketCatalog:
    return BucketCatalog(aws, bucket=bucket, clock=clock, notice=notices.append)


def test_the_buckets_catalogue_is_read(
    aws: Session, bucket: str, catalog: BucketCatalog, notices: list[str]
) -> None:
    write_catalog(aws, bucket, few_types(3))
    assert len(catalog.instance_types()) == 3
    assert catalog.catalog().date == "2026-11-01"
    assert notices == []


def test_a_newer_catalogue_is_used_after_five_minutes(
    aws: Session, bucket: str, catalog: BucketCatalog, clock: FakeClock
) -> None:
    write_catalog(aws, bucket, few_types(3))
    first = catalog.catalog()
    with canned(aws, "s3", "GetObject") as asked:
        clock.advance(5 * MINUTE)
        assert catalog.catalog() is first  # unchanged: S3 said so, and nothing was parsed
        write_catalog(aws, bucket, few_types(4))
        clock.advance(5 * MINUTE - timedelta(seconds=1))
        assert catalog.catalog() is first
        assert len(asked) == 1
        clock.advance(timedelta(seconds=1))
        assert len(catalog.instance_types()) == 4


def test_without_one_the_embedded_catalogue_is_used_and_reported(
    aws: Session, bucket: str, catalog: BucketCatalog, clock: FakeClock, notices: list[str]
) -> None:
    assert catalog.instance_types() == load_catalog(embedded()).instance_types
    assert len(notices) == 1
    assert notices[0].endswith("until dovetail-refresh-catalog, which runs each hour, writes one")
    write_catalog(aws, bucket, few_types(2))
    clock.advance(5 * MINUTE)
    assert len(catalog.instance_types()) == 2


def test_in_another_region_than_the_embedded_one_s_nothing_can_be_bought_without_a_catalogue(
    aws: Session, bucket: str, clock: FakeClock, notices: list[str]
) -> None:
    there = Session(region="eu-west-1")
    catalog = BucketCatalog(there, bucket=bucket, clock=clock, notice=notices.append)
    assert catalog.instance_types() == ()
    assert catalog.problem() == notices[0]
    assert "nothing can be bought in eu-west-1: there is no catalogue (s3://" in notices[0]
    assert len(notices) == 1
    with pytest.raises(PermanentError, match="eu-west-1"):
        catalog.catalog()
    assert catalog_written_at(there, bucket) is None

    body = format_catalog(few_types(2)).encode()
    aws.client("s3").put_object(Bucket=bucket, Key="catalog/eu-west-1.json", Body=body)
    clock.advance(timedelta(seconds=30))
    assert catalog.instance_types() == ()
    assert f"is of {REGION}" in catalog.problem()

    write_catalog(aws, bucket, {**few_types(3), "region": "eu-west-1"})
    clock.advance(timedelta(seconds=30))
    assert len(catalog.instance_types()) == 3
    assert catalog.problem() == ""
    assert catalog_written_at(there, bucket) is not None


def test_one_that_cannot_be_read_leaves_the_last_good_one_in_use(
    aws: Session, bucket: str, catalog: BucketCatalog, clock: FakeClock, notices: list[str]
) -> None:
    write_catalog(aws, bucket, few_types(2))
    catalog.instance_types()
    aws.client("s3").put_object(Bucket=bucket, Key=f"catalog/{REGION}.json", Body=b"{]")
    clock.advance(5 * MINUTE)
    assert len(catalog.instance_types()) == 2
    assert "cannot be read" in notices[0]


def test_while_s3_is_away_the_last_one_stays_in_use(
    aws: Session, bucket: str, catalog: BucketCatalog, clock: FakeClock, notices: list[str]
) -> None:
    write_catalog(aws, bucket, few_types(2))
    with (
        canned(aws, "s3", "GetObject", (503, "ServiceUnavailable")),
        pytest.raises(UnavailableError),
    ):
        catalog.instance_types()
    catalog.instance_types()
    clock.advance(5 * MINUTE)
    with canned(aws, "s3", "GetObject", (503, "ServiceUnavailable")):
        assert len(catalog.instance_types()) == 2
    assert len(notices) == 1


def product(name: str, dollars: str, unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "pricePerUnit": {"USD": dollars}}
    term = {"priceDimensions": {"r": dimension}}
    attributes = {"instanceType": name} if name else {}
    return json.dumps({"product": {"attributes": attributes}, "terms": {"OnDemand": {"t": term}}})


def fact(name: str) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "BareMetal": False,
        "Hypervisor": "nitro",
        "SupportedVirtualizationTypes": ["hvm"],
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "Intel"},
        "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": 8192},
        "NetworkInfo": {
            "MaximumNetworkInterfaces": 3,
            "Ipv4AddressesPerInterface": 10,
            "EncryptionInTransitSupported": True,
            "NetworkPerformance": "Up to 10 Gigabit",
        },
    }


@pytest.fixture
def source(
    aws: Session, bucket: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> CatalogSource:
    # The shared clients: making patient ones takes longer than the tests.
    monkeypatch.setattr(Session, "with_attempts", lambda self, attempts: self)
    return CatalogSource(aws, bucket=bucket, pricing_region=REGION, clock=clock)


def test_the_catalogue_is_made_of_answers_of_aws(
    aws: Session, bucket: str, source: CatalogSource, clock: FakeClock
) -> None:
    zones = [
        {"InstanceType": "m5.large", "Location": zone} for zone in ("us-east-1a", "us-east-1b")
    ]
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    spot = [
        {
            "InstanceType": "m5.large",
            "AvailabilityZone": "us-east-1a",
            "Timestamp": at,
            "SpotPrice": price,
        }
        for at, price in ((old, "0.05"), (new, "0.04"), (old, "0.06"))
    ]
    prices = [
        product("m5.large", "0.0960000000"),
        product("m5.large", "0.0000000000"),
        product("m5.large", "9.0", unit="Quantity"),
        product("", "7.0"),
    ]
    with (
        canned(
            aws,
            "ec2",
            "DescribeInstanceTypes",
            {"InstanceTypes": [fact("m5.large")], "NextToken": "more"},
            {"InstanceTypes": [fact("m5.xlarge")]},
        ),
        canned(aws, "ec2", "DescribeInstanceTypeOfferings", {"InstanceTypeOfferings": zones}),
        canned(aws, "ec2", "DescribeSpotPriceHistory", {"SpotPriceHistory": spot}),
        canned(
            aws,
            "pricing",
            "GetProducts",
            {"PriceList": prices[:1], "NextToken": "more"},
            {"PriceList": prices[1:]},
        ),
    ):
        text = source.refresh()
    (one,) = load_catalog(text).instance_types
    assert one.name == "m5.large"
    assert one.offerings == (
        Offering(zone="us-east-1a", capacity_type=CapacityType.SPOT, price_micros_per_hour=40_000),
        *(
            Offering(zone=zone, capacity_type=CapacityType.ON_DEMAND, price_micros_per_hour=96_000)
            for zone in ("us-east-1a", "us-east-1b")
        ),
    )
    written = BucketCatalog(aws, bucket=bucket, clock=clock).catalog()
    assert written == load_catalog(text)
    assert written.region == REGION
    assert written.date == "2026-01-01"


def test_a_refresh_without_prices_leaves_the_old_catalogue(
    aws: Session, bucket: str, source: CatalogSource, catalog: BucketCatalog
) -> None:
    write_catalog(aws, bucket, few_types(2))
    with (
        canned(aws, "ec2", "DescribeInstanceTypes", {"InstanceTypes": [fact("m5.large")]}),
        canned(aws, "ec2", "DescribeInstanceTypeOfferings", {"InstanceTypeOfferings": []}),
        canned(aws, "ec2", "DescribeSpotPriceHistory", {"SpotPriceHistory": []}),
        canned(aws, "pricing", "GetProducts", {"PriceList": []}),
        pytest.raises(PermanentError, match="no instance type"),
    ):
        source.refresh()
    assert len(catalog.instance_types()) == 2


def test_denied_price_list_is_reported(aws: Session, source: CatalogSource) -> None:
    with (
        canned(aws, "pricing", "GetProducts", (400, "AccessDeniedException")),
        pytest.raises(PermanentError),
    ):
        source.on_demand_prices()


def test_the_catalogue_counts_pods_as_the_network_of_the_clusters_has_them(
    aws: Session, bucket: str, clock: FakeClock, source: CatalogSource
) -> None:
    setup = InstanceSetup(network=PodNetwork(prefix_delegation=True, pod_interfaces=True))
    other = CatalogSource(aws, bucket=bucket, pricing_region=REGION, clock=clock, setup=setup)
    told = {}
    for name, catalog_source in (("single", source), ("prefixes", other)):
        with (
            canned(aws, "ec2", "DescribeInstanceTypes", {"InstanceTypes": [fact("m5.large")]}),
            canned(
                aws,
                "ec2",
                "DescribeInstanceTypeOfferings",
                {"InstanceTypeOfferings": [{"InstanceType": "m5.large", "Location": "us-east-1a"}]},
            ),
            canned(aws, "ec2", "DescribeSpotPriceHistory", {"SpotPriceHistory": []}),
            canned(aws, "pricing", "GetProducts", {"PriceList": [product("m5.large", "0.096")]}),
        ):
            (told[name],) = catalog_source.document()["types"]
    assert [told[name]["max_pods"] for name in told] == [29, 110]
    assert "extended" not in told["single"]
    assert told["prefixes"]["extended"] == {"vpc.amazonaws.com/pod-eni": 9}

import json
from typing import Any

from shared.instance_types.building import build_catalog, format_catalog
from shared.instance_types.catalog import load_catalog
from shared.instance_types.document import CatalogDocument
from tests.unit.instance_types.catalog_rows import fact, gpus


def build(**changes: Any) -> CatalogDocument:
    arguments: dict[str, Any] = {
        "facts": [fact("m5.xlarge", vcpus=4, memory_mib=16384), fact("m5.large")],
        "offerings": [("m5.large", "z1"), ("m5.large", "z2"), ("m5.xlarge", "z1")],
        "on_demand_prices": {"m5.large": 0.096, "m5.xlarge": "0.1920000000"},
        "spot_prices": {("m5.large", "z2"): 0.04, ("m5.large", "z1"): "0.05"},
        "region": "r1",
        "source": "a test",
        "date": "2026-01-31",
    }
    return build_catalog(**(arguments | changes))


def test_types_are_sorted_by_name_and_offerings_by_price() -> None:
    types = build()["types"]
    assert [row["name"] for row in types] == ["m5.large", "m5.xlarge"]
    assert types[0]["offerings"] == [
        {"zone": "z2", "capacity_type": "spot", "price_micros_per_hour": 40_000},
        {"zone": "z1", "capacity_type": "spot", "price_micros_per_hour": 50_000},
        {"zone": "z1", "capacity_type": "on-demand", "price_micros_per_hour": 96_000},
        {"zone": "z2", "capacity_type": "on-demand", "price_micros_per_hour": 96_000},
    ]


def test_the_flat_overhead_is_the_sum_of_its_parts() -> None:
    row = build()["types"][0]
    assert row["overhead"] == {"cpu": "70m", "memory": "1289Mi", "ephemeral-storage": "3221225504"}
    assert row["vm_overhead_mib"] == 615
    assert row["kube_reserved"] == {"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"}
    assert row["eviction_threshold"] == {"memory": "100Mi", "ephemeral-storage": "2147483680"}
    assert (row["vcpus"], row["memory_mib"], row["max_pods"]) == (2, 8192, 29)


def test_what_cannot_be_bought_or_cannot_run_linux_is_left_out() -> None:
    facts = [
        fact("m5.large"),
        fact("m5.nowhere"),
        fact("m5.free"),
        fact("mac2.metal", arch="arm64_mac"),
        fact("p9.block", usage=("capacity-block",)),
    ]
    names = [row["InstanceType"] for row in facts]
    document = build(
        facts=facts,
        offerings=[(name, "z1") for name in [*names, "m5.unknown"] if name != "m5.nowhere"],
        on_demand_prices={name: 0.0 if name == "m5.free" else 1 for name in names},
        spot_prices={(name, "z1"): 0 if name == "m5.free" else 0.5 for name in names},
    )
    assert [row["name"] for row in document["types"]] == ["m5.large"]


def test_a_type_that_only_spot_prices_know_is_offered_as_spot() -> None:
    row = build(on_demand_prices={})["types"][0]
    assert {way["capacity_type"] for way in row["offerings"]} == {"spot"}


def test_repair_marks_what_it_derived_and_nothing_else() -> None:
    table = {"m5.large": 0.096, "m5.xlarge": 0.0}
    assert [row["name"] for row in build(on_demand_prices=table)["types"]] == ["m5.large"]
    large, xlarge = build(on_demand_prices=table, repair=True)["types"]
    assert not any("interpolated" in way for way in large["offerings"])
    assert xlarge["offerings"] == [
        {
            "zone": "z1",
            "capacity_type": "on-demand",
            "price_micros_per_hour": 192_000,
            "interpolated": True,
        }
    ]


def test_the_text_has_one_line_per_type_and_reads_back_whole() -> None:
    document = build(facts=[fact("m5.large"), fact("g4dn.xlarge", GpuInfo=gpus("T4", "NVIDIA", 1))])
    text = format_catalog(document)
    assert json.loads(text) == document
    assert len(text.splitlines()) == 2 + len(document["types"])
    assert text.endswith("]}\n")
    catalog = load_catalog(text)
    assert (catalog.region, catalog.source, catalog.date) == ("r1", "a test", "2026-01-31")
    assert json.loads(format_catalog(build(facts=[])))["types"] == []


def test_an_iterator_of_facts_is_read_once() -> None:
    assert build(facts=iter([fact("m5.large")]), repair=True) == build(
        facts=[fact("m5.large")], repair=True
    )

import subprocess
import sys
from pathlib import Path

import pytest

import tools.generate_catalog as generator
from shared.instance_types.catalog import Catalog, embedded_catalog, embedded_text
from shared.instance_types.summary import summarize
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.resources import Resources

MIB = 2**20
ZONES = tuple(f"us-east-1{letter}" for letter in "abcdef")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return embedded_catalog()


def named(catalog: Catalog, name: str) -> InstanceType:
    found = catalog.get(name)
    assert found is not None
    return found


def on_demand_micros(catalog: Catalog, name: str) -> int:
    ways = named(catalog, name).offerings
    (micros,) = {
        way.price_micros_per_hour for way in ways if way.capacity_type is CapacityType.ON_DEMAND
    }
    return micros


@pytest.mark.parametrize(
    ("name", "cpu_millis", "memory_mib", "pods", "gpu_count"),
    [
        ("m5.large", 1930, 6903, 29, 0),
        ("c5.12xlarge", 47810, 88002, 234, 0),
        ("g4dn.xlarge", 3920, 14481, 29, 1),
    ],
)
def test_known_types_have_the_published_allocatable(
    catalog: Catalog, name: str, cpu_millis: int, memory_mib: int, pods: int, gpu_count: int
) -> None:
    one = named(catalog, name)
    left = one.allocatable
    assert (left["cpu"], left["memory"]) == (cpu_millis, memory_mib * MIB)
    assert (left["pods"], left["nvidia.com/gpu"]) == (pods, gpu_count)


def test_every_price_is_above_zero_and_spot_is_below_on_demand(catalog: Catalog) -> None:
    for instance_type in catalog.instance_types:
        prices = {
            (w.zone, w.capacity_type): w.price_micros_per_hour for w in instance_type.offerings
        }
        assert all(micros > 0 for micros in prices.values()), instance_type.name
        for (zone, capacity_type), micros in prices.items():
            if capacity_type is CapacityType.SPOT:
                assert micros < prices[zone, CapacityType.ON_DEMAND], (instance_type.name, zone)
                assert micros > 0.22 * prices[zone, CapacityType.ON_DEMAND], (
                    instance_type.name,
                    zone,
                )


def test_prices_are_near_linear_in_size_within_a_family(catalog: Catalog) -> None:
    for family in ("m5", "c5", "r5", "m6i", "c7g", "r6g"):
        names = [o.name for o in catalog.instance_types if o.name.startswith(f"{family}.")]
        rates = [
            on_demand_micros(catalog, name) * 1000 / named(catalog, name).capacity["cpu"]
            for name in names
        ]
        assert len(rates) > 5
        assert max(rates) < 1.03 * min(rates), family


def test_the_outliers_of_the_price_table_are_gone(catalog: Catalog) -> None:
    wanted = {"m5.large": 96_000, "r5.large": 126_000, "g5.xlarge": 1_006_000, "t3.large": 83_200}
    assert {name: on_demand_micros(catalog, name) for name in wanted} == wanted
    assert all(
        way.interpolated
        for way in named(catalog, "r5.large").offerings
        if way.capacity_type is CapacityType.ON_DEMAND
    )


def test_zones_labels_and_capacity_are_complete(catalog: Catalog) -> None:
    common = {keys.INSTANCE_TYPE, keys.ARCH, keys.OS, keys.REGION, keys.INSTANCE_FAMILY}
    common |= {keys.INSTANCE_SIZE, keys.INSTANCE_CPU, keys.INSTANCE_MEMORY, keys.INSTANCE_PODS}
    for instance_type in catalog.instance_types:
        assert common <= set(instance_type.labels) <= keys.WELL_KNOWN
        assert {way.zone for way in instance_type.offerings} <= set(ZONES)
        assert Resources.of(cpu=1, memory=1, pods=1).fits(instance_type.allocatable), (
            instance_type.name
        )
    assert {instance_type.labels[keys.ARCH] for instance_type in catalog.instance_types} == {
        "amd64",
        "arm64",
    }
    assert [instance_type.name for instance_type in catalog.instance_types] == sorted(
        instance_type.name for instance_type in catalog.instance_types
    )


def test_date_and_sources_are_shown_and_spot_is_called_synthetic(catalog: Catalog) -> None:
    summary = summarize(catalog)
    assert summary.type_count > 800
    assert 0 < summary.interpolated_count < summary.type_count // 2
    for word in ("moto", "apache-libcloud", "us-west-2", "synthetic"):
        assert word in str(summary)
    assert catalog.region == "us-east-1"


def test_the_file_is_what_the_generator_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main(["--check"]) == 0
    target = tmp_path / "new" / "catalog.json"
    assert generator.main(["--check", "--output", str(target)]) == 1
    assert generator.main(["--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == embedded_text()
    assert "instance types in us-east-1" in capsys.readouterr().out
    assert len(embedded_text()) < 3_000_000


def test_the_generator_names_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="moto is not installed"):
        generator.generate()


def test_a_cold_process_reads_the_catalogue_without_heavy_packages() -> None:
    code = (
        "import sys; from shared.instance_types.catalog import *; embedded_catalog(); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=generator.ROOT, capture_output=True, text=True
    )
    heavy = {"boto3", "botocore", "pydantic", "yaml", "kubernetes", "aws_lambda_powertools"}
    loaded = set(ran.stdout.split())
    assert "shared" in loaded
    assert not loaded & heavy

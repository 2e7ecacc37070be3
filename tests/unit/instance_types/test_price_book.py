from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.instance_types.price_book import (
    TOLERANCE,
    Price,
    listed_prices,
    repaired_prices,
    to_micros,
)
from tests.unit.instance_types.catalog_rows import fact, gpus

SIZES = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32, "12xlarge": 48}


def family(name: str, gib_per_vcpu: int = 4) -> list[dict[str, Any]]:
    return [
        fact(f"{name}.{size}", vcpus=vcpus, memory_mib=vcpus * gib_per_vcpu * 1024)
        for size, vcpus in SIZES.items()
    ]


def g5(size: str, vcpus: int, count: int) -> dict[str, Any]:
    return fact(f"g5.{size}", vcpus=vcpus, GpuInfo=gpus("A10G", "NVIDIA", count))


def test_a_price_is_rounded_to_whole_micro_dollars() -> None:
    assert to_micros("0.0960000000") == 96_000
    assert to_micros(0.17015) == 170_150
    assert to_micros(-1) == 0
    assert [to_micros(text) for text in ("", "n/a", "nan", "1/0")] == [0, 0, 0, 0]


def test_a_trusted_table_is_used_as_it_is_but_for_rows_not_above_zero() -> None:
    table: dict[str, str | float] = {"b": 0.1, "a": "5", "zero": 0.0, "less": -1, "none": ""}
    listed = listed_prices(table)
    assert listed == {"a": Price(micros_per_hour=5_000_000), "b": Price(micros_per_hour=100_000)}
    assert list(listed) == ["a", "b"]


def test_zeros_and_outliers_get_the_rate_of_their_family() -> None:
    table = {
        "m5.large": 0.102,
        "m5.xlarge": 0.192,
        "m5.2xlarge": 0.0,
        "m5.4xlarge": 0.768,
        "m5.8xlarge": 1.536,
    }
    prices = repaired_prices(family("m5"), table)
    assert prices == {
        "m5.large": Price(micros_per_hour=96_000, interpolated=True),
        "m5.xlarge": Price(micros_per_hour=192_000),
        "m5.2xlarge": Price(micros_per_hour=384_000, interpolated=True),
        "m5.4xlarge": Price(micros_per_hour=768_000),
        "m5.8xlarge": Price(micros_per_hour=1_536_000),
        "m5.12xlarge": Price(micros_per_hour=2_304_000, interpolated=True),
    }


def test_families_without_a_usable_price_are_left_out() -> None:
    facts = family("m5") + family("m9")
    assert repaired_prices(facts, {"m5.large": 0.1, "m9.large": 0.0}).keys() == {
        f"m5.{size}" for size in SIZES
    }


def test_burstable_types_are_priced_by_memory() -> None:
    sizes = {"micro": 1, "small": 2, "medium": 4, "large": 8}
    facts = [fact(f"t3.{size}", memory_mib=gib * 1024) for size, gib in sizes.items()]
    facts.append(fact("t3.xlarge", vcpus=4, memory_mib=16 * 1024))
    table = {"t3.micro": 0.0104, "t3.small": 0.0208, "t3.medium": 0.0416, "t3.xlarge": 0.1664}
    prices = repaired_prices(facts, table)
    assert prices["t3.large"] == Price(micros_per_hour=83_200, interpolated=True)
    assert sum(price.interpolated for price in prices.values()) == 1


def test_gpu_types_are_priced_by_vcpus_and_gpus() -> None:
    facts = [g5("xlarge", 4, 1), g5("2xlarge", 8, 1), g5("4xlarge", 16, 1), g5("12xlarge", 48, 4)]
    facts.append(g5("24xlarge", 96, 4))
    table = {"g5.2xlarge": 1.212, "g5.4xlarge": 1.624, "g5.12xlarge": 6.2392, "g5.24xlarge": 8.144}
    prices = repaired_prices(facts, table)
    assert prices["g5.xlarge"] == Price(micros_per_hour=1_006_000, interpolated=True)
    assert prices["g5.12xlarge"] == Price(micros_per_hour=5_672_000, interpolated=True)
    assert not prices["g5.24xlarge"].interpolated


def test_the_only_price_of_a_gpu_family_is_scaled_by_gpus() -> None:
    facts = [fact("p5.4xlarge", vcpus=16, GpuInfo=gpus("H100", "NVIDIA", 1))]
    facts.append(fact("p5.48xlarge", vcpus=192, GpuInfo=gpus("H100", "NVIDIA", 8)))
    prices = repaired_prices(facts, {"p5.48xlarge": 80.0})
    assert prices["p5.4xlarge"] == Price(micros_per_hour=10_000_000, interpolated=True)


def test_a_size_without_gpus_is_not_priced_by_gpus() -> None:
    facts = [fact("x1.large", vcpus=2), fact("x1.xlarge", vcpus=4, GpuInfo=gpus("A", "AMD", 1))]
    prices = repaired_prices(facts, {"x1.xlarge": 0.4})
    assert prices["x1.large"] == Price(micros_per_hour=200_000, interpolated=True)


def test_gpus_that_would_lower_the_price_explain_nothing() -> None:
    facts = [g5("xlarge", 4, 1), g5("2xlarge", 4, 2), g5("4xlarge", 8, 2), g5("8xlarge", 8, 4)]
    table = {"g5.xlarge": 0.4, "g5.2xlarge": 0.3, "g5.4xlarge": 0.8}
    prices = repaired_prices(facts, table)
    assert prices["g5.8xlarge"] == Price(micros_per_hour=1_600_000, interpolated=True)
    assert prices["g5.2xlarge"] == Price(micros_per_hour=800_000, interpolated=True)


def test_of_two_halves_the_cheaper_one_is_believed() -> None:
    table = {"c7g.large": 0.077, "c7g.xlarge": 0.1541, "c7g.2xlarge": 0.29, "c7g.4xlarge": 0.58}
    prices = repaired_prices(family("c7g", 2), table)
    assert prices["c7g.large"] == Price(micros_per_hour=72_500, interpolated=True)
    assert prices["c7g.4xlarge"] == Price(micros_per_hour=580_000)


@pytest.mark.parametrize("tiny", [1e-6, 1e-9])
def test_no_price_is_ever_zero(tiny: float) -> None:
    facts = [fact("m5.large", vcpus=2), fact("m5.metal", vcpus=1, memory_mib=1)]
    prices = repaired_prices(facts, {"m5.large": tiny})
    assert all(price.micros_per_hour >= 1 for price in prices.values())


@given(
    rate=st.integers(1_000, 500_000),
    wrong=st.dictionaries(st.sampled_from(sorted(SIZES)), st.floats(0, 3), max_size=2),
)
def test_a_minority_of_wrong_rows_never_moves_a_family(rate: int, wrong: dict[str, float]) -> None:
    facts = family("m5")
    truth = {f"m5.{size}": rate * vcpus for size, vcpus in SIZES.items()}
    table = {name: micros / 1e6 for name, micros in truth.items()}
    for size, factor in wrong.items():
        table[f"m5.{size}"] *= factor
    for name, price in repaired_prices(facts, table).items():
        assert abs(price.micros_per_hour - truth[name]) <= truth[name] * TOLERANCE + 1


@given(
    prices=st.dictionaries(
        st.sampled_from([f"{f}.{size}" for f in ("m5", "m6", "m7") for size in SIZES]),
        st.one_of(st.floats(-1, 100), st.just("bad")),
    ),
    seed=st.randoms(use_true_random=False),
)
def test_every_price_is_above_zero_and_order_does_not_matter(
    prices: dict[str, float | str], seed: Any
) -> None:
    facts = family("m5") + family("m6") + family("m7")
    repaired = repaired_prices(facts, prices)
    seed.shuffle(facts)
    shuffled = dict(seed.sample(sorted(prices.items()), len(prices)))
    assert repaired_prices(facts, shuffled) == repaired
    assert all(price.micros_per_hour > 0 for price in repaired.values())
    assert {name.split(".")[0] for name in repaired} == {
        name.split(".")[0] for name in listed_prices(prices)
    }

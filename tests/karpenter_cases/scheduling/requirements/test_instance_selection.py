"""The cheapest of what a pod and its provisioner leave, all at once.

Prices do not follow size: each type here has its own, so what is cheapest cannot be guessed.
"""

from itertools import product
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from tests.karpenter_cases.scheduling.market import ZONES, B, machine
from tests.karpenter_cases.scheduling.outcome import alone
from tests.karpenter_cases.scheduling.writing import Expression, provisioner

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND
ARCH, ZONE, KIND = keys.ARCH, keys.ZONE, keys.CAPACITY_TYPE


def _market() -> tuple[InstanceType, ...]:
    """Return types of every architecture, size, zone and way to pay, one offering each."""
    found = []
    combinations = product(("amd64", "arm64"), (1, 4, 9), ZONES, (SPOT, ON_DEMAND))
    for number, (arch, cores, zone, kind) in enumerate(combinations):
        price = 100 + number * 7 % 37 * 10 + cores
        family = "m5" if arch == "amd64" else "c6"
        found.append(
            machine(
                f"{family}.x{number}",
                cores,
                2 * cores,
                price,
                arch=arch,
                zones=(zone,),
                sold_as=(kind,),
                spot_price=price,
            )
        )
    return tuple(found)


MARKET = _market()


def cheapest(wanted: dict[str, str], cpu_millis: int = 500) -> int:
    """Return the lowest price of what has these labels and leaves pods that much."""
    names = {"arch": ARCH, "zone": ZONE, "kind": KIND}
    prices = []
    for instance_type in MARKET:
        for way in instance_type.offerings:
            labels = {**instance_type.labels, ZONE: way.zone, KIND: way.capacity_type.value}
            if instance_type.allocatable["cpu"] >= cpu_millis and all(
                labels[names[name]] == value for name, value in wanted.items()
            ):
                prices.append(way.price_micros_per_hour)
    return min(prices)


def terms(**wanted: str) -> list[Expression]:
    names = {"arch": ARCH, "zone": ZONE, "kind": KIND, "system": keys.OS}
    return [(names[name], "In", value) for name, value in wanted.items()]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param({}, {}, id="any"),
        pytest.param({}, {"arch": "amd64"}, id="pod-amd64"),
        pytest.param({}, {"arch": "arm64"}, id="pod-arm64"),
        pytest.param({"arch": "amd64"}, {}, id="owner-amd64"),
        pytest.param({"arch": "arm64"}, {}, id="owner-arm64"),
        pytest.param({}, {"system": "linux"}, id="pod-linux"),
        pytest.param({"system": "linux"}, {"system": "linux"}, id="both-linux"),
        pytest.param({"zone": B}, {}, id="owner-zone"),
        pytest.param({}, {"zone": B}, id="pod-zone"),
        pytest.param({"kind": "spot"}, {}, id="owner-spot"),
        pytest.param({}, {"kind": "spot"}, id="pod-spot"),
        pytest.param({"kind": "on-demand", "zone": "zone-a"}, {}, id="owner-on-demand-zone"),
        pytest.param({}, {"kind": "spot", "zone": "zone-a"}, id="pod-spot-zone"),
        pytest.param({"kind": "spot"}, {"zone": B}, id="owner-spot-pod-zone"),
        pytest.param(
            {"kind": "spot", "zone": B},
            {"arch": "amd64", "system": "linux"},
            id="owner-spot-zone-pod-amd64",
        ),
        pytest.param(
            {}, {"kind": "spot", "zone": B, "arch": "amd64", "system": "linux"}, id="pod-all"
        ),
    ],
)
def test_the_cheapest_that_both_allow_is_bought(
    ours: dict[str, str], theirs: dict[str, str]
) -> None:
    words: dict[str, Any] = {"required": [terms(**theirs)]} if theirs else {}
    outcome = alone(words, market=MARKET, provisioners=(provisioner("default", *terms(**ours)),))
    wanted = {k: v for k, v in {**ours, **theirs}.items() if k != "system"}
    first = outcome.options()[0]
    assert first.price_micros_per_hour == cheapest(wanted) == outcome.plan.cost_micros_per_hour
    for key, _, value in terms(**wanted):
        assert outcome.values(key) == {value}


WITHOUT_ARM = tuple(
    instance_type for instance_type in MARKET if instance_type.labels[ARCH] == "amd64"
)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param({}, {"arch": "arm64"}, id="pod-arch"),
        pytest.param({}, {"arch": "arm64", "zone": B}, id="pod-arch-zone"),
        pytest.param({"arch": "arm64"}, {"zone": B}, id="owner-arch-pod-zone"),
    ],
)
def test_what_no_type_is_stays_pending(ours: dict[str, str], theirs: dict[str, str]) -> None:
    owner = provisioner("default", *terms(**ours))
    outcome = alone({"required": [terms(**theirs)]}, market=WITHOUT_ARM, provisioners=(owner,))
    assert outcome.new == ()
    assert list(outcome.pending) == ["a"]


@pytest.mark.parametrize("cores", [1, 3, 8])
def test_the_cheapest_that_is_large_enough_is_bought(cores: int) -> None:
    outcome = alone({"cpu": str(cores), "memory": "100Mi"}, market=MARKET)
    assert outcome.options()[0].price_micros_per_hour == cheapest({}, cores * 1000)
    assert all(option.allocatable["cpu"] >= cores * 1000 for option in outcome.options())


def test_on_demand_is_chosen_by_its_own_price_where_spot_says_otherwise() -> None:
    market = (
        machine("m5.expensive", 4, 8, 1000, spot_price=100),
        machine("m5.fair", 4, 8, 900, spot_price=500),
    )
    owner = provisioner("default", (KIND, "In", "on-demand"))
    assert alone({}, market=market, provisioners=(owner,)).types == ["m5.fair"]
    either = provisioner("default", (KIND, "In", "on-demand", "spot"))
    assert alone({}, market=market, provisioners=(either,)).types == ["m5.expensive"]

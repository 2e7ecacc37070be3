"""Spot options cost no more than the cheapest on-demand machine that would do as well."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering
from shared.model.requirements import Requirements
from shared.model.values import replace
from shared.planning.decide import decide
from tests.builders import affinity, instance_type, needs, pod, provisioner, snapshot
from tests.unit.planning.asking import QUICK, A


def sold(name: str, **prices: int) -> InstanceType:
    """Return a type sold in the first zone, at these prices by capacity type."""
    ways = [
        Offering(
            zone=A,
            capacity_type=CapacityType(kind.replace("_", "-")),
            price_micros_per_hour=price,
        )
        for kind, price in prices.items()
    ]
    ways.sort(key=lambda way: way.price_micros_per_hour)
    return instance_type(name, offerings=tuple(ways))


TYPES = (sold("c5.large", spot=100_000, on_demand=110_000), sold("m5.large", spot=140_000))


def bought(*, asked: Any = Requirements(), types: Any = TYPES, **spec: Any) -> list[list[str]]:
    """Return the options of the new node, and its fallback."""
    owner = replace(provisioner(), requirements=asked, least_values=spec.pop("least", {}))
    seen = snapshot(pod(**spec), provisioners=[owner], instance_types=types)
    (node,) = decide(seen, QUICK).nodes
    return [
        [f"{option.offering.instance_type} {option.offering.capacity_type}" for option in some]
        for some in (node.options, node.fallback)
    ]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="packed"),
        pytest.param({"affinity": (affinity(),)}, id="placed"),
    ],
)
def test_dearer_spot_is_left_out_beside_on_demand(spec: Any) -> None:
    assert bought(**spec) == [["c5.large spot"], ["c5.large on-demand"]]


def test_spot_at_the_same_price_stays() -> None:
    types = (*TYPES, sold("r5.large", spot=110_000))
    assert bought(types=types)[0] == ["c5.large spot", "r5.large spot"]


def test_dearer_spot_stays_where_on_demand_may_not_be_had() -> None:
    asked = needs(keys.CAPACITY_TYPE, "In", "spot")
    assert bought(asked=asked) == [["c5.large spot", "m5.large spot"], []]


def test_dearer_spot_stays_where_least_values_are_asked_for() -> None:
    least = {keys.INSTANCE_TYPE: 2}
    assert bought(least=least)[0] == ["c5.large spot", "m5.large spot"]


def test_dearer_spot_is_a_fallback_where_on_demand_is_the_cheapest() -> None:
    types = (sold("c5.large", on_demand=90_000), *TYPES[1:])
    assert bought(types=types) == [["c5.large on-demand"], ["m5.large spot"]]

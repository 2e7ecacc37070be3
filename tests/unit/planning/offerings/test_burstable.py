"""Burstable types are bought where they are named, or where nothing else is to be had."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.requirements import Requirements
from shared.model.values import replace
from shared.planning.decide import decide
from tests.builders import instance_type, needs, pod, provisioner, snapshot
from tests.unit.planning.asking import QUICK


def of_category(known: InstanceType) -> InstanceType:
    return replace(known, labels={**known.labels, keys.INSTANCE_CATEGORY: known.name[0]})


TYPES = tuple(
    of_category(instance_type(name, price=price))
    for name, price in (("m5.large", 96_000), ("t3.large", 40_000), ("t3.nano", 20_000))
)
SMALL = needs(keys.INSTANCE_SIZE, "In", "nano")


def bought(owners: Any, types: tuple[InstanceType, ...] = TYPES, **spec: Any) -> set[str]:
    seen = snapshot(pod(cpu=500, **spec), provisioners=owners, instance_types=types)
    return {
        option.offering.instance_type
        for node in decide(seen, QUICK).nodes
        for option in node.options
    }


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(Requirements(), id="nothing"),
        pytest.param(needs(keys.INSTANCE_FAMILY, "Exists"), id="any family"),
        pytest.param(needs(keys.INSTANCE_CATEGORY, "NotIn", "g", "p"), id="other categories"),
    ],
)
def test_they_are_left_out_where_nothing_names_types(asked: Any) -> None:
    assert bought([provisioner(also=asked)]) == {"m5.large"}
    assert bought([provisioner()], node_selector=asked) == {"m5.large"}


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(needs(keys.INSTANCE_CATEGORY, "In", "m", "t"), id="category"),
        pytest.param(needs(keys.INSTANCE_FAMILY, "In", "m5", "t3"), id="family"),
        pytest.param(needs(keys.INSTANCE_TYPE, "In", "t3.nano", "m5.large"), id="type"),
    ],
)
def test_a_provisioner_or_a_pod_that_names_types_may_have_them(asked: Any) -> None:
    assert "t3.nano" in bought([provisioner(also=asked)])
    assert "t3.nano" in bought([provisioner()], node_selector=asked)


def test_they_are_bought_where_a_pod_or_a_provisioner_can_have_nothing_else() -> None:
    assert bought([provisioner()], node_selector=SMALL) == {"t3.nano"}
    assert bought([provisioner(also=SMALL, weight=10), provisioner("other")]) == {"t3.nano"}
    assert bought([provisioner()], types=TYPES[1:]) == {"t3.nano"}


def test_they_are_bought_where_without_them_there_is_less_choice_than_asked_for() -> None:
    least = {keys.INSTANCE_FAMILY: 2}
    assert "t3.nano" in bought([provisioner(least_values=least)])
    wide = (*TYPES, of_category(instance_type("c5.large", price=90_000)))
    assert bought([provisioner(least_values=least)], types=wide) == {"c5.large", "m5.large"}

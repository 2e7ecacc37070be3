"""A cheaper Provisioner of the same weight is reported; weight and name decide which is used."""

import pytest

from shared.model import labels as keys
from shared.model.provisioner import Provisioner
from shared.packing.problem import PackingSettings
from shared.planning.cheaper_provisioners import (
    CheaperProvisioner,
    cheaper_provisioners,
    same_weight,
)
from shared.planning.decide import decide
from tests.builders import needs, pods, provisioner, site, snapshot

SETTINGS = PackingSettings()
DEAR = needs(keys.INSTANCE_TYPE, "In", "m5.2xlarge")
CHEAP = needs(keys.INSTANCE_TYPE, "In", "m5.large")


def found(*owners: Provisioner) -> list[CheaperProvisioner]:
    seen = snapshot(
        *pods(1), provisioners=owners, sites=tuple(site(owner.name) for owner in owners)
    )
    return list(cheaper_provisioners(seen, decide(seen, SETTINGS), SETTINGS))


def test_a_cheaper_provisioner_of_the_same_weight_is_reported_with_both_prices() -> None:
    (one,) = found(provisioner("a", requirements=DEAR), provisioner("b", requirements=CHEAP))
    assert (one.used, one.cheaper) == ("a", "b")
    assert one.cheaper_micros_per_hour < one.used_micros_per_hour
    assert one.text == (
        "its nodes cost $0.1280/h; Provisioner b of the same weight could take the same pods for "
        "$0.0320/h; equal weights go by name: if that is not meant, give b a higher spec.weight"
    )


@pytest.mark.parametrize(
    "other",
    [
        provisioner("b", requirements=DEAR),
        provisioner("b", requirements=CHEAP, weight=0, shadow=True),
        provisioner("b", requirements=CHEAP, paused=True),
        provisioner("b", requirements=needs(keys.INSTANCE_TYPE, "In", "x9.none")),
    ],
)
def test_a_provisioner_that_is_no_cheaper_or_cannot_take_the_pods_is_not_reported(
    other: Provisioner,
) -> None:
    assert found(provisioner("a", requirements=DEAR), other) == []


def test_a_weight_says_that_it_is_meant() -> None:
    dear = provisioner("a", requirements=DEAR, weight=10)
    assert found(dear, provisioner("b", requirements=CHEAP)) == []


def test_only_provisioners_with_planned_nodes_are_compared() -> None:
    owners = (provisioner("a"), provisioner("b"), provisioner("c", weight=5))
    seen = snapshot(
        *pods(1), provisioners=owners, sites=tuple(site(owner.name) for owner in owners)
    )
    assert same_weight(seen, decide(seen, SETTINGS)) == ()

"""Volumes of pods, and where nodes of NodePools may be for them."""

from typing import Any

import pytest

from shared.model import labels as keys
from tests.karpenter_cases.scheduling.market import A, B, C
from tests.karpenter_cases.scheduling.test_volumes import (
    TEN,
    claim,
    many,
    mounts,
    storage_class,
    volume,
)
from tests.karpenter_cases.scheduling.writing import Raw, pod, spread
from tests.karpenter_cases.v1.planning.pools import planned

ZONE = keys.ZONE


def stored_at(*zones: str, name: str = "v1") -> Raw:
    """Return a volume that is in one of these zones, a term for each."""
    raw = volume(name)
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in zones
    ]
    raw["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return raw


def class_of(*topologies: tuple[str, ...], **more: Any) -> Raw:
    raw = storage_class(**more)
    raw["allowedTopologies"] = [
        {"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]} for zones in topologies
    ]
    return raw


def using(*stored: Raw, claims: tuple[str, ...] = ("data",), **words: Any) -> Any:
    return planned(pod(volumes=mounts(*claims), **words), stored=stored)


def test_a_volume_in_two_zones_leaves_either() -> None:
    outcome = using(storage_class(), claim("data", "v1"), stored_at(A, C))
    assert outcome.values(ZONE) <= {A, C}
    held = using(
        storage_class(), claim("data", "v1"), stored_at(A, C), required=[[(ZONE, "In", C)]]
    )
    assert held.values(ZONE) == {C}


def test_a_class_of_two_topologies_leaves_either() -> None:
    for zone in (A, C):
        outcome = using(class_of((A,), (C,)), claim(), required=[[(ZONE, "In", zone)]])
        assert outcome.values(ZONE) == {zone}
    assert using(class_of((A,), (C,)), claim(), required=[[(ZONE, "In", B)]]).new == ()


def test_two_volumes_leave_the_zone_they_share() -> None:
    stored = (
        storage_class(),
        claim("data", "v1"),
        claim("more", "v2"),
        stored_at(A, B),
        stored_at(B, C, name="v2"),
    )
    assert using(*stored, claims=("data", "more")).values(ZONE) == {B}


def test_a_volumes_zone_goes_beside_a_spread() -> None:
    rule = [spread(minDomains=3)]
    outcome = using(storage_class(), claim("data", "v1"), volume("v1", C), spreads=rule)
    assert outcome.values(ZONE) == {C}


DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def going(raw: Raw) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], **DELETING}}


def lost(raw: Raw) -> Raw:
    return {**raw, "status": {"phase": "Lost"}}


@pytest.mark.parametrize(
    "stored",
    [
        (lost(claim("data", "v1")), volume()),
        (going(claim("data", "v1")), volume()),
        (claim("data", "v1"), going(volume())),
    ],
    ids=["lost", "claim-going", "volume-going"],
)
def test_what_is_lost_or_going_holds_its_pod_back(stored: tuple[Raw, ...]) -> None:
    outcome = using(storage_class(), *stored)
    assert outcome.new == ()
    assert "volume" in outcome.pending["a"]


def test_a_claim_that_should_be_bound_holds_its_pod_back() -> None:
    at_once = {**storage_class(), "volumeBindingMode": "Immediate"}
    outcome = using(at_once, claim())
    assert outcome.new == ()
    assert "volume" in outcome.pending["a"]


def test_a_volume_that_nothing_makes_leaves_no_node() -> None:
    unknown = {
        **class_of(),
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": "example.com/rack", "values": ["1"]}]}
        ],
    }
    assert using(unknown, claim()).new == ()
    assert using(claim(storageClassName="missing")).new == ()


def test_volumes_of_the_old_plugin_count_against_the_driver() -> None:
    members, stored = many(6, 2, awsElasticBlockStore={"volumeID": "vol-1"})
    outcome = planned(*members, stored=stored, market=TEN)
    assert (len(outcome.new), len(outcome.homes)) == (2, 6)


def test_the_zone_of_a_volume_is_never_dropped() -> None:
    stored = (storage_class(), claim("data", "v1"), volume("v1", C))
    wishes: Raw = {"preferred": [(100, [(ZONE, "In", A)])]}
    assert using(*stored, **wishes).values(ZONE) == {C}
    either: Raw = {"required": [[(ZONE, "In", A)], [(ZONE, "In", B)]]}
    assert not using(*stored, **either).is_placed("a")

"""EC2's quotas of vCPUs."""

import pytest

from shared.model.ec2.instance_types import CapacityType
from shared.model.ec2.quotas import (
    Quota,
    QuotaReached,
    offerings_beyond_quotas,
    quota_of,
    reached_quotas,
)
from tests.builders import CATALOG, ZONES, instance_type, offering

SPOT = CapacityType.SPOT
ON_DEMAND = CapacityType.ON_DEMAND
STANDARD = Quota(capacity_type=ON_DEMAND, family="Standard")


@pytest.mark.parametrize(
    ("name", "capacity_type", "family"),
    [
        ("m5.large", ON_DEMAND, "Standard"),
        ("im4gn.large", SPOT, "Standard"),
        ("mac", ON_DEMAND, "Standard"),
        ("g4dn.xlarge", SPOT, "G and VT"),
        ("vt1.3xlarge", SPOT, "G and VT"),
        ("p4d.24xlarge", SPOT, "P"),
        ("p5.48xlarge", SPOT, "P5"),
        ("p5.48xlarge", ON_DEMAND, "P"),
        ("u-6tb1.56xlarge", ON_DEMAND, "High Memory"),
        ("x2gd.large", ON_DEMAND, "X"),
        ("trn1.2xlarge", ON_DEMAND, "Trn"),
        ("inf2.xlarge", ON_DEMAND, "Inf"),
        ("dl1.24xlarge", ON_DEMAND, "DL"),
        ("f1.2xlarge", ON_DEMAND, "F"),
        ("hpc6a.48xlarge", ON_DEMAND, "HPC"),
    ],
)
def test_a_type_counts_towards_the_quota_of_its_class(
    name: str, capacity_type: CapacityType, family: str
) -> None:
    found = quota_of(offering(name, capacity_type=capacity_type))
    assert found == Quota(capacity_type=capacity_type, family=family)


def test_a_quota_has_no_room_for_what_was_refused_and_for_what_is_larger() -> None:
    refused = [offering("m5.2xlarge"), offering("m5.xlarge")]
    marks = reached_quotas(refused, CATALOG)
    assert marks == (QuotaReached(quota=STANDARD, vcpus=4),)
    out = offerings_beyond_quotas(marks, [*CATALOG, instance_type("g5.2xlarge", cpu=8000)])
    assert out == {offering(name, zone) for name in ("m5.xlarge", "m5.2xlarge") for zone in ZONES}


def test_a_type_that_is_not_known_leaves_no_room_at_all() -> None:
    marks = reached_quotas([offering("m9.large")], CATALOG)
    assert {
        offering_key.instance_type for offering_key in offerings_beyond_quotas(marks, CATALOG)
    } == {other_instance_type.name for other_instance_type in CATALOG}


def test_without_a_mark_there_is_room_for_everything() -> None:
    assert offerings_beyond_quotas((), CATALOG) == frozenset()

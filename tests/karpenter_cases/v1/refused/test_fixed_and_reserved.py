"""Fixed pools and reserved capacity are not offered: each document is refused with a remedy."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from tests.karpenter_cases.lifecycle.births import bought
from tests.karpenter_cases.v1.reading import NODE, asks, class_faults, pool_faults
from tests.karpenter_cases.v1.worlds import is_ready, launched, named_pool, world
from tests.unit.manifests.documents import wants

FIXED: dict[str, dict[str, Any]] = {
    "A1": {"replicas": 3, "limits": {"nodes": "5"}},
    "A2": {"replicas": 1},
    "A3": {"replicas": 0},
    "A4": {"replicas": 2, "disruption": {"consolidateAfter": "0s"}},
    "A5": {"replicas": 10_000, "limits": {"nodes": "1"}},
    "A6": {"replicas": 2, "limits": {"nodes": "2"}, "disruption": {"budgets": [{"nodes": "1"}]}},
    "A7": {"replicas": 1, "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized"}},
}


@pytest.mark.parametrize("case", FIXED)
def test_a_fixed_pool_is_refused_and_gets_no_nodes(case: str) -> None:
    (refusal,) = pool_faults(**FIXED[case])
    assert refusal.startswith("spec.replicas: remove it: a fixed number of nodes is not kept; use")
    there = world(named_pool(**FIXED[case]))
    assert not is_ready(there)
    assert bought(there).alive == []


RESERVED = wants(keys.CAPACITY_TYPE, "In", "reserved")
TERMS: dict[str, list[dict[str, Any]]] = {
    "Z2": [{"tags": {"team": "red"}}],
    "Z3": [{"id": "cr-1"}, {"id": "cr-2"}],
    "Z4": [{"id": "cr-1"}],
    "Z5": [{"instanceMatchCriteria": "open"}],
    "Z6": [{"tags": {"block": "yes"}}],
    "Z7": [{"id": "cr-1"}, {"tags": {"block": "yes"}}],
    "Z8": [{"id": "cr-3", "ownerID": "123456789012"}],
}


@pytest.mark.parametrize("case", TERMS)
def test_a_choice_of_reservations_is_refused(case: str) -> None:
    (refusal,) = class_faults(capacityReservationSelectorTerms=TERMS[case])
    assert refusal == (
        "capacityReservationSelectorTerms: remove it: capacity reservations are not chosen; EC2 "
        "uses open ones by itself"
    )


def test_reserved_capacity_alone_is_refused() -> None:
    (refusal,) = asks(RESERVED)
    assert refusal == f"{NODE}.requirements: allow at least one of on-demand, spot"


def test_a_machine_in_an_open_reservation_is_one_on_demand() -> None:
    # What EC2 uses for it is not asked for, and changes no label.
    there = launched({"requirements": [wants(keys.CAPACITY_TYPE, "In", "reserved", "on-demand")]})
    (machine,) = there.alive
    assert machine.offering.capacity_type == CapacityType.ON_DEMAND
    assert there.node.labels[keys.CAPACITY_TYPE] == "on-demand"

"""Zones that are assumed where subnets are not known: not those with special types alone."""

import pytest

from functions.cli.plan.reading.assumed_zones import zones_not_assumed
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.pods import Pod
from shared.model.resources import Resources
from shared.model.values import replace
from tests.builders import GIB, ZONES, instance_type, needs, pod, snapshot, spread

A, B, C = ZONES
GPU = "nvidia.com/gpu"


def in_zones(kind: InstanceType, *zones: str) -> InstanceType:
    return replace(
        kind, offerings=tuple(offering for offering in kind.offerings if offering.zone in zones)
    )


PLAIN = instance_type("c6g.4xlarge", cpu=16_000, memory=32 * GIB)
CARD = replace(
    instance_type("g4dn.xlarge", cpu=4_000, memory=16 * GIB),
    capacity=PLAIN.capacity + Resources(((GPU, 1),)),
)
METAL = instance_type("c6g.metal-16xl", cpu=64_000, memory=128 * GIB)
TYPES = (in_zones(PLAIN, A, B), in_zones(METAL, A, C), CARD)


@pytest.mark.parametrize(
    ("types", "waiting", "left_out"),
    [
        pytest.param(TYPES, (), (C,), id="no pod"),
        pytest.param(TYPES, (pod(spreads=(spread(),)),), (C,), id="a spread"),
        pytest.param(TYPES, (pod("x", extra={GPU: 1}), pod()), (), id="a pod with a gpu"),
        pytest.param(TYPES, (pod(node_selector=needs(keys.ZONE, "In", C)),), (), id="it is named"),
        pytest.param(TYPES, (pod(cpu=40_000),), (), id="nothing else holds the pod"),
        pytest.param((PLAIN, CARD), (pod(),), (), id="plain types in each zone"),
        pytest.param((in_zones(METAL, A), CARD), (), (), id="nothing but special types"),
    ],
)
def test_a_zone_with_special_types_alone_counts_only_for_pods_that_need_these(
    types: tuple[InstanceType, ...], waiting: tuple[Pod, ...], left_out: tuple[str, ...]
) -> None:
    found = zones_not_assumed(snapshot(*waiting, instance_types=types))
    assert found == ({"default": left_out} if left_out else {})

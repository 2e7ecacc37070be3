"""EC2 that refuses, and what came of it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from infra.local.ec2.account import Ordered
from infra.local.ec2.pools import ANY
from infra.local.ec2.refusals import Refusal
from shared.model.ec2.instance_types import OfferingKey
from shared.model.provisioner import Provisioner
from shared.model.values import replace
from tests.builders import provisioner
from tests.unit.worlds import NAME, World, instead


def without_profile(world: World, *gone: str) -> set[str]:
    """Let these instance profiles not exist; return them, to be mended."""
    missing = set(gone)

    def age(profile: Mapping[str, str]) -> timedelta | None:
        return None if profile["Name"] in missing else timedelta(days=1)

    instead(world.cloud, "profile_age", age)
    return missing


def with_profile(name: str, profile: str, **changes: Any) -> Provisioner:
    owner = provisioner(name, **changes)
    return replace(owner, template=replace(owner.template, instance_profile=profile))


def refuse(
    world: World, *types: str, code: str = "UnauthorizedOperation", zone: str = ANY, kind: str = ANY
) -> None:
    """Let EC2 refuse instance types; all of them where none is named."""
    said = Refusal(code=code, message="as told")
    for name in types or (ANY,):
        world.cloud.ordered.append(Ordered(refusal=said, pool=(name, zone, kind)))


def fill(world: World, *subnets: str, code: str = "InsufficientFreeAddressesInSubnet") -> None:
    said = Refusal(code=code, message="as told")
    world.cloud.ordered += [Ordered(refusal=said, subnet_id=subnet) for subnet in subnets]


def overrides(world: World) -> list[list[Mapping[str, str]]]:
    """Return the overrides of each CreateFleet call."""
    return [
        [
            override
            for config in request["LaunchTemplateConfigs"]
            for override in config["Overrides"]
        ]
        for request in world.cloud.fleets
    ]


def types(world: World) -> list[set[str]]:
    return [{entry["InstanceType"] for entry in call} for call in overrides(world)]


def subnets(world: World) -> list[set[str]]:
    return [{entry["SubnetId"] for entry in call} for call in overrides(world)]


def condition(world: World, name: str = "default") -> tuple[bool, str, str]:
    return world.cluster.conditions[name]


def marked(world: World) -> frozenset[OfferingKey]:
    return world.ledger.unavailable_offerings(world.clock.now(), NAME)

"""The slice of the shipped catalogue that a cluster can buy from."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from shared.instance_types.catalog import embedded_catalog
from shared.model.ec2.instance_types import InstanceType
from shared.model.values import replace
from tests.scheduler_oracle.clusters.seeded_random import Dice

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
_FAMILIES: Final = ("c5", "c6g", "m5", "m6a", "m6g", "m7i", "r5", "r6g", "t3")
_SIZES: Final = ("medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge")
_ACCELERATED: Final = ("g4dn.xlarge", "g4dn.2xlarge", "g4dn.12xlarge", "inf1.xlarge", "p3.2xlarge")


@functools.cache
def _catalog() -> dict[str, InstanceType]:
    """Return the shipped types by name, as sold in three zones."""
    catalog = embedded_catalog().with_zones(ZONES)
    return {instance_type.name: instance_type for instance_type in catalog.instance_types}


def instance_types(
    names: Iterable[str], volume_limits: Mapping[str, int] | None = None
) -> tuple[InstanceType, ...]:
    """Return these types, sorted by name.

    Args:
        names: Of types.
        volume_limits: How many volumes machines of some types attach, instead of the usual.
    """
    limits = volume_limits or {}
    found = [_catalog()[name] for name in sorted(names)]
    return tuple(
        replace(instance_type, volume_limit=limits[instance_type.name])
        if instance_type.name in limits
        else instance_type
        for instance_type in found
    )


def draw_names(dice: Dice) -> list[str]:
    """Return 12 to 40 names of types, both architectures among them."""
    catalog = _catalog()
    plain = [f"{f}.{s}" for f in _FAMILIES for s in _SIZES if f"{f}.{s}" in catalog]
    count = dice.upto(12, 24) if dice.luck(0.8) else dice.upto(24, 40)
    names = {"m5.large", "m5.2xlarge", "c5.xlarge", "m6g.xlarge", "c6g.2xlarge"}
    names |= set(dice.rng.sample(plain, min(count, len(plain))))
    if dice.has("extended"):
        names |= {name for name in _ACCELERATED if name in catalog}
    return sorted(names)


def draw_unavailable(dice: Dice, names: Sequence[str]) -> list[list[str]]:
    """Return offerings EC2 is out of, each as type, zone and capacity type."""
    if not dice.has("unavailable"):
        return []
    found = {
        (dice.one(names), dice.one(ZONES), dice.one(("on-demand", "spot")))
        for _ in range(dice.upto(1, 30))
    }
    return [list(entry) for entry in sorted(found)]

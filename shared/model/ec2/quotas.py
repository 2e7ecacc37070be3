"""EC2's quotas of vCPUs: which instance types share one.

A quota counts the vCPUs of all running instances of some instance families, separately for
on-demand and spot, per account and Region.

Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html and
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html (2026-11): Standard
(A, C, D, H, I, M, R, T, Z), DL, F, G and VT, High Memory, HPC, Inf, P, Trn, X; spot has P5 apart.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from shared.model.ec2.instance_types import CapacityType, InstanceType, OfferingKey
from shared.model.resources import CPU

STANDARD: Final = "Standard"
_FAMILIES: Final = {
    "dl": "DL",
    "f": "F",
    "g": "G and VT",
    "gr": "G and VT",
    "hpc": "HPC",
    "inf": "Inf",
    "p": "P",
    "trn": "Trn",
    "u": "High Memory",
    "vt": "G and VT",
    "x": "X",
}
_NEW_P: Final = 5
_MILLIS: Final = 1000
_NAME: Final = re.compile(r"([a-z]+)(?:-|(\d+))")


class Quota(Struct, frozen=True, kw_only=True, order=True):
    """A quota of vCPUs of the account in the Region."""

    capacity_type: CapacityType
    family: str


class QuotaReached(Struct, frozen=True, kw_only=True, order=True):
    """A quota that refused an instance of this many vCPUs; larger instances do not fit either.

    Attributes:
        vcpus: vCPUs of the smallest instance that was refused.
    """

    quota: Quota
    vcpus: int


def quota_of(offering: OfferingKey) -> Quota:
    """Return the quota that instances of an offering count towards.

    A family that the table does not name counts as Standard.
    """
    found = _NAME.match(offering.instance_type)
    letters, number = found.groups() if found is not None else ("", None)
    family = _FAMILIES.get(letters, STANDARD)
    spot = offering.capacity_type == CapacityType.SPOT
    if family == "P" and spot and int(number or 0) >= _NEW_P:
        family = "P5"
    return Quota(capacity_type=offering.capacity_type, family=family)


def reached_quotas(
    refused: Iterable[OfferingKey], instance_types: Iterable[InstanceType]
) -> tuple[QuotaReached, ...]:
    """Return the quotas that refused these offerings, sorted."""
    vcpus = {instance_type.name: _vcpus(instance_type) for instance_type in instance_types}
    least: dict[Quota, int] = {}
    for offering in refused:
        quota, wanted = quota_of(offering), vcpus.get(offering.instance_type, 0)
        least[quota] = min(least.get(quota, wanted), wanted)
    return tuple(QuotaReached(quota=quota, vcpus=least[quota]) for quota in sorted(least))


def offerings_beyond_quotas(
    marks: Iterable[QuotaReached], instance_types: Iterable[InstanceType]
) -> frozenset[OfferingKey]:
    """Return the offerings that do not fit within the quotas."""
    least = {mark.quota: mark.vcpus for mark in marks}
    if not least:
        return frozenset()
    return frozenset(
        key
        for instance_type in instance_types
        for offering in instance_type.offerings
        for key in (
            OfferingKey(
                instance_type=instance_type.name,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
            ),
        )
        if quota_of(key) in least and _vcpus(instance_type) >= least[quota_of(key)]
    )


def _vcpus(instance_type: InstanceType) -> int:
    return instance_type.capacity[CPU] // _MILLIS

"""Capacity pools: how many more instances of a type a zone can give, spot and on-demand apart."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from infra.local.ec2.refusals import Refusal, refusal

ANY: Final = "*"
SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
CAPACITY_TYPES: Final = (ON_DEMAND, SPOT)

PoolKey = tuple[str, str, str]
"""(instance type, zone, capacity type); a rule may have `*` in any place."""

QuotaKey = tuple[str, str]
"""(capacity type, family of instance types)."""

STANDARD: Final = "standard"
_OWN: Final = ("dl", "f", "hpc", "inf", "mac", "p", "trn", "u", "x")
_FAMILIES: Final = {"g": "g", "gr": "g", "vt": "g", **{name: name for name in _OWN}}
QUOTA_FAMILIES: Final = (STANDARD, "g", *_OWN)


@dataclass(slots=True, kw_only=True)
class Pools:
    """Rules by pool; without a rule a pool has no limit.

    A wildcard rule is a shared budget: `("*", "us-east-1a", "spot")` with 3 leaves three spot
    instances for all types of that zone together. Of several matching rules all must agree.
    Instances that end do not come back into a pool: a count is what may still be launched.
    """

    rules: dict[PoolKey, int] = field(default_factory=dict)
    vcpu_quota: dict[QuotaKey, int] = field(default_factory=dict)
    until: dict[PoolKey, datetime] = field(default_factory=dict)

    def set(self, key: PoolKey, count: int, until: datetime | None = None) -> None:
        """Say how many more instances fit the pattern; 0 is InsufficientInstanceCapacity."""
        self.rules[key] = count
        if until is not None:
            self.until[key] = until

    def expire(self, now: datetime) -> None:
        """Drop the rules whose time is over."""
        for key in [key for key, until in self.until.items() if until <= now]:
            del self.until[key]
            self.rules.pop(key, None)

    def reset(self) -> None:
        self.rules.clear()
        self.until.clear()
        self.vcpu_quota.clear()

    def matching(self, key: PoolKey) -> tuple[PoolKey, ...]:
        """Rules that apply to one pool, in a fixed order."""
        rules = self.rules
        return tuple(
            rule for rule in itertools.product(*((ANY, value) for value in key)) if rule in rules
        )

    def left(self, key: PoolKey) -> int | None:
        """How many more instances the pool gives; None is no limit."""
        counts = [self.rules[rule] for rule in self.matching(key)]
        return min(counts) if counts else None

    def take(self, key: PoolKey, count: int) -> None:
        """Use `count` instances of a pool, in every rule that matches it."""
        for rule in self.matching(key):
            self.rules[rule] = max(0, self.rules[rule] - count)


@dataclass(slots=True, kw_only=True)
class Stock:
    """What can still be launched in the course of one request: a scratch copy of the world."""

    pools: Pools
    addresses: dict[str, int]
    vcpus_left: dict[QuotaKey, int]

    def copy(self) -> "Stock":
        return Stock(
            pools=Pools(rules=dict(self.pools.rules)),
            addresses=dict(self.addresses),
            vcpus_left=dict(self.vcpus_left),
        )

    def take(
        self, key: PoolKey, *, subnet_id: str, vcpus: int, wanted: int
    ) -> tuple[int, Refusal | None]:
        """Take up to `wanted` instances; say why when it is fewer."""
        instance_type, zone, capacity_type = key
        limits: list[tuple[int, Refusal]] = []
        left = self.pools.left(key)
        if left is not None:
            limits.append((left, no_capacity(instance_type, zone, capacity_type)))
        full = refusal("InsufficientFreeAddressesInSubnet", subnet=subnet_id)
        limits.append((self.addresses.get(subnet_id, 0), full))
        quota = (capacity_type, quota_family(instance_type))
        if quota in self.vcpus_left:
            code = "MaxSpotInstanceCountExceeded" if capacity_type == SPOT else "VcpuLimitExceeded"
            limits.append((self.vcpus_left[quota] // max(1, vcpus), refusal(code)))
        tightest, reason = min(limits, key=lambda limit: limit[0])
        granted = min(wanted, tightest)
        self.pools.take(key, granted)
        self.addresses[subnet_id] = self.addresses.get(subnet_id, 0) - granted
        if quota in self.vcpus_left:
            self.vcpus_left[quota] -= granted * vcpus
        return granted, reason if granted < wanted else None


def no_capacity(instance_type: str, zone: str, capacity_type: str) -> Refusal:
    if capacity_type == SPOT:
        text = "There is no Spot capacity available that matches your request."
        return Refusal(code="InsufficientInstanceCapacity", message=text)
    return refusal("InsufficientInstanceCapacity", type=instance_type, zone=zone)


def quota_family(instance_type: str) -> str:
    """Return the family of instance types that share one vCPU quota with this one.

    Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html (2026-08):
    A, C, D, H, I, M, R, T and Z are "standard", G and VT are one quota, the others stand alone.
    """
    found = re.match("[a-z]+", instance_type)
    letters = found.group() if found else ""
    return _FAMILIES.get(letters, STANDARD)


def vcpus_left(quota: Mapping[QuotaKey, int], used: Mapping[QuotaKey, int]) -> dict[QuotaKey, int]:
    """Return quota minus use, for those that have a quota."""
    return {key: max(0, limit - used.get(key, 0)) for key, limit in sorted(quota.items())}

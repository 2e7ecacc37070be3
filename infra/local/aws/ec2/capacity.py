"""Capacity pools: how many more machines of a type a zone can give, spot and on-demand apart."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

ANY: Final = "*"
SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
CAPACITY_TYPES: Final = (ON_DEMAND, SPOT)

PoolKey = tuple[str, str, str]
"""(instance type, zone, capacity type); a rule may have `*` in any place."""


@dataclass(slots=True, kw_only=True)
class Pools:
    """Rules by pool; without a rule a pool has no limit.

    A wildcard rule is a shared budget: `("*", "us-east-1a", "spot")` with 3 leaves three spot
    machines for all types of that zone together. Of several matching rules all must agree.
    Machines that end do not come back into a pool: a count is what may still be launched.
    """

    rules: dict[PoolKey, int] = field(default_factory=dict)
    vcpu_quota: dict[str, int] = field(default_factory=dict)

    def set(self, key: PoolKey, count: int) -> None:
        """Say how many more machines fit the pattern; 0 is InsufficientInstanceCapacity."""
        self.rules[key] = count

    def reset(self) -> None:
        """Make every pool unlimited again and drop quotas."""
        self.rules.clear()
        self.vcpu_quota.clear()

    def matching(self, key: PoolKey) -> tuple[PoolKey, ...]:
        """Rules that apply to one pool, in a fixed order."""
        return tuple(sorted(rule for rule in self.rules if _matches(rule, key)))

    def left(self, key: PoolKey) -> int | None:
        """How many more machines the pool gives; None is no limit."""
        counts = [self.rules[rule] for rule in self.matching(key)]
        return min(counts) if counts else None

    def take(self, key: PoolKey, count: int) -> None:
        """Use `count` machines of a pool, in every rule that speaks of it."""
        for rule in self.matching(key):
            self.rules[rule] = max(0, self.rules[rule] - count)


def _matches(rule: PoolKey, key: PoolKey) -> bool:
    return all(part in (ANY, value) for part, value in zip(rule, key, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a pool gave less than it was asked for, in the words of the API."""

    code: str
    message: str


@dataclass(slots=True, kw_only=True)
class Stock:
    """What can still be launched in the course of one request: a scratch copy of the world.

    Attributes:
        pools: copies of the rules.
        addresses: free addresses by subnet id.
        vcpus_left: quota left by capacity type; a missing key is no limit.
    """

    pools: Pools
    addresses: dict[str, int]
    vcpus_left: dict[str, int]

    def copy(self) -> "Stock":
        """Return an independent copy, for trying something out."""
        return Stock(
            pools=Pools(rules=dict(self.pools.rules)),
            addresses=dict(self.addresses),
            vcpus_left=dict(self.vcpus_left),
        )

    def take(
        self, key: PoolKey, *, subnet_id: str, vcpus: int, wanted: int
    ) -> tuple[int, Refusal | None]:
        """Take up to `wanted` machines; say why when it is fewer."""
        instance_type, zone, capacity_type = key
        limits: list[tuple[int, Refusal]] = []
        left = self.pools.left(key)
        if left is not None:
            limits.append((left, no_capacity(instance_type, zone, capacity_type)))
        limits.append((self.addresses.get(subnet_id, 0), _no_addresses(subnet_id)))
        if capacity_type in self.vcpus_left:
            fits = self.vcpus_left[capacity_type] // max(1, vcpus)
            limits.append((fits, _over_quota(capacity_type)))
        tightest, refusal = min(limits, key=lambda limit: limit[0])
        granted = min(wanted, tightest)
        self._use(key, subnet_id, vcpus, granted)
        return granted, refusal if granted < wanted else None

    def _use(self, key: PoolKey, subnet_id: str, vcpus: int, granted: int) -> None:
        self.pools.take(key, granted)
        self.addresses[subnet_id] = self.addresses.get(subnet_id, 0) - granted
        if key[2] in self.vcpus_left:
            self.vcpus_left[key[2]] -= granted * vcpus


def no_capacity(instance_type: str, zone: str, capacity_type: str) -> Refusal:
    """The refusal of an empty pool."""
    if capacity_type == SPOT:
        text = "There is no Spot capacity available that matches your request."
    else:
        text = (
            f"We currently do not have sufficient {instance_type} capacity in the "
            f"Availability Zone you requested ({zone})."
        )
    return Refusal(code="InsufficientInstanceCapacity", message=text)


def _no_addresses(subnet_id: str) -> Refusal:
    return Refusal(
        code="InsufficientFreeAddressesInSubnet",
        message=f"There are not enough free addresses in subnet '{subnet_id}'.",
    )


def _over_quota(capacity_type: str) -> Refusal:
    if capacity_type == SPOT:
        return Refusal(
            code="MaxSpotInstanceCountExceeded", message="Max spot instance count exceeded"
        )
    return Refusal(
        code="VcpuLimitExceeded",
        message="You have requested more vCPU capacity than your current vCPU limit allows.",
    )


def vcpus_left(quota: Mapping[str, int], used: Mapping[str, int]) -> dict[str, int]:
    """Quota minus use, by capacity type, for those that have a quota."""
    return {kind: max(0, limit - used.get(kind, 0)) for kind, limit in sorted(quota.items())}

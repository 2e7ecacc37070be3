"""Which pools a fleet takes, by allocation strategy: pure."""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from infra.local.ec2.pools import PoolKey, Stock
from infra.local.ec2.refusals import Refusal, refusal

DEPTHS: Final = 100
"""Synthetic pool depths run from 1 (shallow) to this."""

_DEEP_SHARE: Final = 0.5

STRATEGIES: Final = {
    "on-demand": ("lowest-price", "prioritized"),
    "spot": (
        "lowest-price",
        "diversified",
        "capacity-optimized",
        "capacity-optimized-prioritized",
        "price-capacity-optimized",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One override as a launch option.

    Attributes:
        index: place in the request; the last key of every order.
        priority: lower goes first; infinite when the request says nothing.
        refusal: set when nothing can come of it, whatever the capacity.
    """

    index: int
    instance_type: str
    zone: str
    subnet_id: str
    capacity_type: str
    vcpus: int
    price_micros: int
    depth: int
    priority: float = math.inf
    refusal: Refusal | None = None

    @property
    def pool(self) -> PoolKey:
        return (self.instance_type, self.zone, self.capacity_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one half (spot or on-demand) of a fleet asks for."""

    strategy: str
    target: int
    single_type: bool = False
    single_zone: bool = False
    min_target: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """Instances to launch by candidate, and what was refused on the way, in order of trying."""

    launches: tuple[tuple[Candidate, int], ...]
    refusals: tuple[tuple[Candidate, Refusal], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.launches)


def pool_depth(instance_type: str, zone: str) -> int:
    """Synthetic depth of a spot pool, 1 to DEPTHS: fixed by a hash, it knows nothing of EC2."""
    digest = hashlib.sha256(f"depth/{instance_type}/{zone}".encode()).digest()
    return 1 + int.from_bytes(digest[:4], "big") % DEPTHS


def ranked(candidates: Iterable[Candidate], strategy: str) -> tuple[Candidate, ...]:
    """Order candidates as the strategy tries them.

    `price-capacity-optimized` takes the cheapest of the deeper half first; the capacity strategies
    go by depth (the prioritized one by quarters of it, then priority).
    """
    found = tuple(candidates)
    deepest = max((candidate.depth for candidate in found), default=0)
    keys: dict[str, Callable[[Candidate], tuple[float, ...]]] = {
        "lowest-price": lambda candidate: (candidate.price_micros,),
        "diversified": lambda candidate: (candidate.price_micros,),
        "prioritized": lambda candidate: (candidate.priority, candidate.price_micros),
        "capacity-optimized": lambda candidate: (-candidate.depth, candidate.price_micros),
        "capacity-optimized-prioritized": lambda candidate: (
            -(candidate.depth * 4 // DEPTHS),
            candidate.priority,
            candidate.price_micros,
        ),
        "price-capacity-optimized": lambda candidate: (
            0 if candidate.depth >= deepest * _DEEP_SHARE else 1,
            candidate.price_micros,
        ),
    }
    key = keys[strategy]
    return tuple(sorted(found, key=lambda entry: (*key(entry), entry.index)))


def allot(candidates: Iterable[Candidate], terms: Terms, stock: Stock) -> Allotment:
    """Fill the target from the candidates; `stock` is used up accordingly.

    A candidate that can never work is refused first, so that its error shows even when the fleet
    is filled. Below the minimum target nothing is launched and nothing is used.
    """
    if terms.target <= 0:
        return Allotment(launches=(), refusals=())
    found = tuple(candidates)
    dead = tuple(
        (candidate, candidate.refusal) for candidate in found if candidate.refusal is not None
    )
    order = ranked((candidate for candidate in found if candidate.refusal is None), terms.strategy)
    scratch = stock.copy()
    best = _fill(_best_group(order, terms, stock), terms, scratch)
    if best.total < max(terms.min_target, 0):
        refusals = best.refusals or tuple(
            (candidate, refusal("UnfulfillableCapacity")) for candidate in order[:1]
        )
        return Allotment(launches=(), refusals=dead + refusals)
    stock.pools.rules.update(scratch.pools.rules)
    stock.addresses.update(scratch.addresses)
    stock.vcpus_left.update(scratch.vcpus_left)
    return Allotment(launches=best.launches, refusals=dead + best.refusals)


def _best_group(order: tuple[Candidate, ...], terms: Terms, stock: Stock) -> tuple[Candidate, ...]:
    """The candidates a single-type or single-zone fleet may use: the first group that fills it."""
    if not (terms.single_type or terms.single_zone):
        return order
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in order:
        key = (
            candidate.instance_type if terms.single_type else "",
            candidate.zone if terms.single_zone else "",
        )
        groups.setdefault(key, []).append(candidate)
    best: tuple[Candidate, ...] = ()
    most = -1
    for group in groups.values():
        total = _fill(tuple(group), terms, stock.copy()).total
        if total > most:
            best, most = tuple(group), total
        if most >= terms.target:
            break
    return best


def _fill(order: tuple[Candidate, ...], terms: Terms, stock: Stock) -> Allotment:
    granted: dict[int, int] = {}
    refusals: dict[int, tuple[Candidate, Refusal]] = {}
    missing = terms.target
    open_pools = list(order)
    while missing > 0 and open_pools:
        spread = terms.strategy == "diversified"
        share = max(1, missing // len(open_pools)) if spread else missing
        for open_pool in tuple(open_pools):
            wanted = min(share, missing)
            got, reason = stock.take(
                open_pool.pool, subnet_id=open_pool.subnet_id, vcpus=open_pool.vcpus, wanted=wanted
            )
            granted[open_pool.index] = granted.get(open_pool.index, 0) + got
            missing -= got
            if reason is not None:
                refusals[open_pool.index] = (open_pool, reason)
                open_pools.remove(open_pool)
            if missing <= 0:
                break
    launches = tuple(
        (candidate, granted[candidate.index]) for candidate in order if granted.get(candidate.index)
    )
    return Allotment(launches=launches, refusals=tuple(refusals.values()))

"""Problems of pods that must be near each other, drawn from a seed in eight shapes.

A problem is a handful of pods in groups, some standing nodes, and what can be bought. It is stated
in words of its own, for the exhaustive search, and can be written as a snapshot, for the planner.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType, Offering
from shared.model.kubernetes.pods import LabelSelector, Scheduling
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests import builders as make

HOST: Final = keys.HOSTNAME
ZONE: Final = keys.ZONE
ZONES: Final = make.ZONES
ANY: Final = "any"
DB: Final = "db"
_MOST_PODS: Final = 6
_TYPES: Final = 12
_CATALOGS: Final = 40
PROBLEMS: Final = 3_000  # of each shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Pods that are alike.

    Attributes:
        pods: How many wait.
        cpu: Of one pod, in millicores.
        memory: Of one pod, in bytes.
        zones: Where they may run.
        by_volume: Whether a volume says so, and not their node selector.
        pool: The only pool whose nodes they select, or `ANY`.
        near: (topology key, group) of their required pod affinity.
        apart: The same of their required pod anti-affinity.
        spreads: (topology key, maxSkew, groups that are counted).
    """

    pods: int
    cpu: int
    memory: int
    zones: tuple[str, ...] = ZONES
    by_volume: bool = False
    pool: str = ANY
    near: tuple[tuple[str, int], ...] = ()
    apart: tuple[tuple[str, int], ...] = ()
    spreads: tuple[tuple[str, int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A node that is there: what is free, and how many pods of each group run on it."""

    zone: str
    cpu: int
    memory: int
    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Groups of pods, standing nodes, the zones of each pool, and the types both pools sell."""

    groups: tuple[Group, ...]
    standing: tuple[Standing, ...]
    pools: Mapping[str, tuple[str, ...]]
    types: tuple[InstanceType, ...]


def problem(shape: str, number: int) -> Problem:
    """Return one problem of a shape."""
    draw = random.Random(f"{shape} {number}")
    while True:
        groups = SHAPES[shape](draw)
        if sum(group.pods for group in groups) <= _MOST_PODS:
            break
    standing: tuple[Standing, ...] = ()
    if shape in _WITH_NODES:
        standing = tuple(_standing(draw, groups) for _ in range(draw.choice((0, 1, 2, 3))))
    pools: dict[str, tuple[str, ...]] = {ANY: ZONES}
    if any(group.pool == DB for group in groups):
        pools[DB] = tuple(sorted(draw.sample(ZONES, draw.choice((1, 1, 2)))))
    return Problem(
        groups=groups,
        standing=standing,
        pools=pools,
        # Problems in a row share theirs, so that what the planner keeps of it is used again.
        types=_catalog(number * _CATALOGS // PROBLEMS % _CATALOGS),
    )


@cache
def _catalog(number: int) -> tuple[InstanceType, ...]:
    """Return types of 1 to 16 cores, with prices of their own by zone and capacity type."""
    draw = random.Random(f"catalog {number}")
    found = []
    for index in range(_TYPES):
        cores = (1, 2, 2, 4, 4, 4, 8, 8, 8, 16, 16, 32)[index]
        ratio = draw.choice((2, 4, 8))
        price = cores * (20_000 + 5_000 * ratio) * draw.uniform(0.85, 1.2)
        offerings = [
            Offering(
                zone=zone,
                capacity_type=kind,
                price_micros_per_hour=int(price * part * draw.uniform(0.95, 1.15)),
            )
            for zone in draw.sample(ZONES, draw.choice((2, 3, 3)))
            for kind, part in ((CapacityType.ON_DEMAND, 1), (CapacityType.SPOT, 0.4))
            if kind is CapacityType.ON_DEMAND or draw.random() < 0.8
        ]
        offerings.sort(key=lambda way: (way.price_micros_per_hour, way.zone, way.capacity_type))
        found.append(
            make.instance_type(
                f"m{index}.s{cores}",
                cpu=cores * 1000,
                memory=cores * ratio * make.GIB,
                offerings=tuple(offerings),
            )
        )
    return tuple(sorted(found, key=lambda entry: entry.name))


def _group(draw: random.Random, pods: Sequence[int], **more: Any) -> Group:
    return Group(
        pods=draw.choice(pods),
        cpu=draw.choice((100, 250, 500, 1000, 1500, 2000, 3000)),
        memory=draw.choice((128, 512, 1024, 2048, 6000)) * make.MIB,
        **more,
    )


def _standing(draw: random.Random, groups: Sequence[Group]) -> Standing:
    return Standing(
        zone=draw.choice(ZONES),
        cpu=draw.choice((0, 300, 1500, 3500)),
        memory=draw.choice((2, 8)) * make.GIB,
        runs=tuple(draw.choice((0, 0, 1, 1, 2)) for _ in groups),
    )


def _pinned(draw: random.Random) -> dict[str, Any]:
    zones = tuple(sorted(draw.sample(ZONES, draw.choice((1, 1, 2)))))
    return {"zones": zones, "by_volume": draw.random() < 0.5}


def _apart(draw: random.Random, index: int, key: str = HOST, part: float = 0.5) -> Any:
    return ((key, index),) if draw.random() < part else ()


def _on_the_host(draw: random.Random) -> tuple[Group, ...]:
    """Leads without rules, and one or two kinds of followers."""
    followers = [
        _group(draw, (1, 2, 3, 4), near=((HOST, 0),)) for _ in range(draw.choice((1, 1, 2)))
    ]
    return (_group(draw, (1, 2, 3)), *followers)


def _apart_on_the_host(draw: random.Random) -> tuple[Group, ...]:
    """Leads and followers of which some are kept apart, as web servers beside caches."""
    lead = _group(draw, (1, 2, 3), apart=_apart(draw, 0, part=0.7))
    followers = [
        _group(draw, (1, 2, 3), near=((HOST, 0),), apart=_apart(draw, 1 + number, part=0.8))
        for number in range(draw.choice((1, 1, 2)))
    ]
    return (lead, *followers)


def _in_the_zone(draw: random.Random) -> tuple[Group, ...]:
    """Leads, and followers that a zone selector or a volume pins."""
    lead = _group(draw, (1, 2, 3), **(_pinned(draw) if draw.random() < 0.2 else {}))
    followers = [
        _group(draw, (1, 2), near=((ZONE, 0),), **_pinned(draw))
        for _ in range(draw.choice((1, 2, 2)))
    ]
    return (lead, *followers)


def _pool_in_a_zone(draw: random.Random) -> tuple[Group, ...]:
    """Leads, and followers of which some select a pool that has a zone or two only."""
    lead = _group(draw, (1, 2, 3), apart=_apart(draw, 0, part=0.3))
    followers = [
        _group(draw, (1, 2, 3), near=((ZONE, 0),), pool=draw.choice((DB, DB, ANY)))
        for _ in range(draw.choice((1, 2)))
    ]
    return (lead, *followers)


def _chain(draw: random.Random) -> tuple[Group, ...]:
    """Up to four groups of which each must be near the one before."""
    first = _group(draw, (1, 2), apart=_apart(draw, 0, part=0.3))
    others = [
        _group(
            draw,
            (1, 1, 2),
            near=((draw.choice((HOST, ZONE)), number - 1),),
            apart=_apart(draw, number, part=0.3),
            **(_pinned(draw) if draw.random() < 0.3 else {}),
        )
        for number in range(1, draw.choice((3, 3, 4)))
    ]
    return (first, *others)


def _spread_over_zones(draw: random.Random) -> tuple[Group, ...]:
    """Followers that are spread over zones beside leads with or without a spread of their own."""
    skew = draw.choice((1, 1, 2))
    own = ((ZONE, draw.choice((1, 1, 2)), (0,)),) if draw.random() < 0.5 else ()
    counted = draw.choice(((1,), (1,), (0, 1)))
    lead = _group(draw, (1, 2, 3), spreads=own)
    follower = _group(
        draw, (2, 3, 4), near=((draw.choice((HOST, ZONE)), 0),), spreads=((ZONE, skew, counted),)
    )
    return (lead, follower)


def _spread_over_hosts(draw: random.Random) -> tuple[Group, ...]:
    """Followers that are spread over hosts beside leads, where some nodes stand."""
    skew = draw.choice((1, 1, 2))
    lead = _group(draw, (1, 2, 3), apart=_apart(draw, 0, part=0.3))
    follower = _group(
        draw, (1, 2, 3, 4), near=((draw.choice((HOST, ZONE)), 0),), spreads=((HOST, skew, (1,)),)
    )
    return (lead, follower)


def _everything(draw: random.Random) -> tuple[Group, ...]:
    """Two to four groups with any of these rules."""
    found = []
    many = draw.choice((2, 3, 4))
    for number in range(many):
        more: dict[str, Any] = {"apart": _apart(draw, number, draw.choice((HOST, ZONE)), 0.2)}
        if number:
            target = draw.randrange(number)
            if draw.random() < 0.7:
                more["near"] = ((draw.choice((HOST, ZONE)), target),)
            elif draw.random() < 0.5:
                more["apart"] += ((draw.choice((HOST, ZONE)), target),)
        elif draw.random() < 0.2:
            more["near"] = ((draw.choice((HOST, ZONE)), 0),)
        if draw.random() < 0.25:
            key = draw.choice((HOST, ZONE))
            more["spreads"] = ((key, draw.choice((1, 2)), (number,)),)
        if draw.random() < 0.2:
            more |= _pinned(draw)
        elif draw.random() < 0.2:
            more["pool"] = DB
        found.append(_group(draw, (1, 2, 3), **more))
    if not any(group.near or group.apart or group.spreads for group in found):
        return _everything(draw)
    return tuple(found)


SHAPES: Final[Mapping[str, Callable[[random.Random], tuple[Group, ...]]]] = {
    "on the host of another": _on_the_host,
    "apart on the host of another": _apart_on_the_host,
    "in the zone of another": _in_the_zone,
    "a pool in a zone": _pool_in_a_zone,
    "chain": _chain,
    "spread over zones": _spread_over_zones,
    "spread over hosts": _spread_over_hosts,
    "everything": _everything,
}
_WITH_NODES: Final = frozenset({"spread over hosts", "everything"})


def snapshot(stated: Problem) -> ClusterSnapshot:
    """Return the problem as a cluster whose pods wait."""
    waiting = [
        make.pod(f"g{index}-{number}", labels={"app": f"g{index}"}, scheduling=_asked(group))
        for index, group in enumerate(stated.groups)
        for number in range(group.pods)
    ]
    nodes, bound = [], []
    for number, standing in enumerate(stated.standing):
        name = f"n{number}"
        labels = {**make.node(name).labels, keys.ZONE: standing.zone, "pool": ANY}
        runs = sum(standing.runs)
        room = Resources.of(cpu=standing.cpu, memory=standing.memory, pods=20 + runs)
        nodes.append(make.node(name, labels=labels, allocatable=room, capacity=room))
        bound += [
            make.pod(
                f"b{number}-{index}-{count}",
                node_name=name,
                labels={"app": f"g{index}"},
                scheduling=replace(_asked(stated.groups[index]), requests=_ONE_POD),
            )
            for index, many in enumerate(standing.runs)
            for count in range(many)
        ]
    sites = tuple(make.site(name, zones) for name, zones in stated.pools.items())
    return make.snapshot(
        *waiting,
        provisioners=tuple(map(_pool, stated.pools)),
        sites=sites,
        nodes=tuple(nodes),
        bound=tuple(bound),
        instance_types=stated.types,
    )


_ONE_POD: Final = Resources.of(pods=1)
_ONLY_DB: Final = Taint(key=DB, effect=Effect.NO_SCHEDULE)


def _pool(name: str) -> Any:
    return make.provisioner(
        name,
        weight=10 if name == ANY else 1,
        requirements=Requirements.of(
            (
                Requirement.of(keys.CAPACITY_TYPE, "on-demand", "spot"),
                Requirement.of("pool", name),
            )
        ),
        taints=() if name == ANY else (_ONLY_DB,),
    )


def _asked(group: Group) -> Scheduling:
    selector = []
    if group.zones != ZONES and not group.by_volume:
        selector.append(Requirement.of(keys.ZONE, *group.zones))
    if group.pool != ANY:
        selector.append(Requirement.of("pool", group.pool))
    in_zones = Requirements.of((Requirement.of(keys.ZONE, *group.zones),))
    return make.scheduling(
        cpu=group.cpu,
        memory=group.memory,
        node_selector=Requirements.of(selector),
        volume_terms=((in_zones,),) if group.by_volume else (),
        tolerations=(
            *make.DEFAULT_TOLERATIONS,
            *(() if group.pool == ANY else (Toleration(key=DB, operator="Exists"),)),
        ),
        affinity=tuple(make.affinity(key, selector=_of((other,))) for key, other in group.near),
        anti_affinity=tuple(
            make.affinity(key, selector=_of((other,))) for key, other in group.apart
        ),
        spreads=tuple(
            make.spread(key, skew, selector=_of(counted)) for key, skew, counted in group.spreads
        ),
    )


def _of(groups: Sequence[int]) -> LabelSelector:
    names = [f"g{index}" for index in groups]
    return LabelSelector(requirements=Requirements.of((Requirement.of("app", *names),)))

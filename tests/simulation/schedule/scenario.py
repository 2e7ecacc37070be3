"""What happens in a schedule, drawn from its seed: clusters, workloads and when they change."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from infra.local.ec2.model import Replay
from shared.model import labels as keys
from shared.model.brakes import NO_CEILING, Brakes, Ceiling
from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.node_budgets import NodeBudget
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.values import replace
from tests.builders import CATALOG, GIB, MIB, ZONES, provisioner
from tests.simulation.cluster.workloads import FLOATING, JOB, STATEFUL, Workload
from tests.simulation.schedule.seeded_random import between, chosen, draw, whole

# Part of the schedules that sweep runs in.
SWEEPING: Final = 0.75
_BUDGETS: Final = (NodeBudget(percent=10),)
# Part of the clusters that have a ceiling of their own.
_CEILINGS: Final = 0.1


class Scaling(NamedTuple):
    """A user changes how many pods a workload has."""

    seconds: float
    workload: str
    replicas: int


class Hold(NamedTuple):
    """A user holds a whole cluster back, for a while."""

    begin: float
    end: float
    brakes: Brakes


@dataclass(frozen=True)
class ClusterScene:
    """One cluster: what its users declare and do.

    Attributes:
        ceiling: Of the whole cluster, whatever its Provisioners say.
    """

    name: str
    provisioners: tuple[Provisioner, ...]
    workloads: tuple[Workload, ...]
    scalings: tuple[Scaling, ...]
    holds: tuple[Hold, ...] = ()
    ceiling: Ceiling = NO_CEILING


@dataclass(frozen=True)
class Scene:
    """One schedule.

    Attributes:
        busy_seconds: Until when users act and faults happen.
        again_seconds: From when users repeat themselves, should the schedule last longer than
            that.
        whole: Whether enough must have happened before all comes to rest.
        skew: Most seconds a function's clock is wrong.
        slow: Whether EC2 may take longer than the consistency wait to show a machine.
    """

    seed: int
    clusters: tuple[ClusterScene, ...]
    sweeps: bool = True
    replay: Replay = Replay.SAME
    slow: bool = False
    skew: float = 0
    binding: str = "early"
    busy_seconds: float = 480
    again_seconds: float = math.inf
    whole: bool = False
    share: float = 1 / 12
    types: tuple[InstanceType, ...] = CATALOG


def draw_scene(seed: int) -> Scene:
    """Return the scene of a seed."""
    replay = chosen(tuple(Replay), seed, "replay")
    patient = replay in (Replay.SAME, Replay.PART)
    busy = between(155, 285, seed, "busy")
    count = 3 if draw(seed, "clusters") < 0.1 else 2
    return Scene(
        seed=seed,
        clusters=tuple(_cluster(seed, f"cluster-{value}") for value in "abc"[:count]),
        sweeps=draw(seed, "sweeps") < SWEEPING,
        replay=replay,
        slow=patient and draw(seed, "slow") < 0.3,
        skew=between(0, 3, seed, "skew"),
        binding=chosen(("early", "early", "early", "ready", "scheduler"), seed, "binding"),
        busy_seconds=busy,
        again_seconds=busy,
    )


def _cluster(seed: int, name: str) -> ClusterScene:
    workloads = tuple(_workloads(seed, name))
    held = any(one.unavailable is not None or one.never_evict for one in workloads)
    budgeted = draw(seed, name, "budgets") < 0.5
    scalings = [
        Scaling(
            between(0.5, 15, seed, name, "first", workload.name),
            workload.name,
            whole(1, 6, seed, name, "first size", workload.name),
        )
        for workload in workloads
    ]
    for number in range(whole(2, 5, seed, name, "scalings")):
        one = chosen(workloads, seed, name, "scaled", number)
        if one.kind != JOB:
            moment = between(20, 240, seed, name, "moment", number)
            scalings.append(Scaling(moment, one.name, whole(0, 7, seed, name, "size", number)))
    return ClusterScene(
        name=name,
        provisioners=tuple(
            # A drain that pods hold uses a budget of one up for as long.
            replace(owner, budgets=_BUDGETS) if budgeted and not held else owner
            for owner in _provisioners(seed, name)
        ),
        workloads=workloads,
        scalings=tuple(sorted(scalings)),
        holds=tuple(_holds(seed, name)),
        ceiling=_ceiling(seed, name),
    )


def _ceiling(seed: int, name: str) -> Ceiling:
    if draw(seed, name, "cluster ceiling") >= _CEILINGS:
        return NO_CEILING
    return Ceiling(
        max_nodes=whole(2, 8, seed, name, "most nodes of all"),
        max_price_micros_per_hour=100_000 * whole(4, 15, seed, name, "most dollars of all"),
    )


def _holds(seed: int, name: str) -> Iterable[Hold]:
    """Yield at most one pause or time in shadow mode; what ends with it is woken by sweep."""
    if draw(seed, "sweeps") < SWEEPING and draw(seed, name, "held") < 0.12:
        begin = between(5, 150, seed, name, "held from")
        shadow = draw(seed, name, "shadow") < 0.3
        span = between(10, 90, seed, name, "held for")
        yield Hold(begin, begin + span, Brakes(paused=not shadow, shadow=shadow))


def _workloads(seed: int, name: str) -> Iterable[Workload]:
    for number in range(whole(1, 3, seed, name, "workloads")):
        where = (seed, name, "workload", number)
        kind = FLOATING
        if number:
            kind = chosen((FLOATING, STATEFUL, JOB), *where, "kind")
        volumes = kind == STATEFUL and draw(*where, "volumes") < 0.5
        yield Workload(
            name=f"{kind.lower()}-{number}",
            kind=kind,
            cpu=100 * whole(3, 17, *where, "cpu"),
            memory=256 * MIB * whole(1, 8, *where, "memory"),
            unavailable=1 if kind != JOB and draw(*where, "budget") < 0.4 else None,
            seconds=between(30, 150, *where, "seconds") if kind == JOB else 0,
            never_evict=kind == JOB and draw(*where, "never") < 0.3,
            zone=chosen(ZONES, *where, "zone") if draw(*where, "zoned") < 0.2 else "",
            volumes=volumes,
            unprovisioned=volumes and draw(*where, "unprovisioned") < 0.25,
        )


def _provisioners(seed: int, name: str) -> Iterable[Provisioner]:
    ways = chosen((("on-demand",), ("spot", "on-demand"), ("spot",)), seed, name, "ways")
    requirements = Requirements.of(
        (Requirement.of(keys.CAPACITY_TYPE, *ways), Requirement.of(keys.ARCH, "amd64"))
    )
    limits = None
    if draw(seed, name, "limited") < 0.4:
        limits = Resources.of(cpu=2000 * whole(3, 10, seed, name, "limit"), memory=400 * GIB)
    ceiling = NO_CEILING
    if limits is None and draw(seed, name, "ceiling") < 0.2:
        ceiling = Ceiling(
            max_nodes=whole(2, 6, seed, name, "most nodes"),
            max_price_micros_per_hour=100_000 * whole(3, 12, seed, name, "most dollars"),
        )
    consolidates = draw(seed, name, "consolidates") < 0.2
    starting = Taint(key="example.com/starting", effect=Effect.NO_SCHEDULE)
    first = provisioner(
        uid=f"uid-{name}-default",
        requirements=requirements,
        limits=limits,
        consolidation=consolidates,
        ttl_after_empty=(
            timedelta(seconds=30) if not consolidates and draw(seed, name, "ttl") < 0.85 else None
        ),
        ttl_until_expired=(
            timedelta(seconds=whole(300, 900, seed, name, "age"))
            # At a limit a drain that a budget holds could never end: nothing may replace its pods.
            if limits is None
            and not (ceiling or _ceiling(seed, name))
            and draw(seed, name, "expires") < 0.4
            else None
        ),
        startup_taints=(starting,) if draw(seed, name, "starting") < 0.2 else (),
        ceiling=ceiling,
    )
    yield first
    if draw(seed, name, "second") < 0.3:
        yield replace(first, name="second", uid=f"uid-{name}-second", weight=10)

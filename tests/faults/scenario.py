"""What happens in a schedule, drawn from its seed: clusters, workloads and when they change."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from shared.model import labels as keys
from shared.model.instance_types import InstanceType
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources
from shared.model.taints import Effect, Taint
from tests.builders import CATALOG, GIB, MIB, ZONES, provisioner
from tests.faults.chances import between, chosen, draw, whole
from tests.faults.machines import Replay
from tests.faults.workloads import FLOATING, JOB, STATEFUL, Workload


class Scaling(NamedTuple):
    """A user changes how many pods a workload has."""

    seconds: float
    workload: str
    replicas: int


@dataclass(frozen=True)
class ClusterScene:
    """One cluster: what its users declare and do."""

    name: str
    provisioners: tuple[Provisioner, ...]
    workloads: tuple[Workload, ...]
    scalings: tuple[Scaling, ...]


@dataclass(frozen=True)
class Scene:
    """One schedule.

    Attributes:
        busy_seconds: Until when users act and faults happen.
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
    share: float = 1 / 12
    types: tuple[InstanceType, ...] = CATALOG


def draw_scene(seed: int) -> Scene:
    """Return the scene of a seed."""
    replay = chosen(tuple(Replay), seed, "replay")
    patient = replay in (Replay.SAME, Replay.PART)
    count = 3 if draw(seed, "clusters") < 0.1 else 2
    return Scene(
        seed=seed,
        clusters=tuple(_cluster(seed, f"cluster-{one}") for one in "abc"[:count]),
        sweeps=draw(seed, "sweeps") < 0.75,
        replay=replay,
        slow=patient and draw(seed, "slow") < 0.3,
        skew=between(0, 3, seed, "skew"),
        binding=chosen(("early", "early", "early", "ready", "scheduler"), seed, "binding"),
        busy_seconds=between(300, 600, seed, "busy"),
    )


def _cluster(seed: int, name: str) -> ClusterScene:
    workloads = tuple(_workloads(seed, name))
    scalings = [
        Scaling(
            between(0.5, 15, seed, name, "first", one.name),
            one.name,
            whole(1, 6, seed, name, "first size", one.name),
        )
        for one in workloads
    ]
    for number in range(whole(2, 5, seed, name, "scalings")):
        one = chosen(workloads, seed, name, "scaled", number)
        if one.kind != JOB:
            moment = between(20, 420, seed, name, "moment", number)
            scalings.append(Scaling(moment, one.name, whole(0, 7, seed, name, "size", number)))
    return ClusterScene(
        name=name,
        provisioners=tuple(_provisioners(seed, name)),
        workloads=workloads,
        scalings=tuple(sorted(scalings)),
    )


def _workloads(seed: int, name: str) -> Iterable[Workload]:
    for number in range(whole(1, 3, seed, name, "workloads")):
        where = (seed, name, "workload", number)
        kind = FLOATING
        if number:
            kind = chosen((FLOATING, STATEFUL, JOB), *where, "kind")
        yield Workload(
            name=f"{kind.lower()}-{number}",
            kind=kind,
            cpu=100 * whole(3, 17, *where, "cpu"),
            memory=256 * MIB * whole(1, 8, *where, "memory"),
            unavailable=1 if kind != JOB and draw(*where, "budget") < 0.4 else None,
            seconds=between(30, 150, *where, "seconds") if kind == JOB else 0,
            never_evict=kind == JOB and draw(*where, "never") < 0.3,
            zone=chosen(ZONES, *where, "zone") if draw(*where, "zoned") < 0.2 else "",
        )


def _provisioners(seed: int, name: str) -> Iterable[Provisioner]:
    ways = chosen((("on-demand",), ("spot", "on-demand"), ("spot",)), seed, name, "ways")
    requirements = Requirements.of(
        (Requirement.of(keys.CAPACITY_TYPE, *ways), Requirement.of(keys.ARCH, "amd64"))
    )
    limits = None
    if draw(seed, name, "limited") < 0.4:
        limits = Resources.of(cpu=2000 * whole(3, 10, seed, name, "limit"), memory=400 * GIB)
    starting = Taint(key="example.com/starting", effect=Effect.NO_SCHEDULE)
    first = provisioner(
        uid=f"uid-{name}-default",
        requirements=requirements,
        limits=limits,
        ttl_after_empty=timedelta(seconds=30) if draw(seed, name, "ttl") < 0.85 else None,
        ttl_until_expired=(
            timedelta(seconds=whole(300, 900, seed, name, "age"))
            # At a limit a drain that a budget holds could never end: nothing may replace its pods.
            if limits is None and draw(seed, name, "expires") < 0.4
            else None
        ),
        startup_taints=(starting,) if draw(seed, name, "starting") < 0.2 else (),
    )
    yield first
    if draw(seed, name, "second") < 0.3:
        yield replace(first, name="second", uid=f"uid-{name}-second", weight=10)

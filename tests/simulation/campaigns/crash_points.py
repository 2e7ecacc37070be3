"""Every outside call of growing and shrinking, each failing once in every way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.requirements import Requirement, Requirements
from tests.builders import provisioner
from tests.simulation.cluster.workloads import FLOATING, JOB, STATEFUL, Workload
from tests.simulation.schedule.faults import SWEPT, CallFault, CallFaults, Site
from tests.simulation.schedule.running import Outcome, run_scene
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene

# Sweep does the same every minute: its first two runs represent all.
_LOOKS: Final = 2
_ANY_WAY: Final = Requirements.of(
    (Requirement.of(keys.CAPACITY_TYPE, "spot", "on-demand"), Requirement.of(keys.ARCH, "amd64"))
)


def _grows_and_shrinks(name: str) -> ClusterScene:
    """Pods come in two waves and all go again: nodes become empty and are removed."""
    return ClusterScene(
        name=name,
        provisioners=(
            provisioner(
                uid=f"uid-{name}",
                requirements=_ANY_WAY,
                ttl_after_empty=timedelta(seconds=30),
                ttl_until_expired=timedelta(days=30),
            ),
        ),
        workloads=(
            Workload(name="web", kind=FLOATING, cpu=1500),
            Workload(name="db", kind=STATEFUL, cpu=1200, zone="us-east-1b"),
        ),
        scalings=(
            Scaling(1, "web", 2),
            Scaling(2, "db", 1),
            Scaling(50, "web", 3),
            Scaling(120, "web", 0),
            Scaling(120, "db", 0),
        ),
    )


def _drains(name: str) -> ClusterScene:
    """Nodes expire under pods that a budget guards; a job must not be disturbed."""
    return ClusterScene(
        name=name,
        provisioners=(
            provisioner(
                uid=f"uid-{name}",
                ttl_after_empty=timedelta(seconds=30),
                ttl_until_expired=timedelta(seconds=90),
            ),
        ),
        workloads=(
            Workload(name="api", kind=FLOATING, cpu=800, unavailable=1),
            Workload(name="job", kind=JOB, cpu=700, seconds=40, never_evict=True),
        ),
        scalings=(Scaling(1, "api", 2), Scaling(1, "job", 1), Scaling(200, "api", 0)),
    )


SCENES: Final[Sequence[Scene]] = (
    Scene(seed=11, clusters=(_grows_and_shrinks("cluster-a"),), busy_seconds=320),
    Scene(seed=12, clusters=(_drains("cluster-b"),), busy_seconds=320),
)


@dataclass(frozen=True)
class Point:
    """One failure of one call of one of the scenes."""

    scene: Scene
    fault: CallFault
    kind: str
    when: str


def clean(scene: Scene) -> tuple[Outcome, Mapping[Site, int]]:
    """Return how a scene goes when nothing fails, and how often each site is called."""
    faults = CallFaults.only((), 0)
    outcome = run_scene(scene, faults)
    return outcome, {k: n for k, n in faults.counts.items() if k in outcome.sites}


def points() -> Sequence[Point]:
    """Return every failure of every call, in the order of scenes, sites and calls."""
    return [
        Point(scene, CallFault(site, number, action), kind, when)
        for scene in SCENES
        for site, count in sorted(clean(scene)[1].items())
        for number in range(1, 1 + _calls(site, count))
        for kind, before, after in SWEPT
        for when, action in (("before", before), ("after", after))
    ]


def _calls(site: Site, count: int) -> int:
    return min(count, _LOOKS) if site.function == "sweep" else count


@dataclass(frozen=True)
class Result:
    """How a scene ended after one failure; nothing broken when all was well."""

    point: Point
    broken: str = ""


def run_part(number: int, parts: int) -> list[Result]:
    """Run every so-many-th point, from a number on."""
    return [_run(point) for point in points()[number::parts]]


def _run(point: Point) -> Result:
    outcome = run_scene(point.scene, CallFaults.only([point.fault], 0))
    if not outcome.broken and not outcome.fired:
        return Result(point, "the call was never made")
    return Result(point, outcome.text)

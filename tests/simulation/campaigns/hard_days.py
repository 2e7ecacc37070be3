"""Hard days: no capacity for an hour and a half, a throttled account, a thousand nodes at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.requirements import Requirement, Requirements
from tests.builders import GIB, ZONES, provisioner
from tests.fakes.catalog import FakeCatalog
from tests.simulation.aws.functions import cut
from tests.simulation.campaigns.crash_points import SCENES
from tests.simulation.cluster.workloads import FLOATING, JOB, STATEFUL, Workload
from tests.simulation.laws.quiescence import unrest
from tests.simulation.schedule.faults import CallFaults
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene
from tests.simulation.schedule.seeded_random import draw
from tests.simulation.schedule.world import World

_SECOND: Final = 1_000_000
# So few of 110 offerings have any machines; in the published storm 42 tries of 100 succeeded.
_AVAILABLE: Final = 6
# Machines that share a call of EC2 at least, and the calls that a few alone may take besides.
_TOGETHER: Final = 50
_FEW: Final = 6
_FAMILIES: Final = ("m5", "m5a", "m6a", "m6i", "r5", "r5a", "r6a", "r6i", "c5", "c6a", "c6i", "m7i")


def run(world: World, seconds: float, *, until_quiet: float = 0, end: bool = True) -> list[str]:
    """Let a world go on; return what is not in order at its end.

    Args:
        end: Whether that is the end of the world.
    """
    with cut(world.functions, lambda text, reason: world.delivery.dead.append(text)):
        try:
            world.kernel.run_until(world.kernel.time + int(seconds * _SECOND))
            left = unrest(world)
            for _ in range(int(until_quiet / 30)):
                if not left:
                    break
                world.kernel.run_until(world.kernel.time + 30 * _SECOND)
                left = unrest(world)
        finally:
            if end:
                world.kernel.end()
    left += [f"dead letter: {value}" for value in world.delivery.dead]
    return left + [f"timer: {value}" for value in world.timers.failed]


@dataclass(frozen=True)
class Storm:
    """What came of the storm.

    Attributes:
        first_success: Number of the first CreateFleet call that launched anything.
    """

    minutes: int
    attempts: int
    failed: int
    first_success: int
    machines: int
    pods: int
    left: tuple[str, ...]


def storm(minutes: int = 90, seed: int = 1) -> Storm:
    """Replay the published storm: 13 pods a minute, each a machine, and hardly any to be had."""
    types = FakeCatalog.embedded(*(f"{value}.2xlarge" for value in _FAMILIES)).instance_types()
    requirements = Requirements.of(
        (
            Requirement.of(keys.CAPACITY_TYPE, "spot", "on-demand"),
            Requirement.of(keys.ARCH, "amd64"),
        )
    )
    job = Workload(name="job", kind=JOB, cpu=6500, memory=4 * GIB, seconds=240)
    waves = [Scaling(60 * n + 1, "job", 13 * (n + 1)) for n in range(minutes)]
    scene = Scene(
        seed=seed,
        clusters=(
            ClusterScene(
                name="cluster-a",
                provisioners=(
                    provisioner(requirements=requirements, ttl_after_empty=timedelta(seconds=30)),
                ),
                workloads=(job,),
                scalings=tuple(waves),
            ),
        ),
        types=types,
    )
    world = World(scene, CallFaults.only((), 0))
    prices = world.clouds["cluster-a"].prices
    left_over = sorted(prices, key=lambda price: draw(seed, "left over", price))[:_AVAILABLE]
    for offering in prices:
        if offering not in left_over:
            world.region.run_out(offering, minutes * 60 * _SECOND, 0)
    left = run(world, 60 * minutes, until_quiet=900)
    region = world.region
    return Storm(
        minutes=minutes,
        attempts=region.calls,
        failed=region.failed,
        first_success=region.first_success,
        machines=len(region.machines),
        pods=13 * minutes,
        left=tuple(left[:3]),
    )


@dataclass(frozen=True)
class Throttling:
    """Calls with and without every second one throttled."""

    methods: tuple[str, ...]
    calls: int
    calls_throttled: int
    redelivered: int
    left: tuple[str, ...]

    @property
    def factor(self) -> float:
        return self.calls_throttled / self.calls

    @property
    def most_factor(self) -> float:
        """What is not too many: each call twice.

        Of all methods once more: a launch that is throttled is carried out by another plan, which
        asks for the instances anew.
        """
        return 2.0 if self.methods == FLEET_CALLS else 3.0


FLEET_CALLS: Final = ("create_fleet",)
EC2_CALLS: Final = (
    "create_fleet",
    "instances",
    "tagged_instances",
    "terminate",
    "ensure_launch_template",
)


def throttled(methods: tuple[str, ...] = EC2_CALLS) -> Throttling:
    """Grow and shrink a cluster while every second call of each method is throttled."""
    counts = []
    left: list[str] = []
    redelivered = 0
    for every_second in (frozenset[str](), frozenset(methods)):
        world = World(SCENES[0], CallFaults.only((), 0))
        world.recorder.every_second = every_second
        left = run(world, 320, until_quiet=600)
        counts.append(sum(world.recorder.made[method] for method in methods))
        redelivered = world.delivery.redelivered
    return Throttling(methods, counts[0], counts[1], redelivered, tuple(left[:3]))


@dataclass(frozen=True)
class Burst:
    """A thousand machines at once: how many calls it took."""

    machines: int
    launch_groups: int
    calls: Mapping[str, int]
    left: tuple[str, ...]

    @property
    def allowed(self) -> int:
        """CreateFleet calls that are not too many."""
        return max(20, self.launch_groups)

    @property
    def together(self) -> int:
        """Calls by instance id that are not too many: one for so many machines, and a few more."""
        return _FEW + -(-self.machines // _TOGETHER)

    @property
    def bars(self) -> str:
        """What the page says beside the calls."""
        return f"create_fleet {self.allowed}; instances, terminate {self.together}"

    @property
    def missed(self) -> bool:
        """Whether it took too many calls, or something was left undone."""
        return bool(self.left) or any(
            self.calls[name] > most
            for name, most in (
                ("create_fleet", self.allowed),
                ("instances", self.together),
                ("terminate", self.together),
            )
        )


def burst(nodes: int = 1000) -> Burst:
    """Let pods of mixed shapes come that need so many machines, and go again."""
    share = nodes // 10
    shapes = [
        Workload(name=f"large-{zone[-1]}-{cpu}", kind=FLOATING, cpu=cpu, memory=4 * GIB, zone=zone)
        for zone in ZONES
        for cpu in (7000, 6500, 6000)
    ]
    small = Workload(name="small", kind=FLOATING, cpu=3500, memory=4 * GIB)
    scalings = [Scaling(1, shape.name, share) for shape in shapes]
    scalings += [Scaling(1, "small", 2 * share)]
    ended = [Scaling(400, scaling.workload, 0) for scaling in scalings]
    scene = Scene(
        seed=5,
        clusters=(
            ClusterScene(
                name="cluster-a",
                provisioners=(provisioner(ttl_after_empty=timedelta(seconds=30)),),
                workloads=(*shapes, small),
                scalings=(*scalings, *ended),
            ),
        ),
    )
    world = World(scene, CallFaults.only((), 0))
    left = run(world, 410, until_quiet=900)
    groups = {*world.ledger.intents, *world.ledger.closed}
    return Burst(
        machines=len(world.region.machines),
        launch_groups=len(groups),
        calls={value: world.recorder.made[value] for value in EC2_CALLS},
        left=tuple(left[:3]),
    )


@dataclass(frozen=True)
class Runaway:
    """An hour in which machines are not of use to the pod they were bought for.

    Attributes:
        running: Pods that run at its end.
        events: Reasons of the Kubernetes Events about the pod or its Provisioner.
    """

    minutes: int
    machines: int
    running: int
    events: tuple[str, ...]


def runaway(minutes: int = 60, *, smaller: bool = False, unprovisioned: bool = False) -> Runaway:
    """Let one pod come that is never bound, or whose machines never join or are smaller."""
    kind = STATEFUL if unprovisioned else FLOATING
    pod = Workload(name="web", kind=kind, cpu=1700, unprovisioned=unprovisioned)
    scene = Scene(
        seed=3,
        binding="scheduler" if unprovisioned else "early",
        clusters=(
            ClusterScene(
                name="cluster-a",
                provisioners=(provisioner(ttl_after_empty=timedelta(seconds=30)),),
                workloads=(pod,),
                scalings=(Scaling(1, "web", 1),),
            ),
        ),
    )
    world = World(scene, CallFaults.only((), 0))
    side, api = world.sides["cluster-a"], world.apis["cluster-a"]
    side.always_smaller, side.never_joins = smaller, not (smaller or unprovisioned)
    run(world, 60 * minutes)
    return Runaway(
        minutes=minutes,
        machines=len(world.region.machines),
        running=sum(pod.phase == "Running" for pod in api.pods.values()),
        events=tuple(
            sorted(
                {kube_event.reason for kube_event in api.kube_events if kube_event.kind != "Node"}
            )
        ),
    )

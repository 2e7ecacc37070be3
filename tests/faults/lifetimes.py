"""How soon an empty node is gone, and a node that AWS takes is replaced."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from shared.model import labels as keys
from shared.model.requirements import Requirement, Requirements
from shared.services.launch_body import LaunchBody
from tests.builders import GIB, provisioner
from tests.faults.chances import between
from tests.faults.faults import CallFaults, Site
from tests.faults.kernel import Process
from tests.faults.machines import Machine
from tests.faults.scenario import ClusterScene, Scaling, Scene, draw_scene
from tests.faults.storms import run
from tests.faults.workloads import FLOATING, Workload
from tests.faults.world import World

_SECOND: Final = 1_000_000
_REASON: Final = "emptiness"
# What may go wrong while a node's last seconds are measured: machines, kubelets and EC2, but no
# function, message or timer.
_ELSEWHERE: Final = frozenset({"machine", "kubelet", "ec2"})
# So many invocations run at once; the rest waits in Lambda's own queue.
_AT_ONCE: Final = 100


@dataclass
class _Ends:
    """Watches one cluster of a world: since when nodes are empty, and when they are gone."""

    world: World
    cluster: str
    since: dict[str, int] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        api, ledger, time = self.world.apis[self.cluster], self.world.ledger, self.world.kernel.time
        promised = {one.instance_id for one in ledger.slots(self.cluster)}
        ttl_of = {one.name: one.ttl_after_empty for one in api.provisioner_values.values()}
        used = {one.node_name for one in api.pods.values() if one.counts_for_emptiness}
        for name, node in api.node_values.items():
            ttl = ttl_of.get(node.provisioner)
            if node.deletion_at is not None:
                if node.annotations.get(keys.REMOVAL_REASON) != _REASON:
                    self.since.pop(name, None)
                continue
            if ttl is None:
                continue
            if not node.is_initialized or name in used or node.instance_id in promised:
                self.since.pop(name, None)
            else:
                self.since.setdefault(name, time + int(ttl.total_seconds() * _SECOND))
        for name in [one for one in self.since if one not in api.node_values]:
            self.gone[name] = (time - self.since.pop(name)) / _SECOND

    def ending(self, machine: Machine) -> None:
        due = self.since.get(machine.instance.private_dns_name)
        if machine.cluster == self.cluster and due is not None and not machine.taken:
            self.ended[machine.instance.private_dns_name] = (self.world.kernel.time - due) / _SECOND


@dataclass(frozen=True)
class Emptied:
    """How long after its ttl an empty node's machine was asked to end, and its Node was gone.

    Attributes:
        ended_seconds: One for each machine, sorted.
        gone_seconds: One for each Node, sorted.
    """

    schedules: int
    ended_seconds: tuple[float, ...]
    gone_seconds: tuple[float, ...]


def emptied(schedules: int, first: int = 0) -> Emptied:
    """Run schedules in which functions and messages do not fail, and measure empty nodes."""
    ended: list[float] = []
    gone: list[float] = []
    for seed in range(first, first + schedules):
        scene = replace(draw_scene(seed), sweeps=True)
        quiet = tuple(replace(one, holds=()) for one in scene.clusters)
        faults = CallFaults(seed, share=0, elsewhere=_ELSEWHERE)
        faults.until = int(scene.busy_seconds * _SECOND)
        world = World(replace(scene, clusters=quiet), faults)
        watchers = [_Ends(world, one.name) for one in quiet]
        for one in watchers:
            world.apis[one.cluster].watched.append(one.look)
            world.endings.append(one.ending)
        run(world, scene.busy_seconds, until_quiet=600)
        for one in watchers:
            ended.extend(one.ended.values())
            gone.extend(one.gone.values())
    return Emptied(schedules, tuple(sorted(ended)), tuple(sorted(gone)))


@dataclass
class _Asked:
    """Watches what is asked of EC2 for the workloads of machines that AWS takes.

    Attributes:
        waiting: When each workload was warned of losing its machine, until one is asked for.
    """

    world: World
    waiting: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def notice(self, machine: Machine) -> None:
        """Note a warning."""
        for pod in self.world.apis["cluster-a"].pods_of_node(machine.instance.private_dns_name):
            self.waiting[pod.labels["app"]] = self.world.kernel.time

    def before(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        """Note what is asked for."""
        if site.method == "create_fleet":
            for name in _workloads_of(self.world, cluster, args[0]) & self.waiting.keys():
                begun = self.waiting.pop(name)
                self.seconds.append((self.world.kernel.time - begun) / _SECOND)


def _workloads_of(world: World, cluster: str, request: Mapping[str, Any]) -> frozenset[str]:
    tags = {
        one["Key"]: one["Value"] for spec in request["TagSpecifications"] for one in spec["Tags"]
    }
    intent = world.ledger.intents[cluster, tags[keys.TAG_PLAN], int(tags[keys.TAG_GROUP])]
    attempt = LaunchBody.from_bytes(world.decisions.documents[intent.body_key]).attempt
    return frozenset(ref.name.rpartition("-")[0] for slot in attempt.slots for ref in slot.pods)


@dataclass(frozen=True)
class Notices:
    """What became of a storm of notices.

    Attributes:
        ours: How many were about machines of ours.
        absorbed_seconds: From the first until the last was dealt with.
        asked_seconds: For each of those, from the warning until EC2 is asked for what replaces
            it; sorted.
        unasked: How many were not replaced.
        left: What was not in order at the end.
    """

    notices: int
    ours: int
    absorbed_seconds: float
    asked_seconds: tuple[float, ...]
    unasked: int
    left: tuple[str, ...]

    @property
    def p99_seconds(self) -> float:
        """Return the time within which 99 of 100 were asked for."""
        return self.asked_seconds[int(0.99 * (len(self.asked_seconds) - 1))]


def notices(count: int = 15_000, nodes: int = 200, spread: float = 1.0) -> Notices:
    """Warn machines of ours, among many notices that are about others.

    Args:
        spread: Seconds within which all notices come.
    """
    ways = (Requirement.of(keys.CAPACITY_TYPE, "spot"), Requirement.of(keys.ARCH, "amd64"))
    # Each fills a machine: none finds room on another's.
    pods = [
        Workload(name=f"web-{n}", kind=FLOATING, cpu=6500, memory=4 * GIB) for n in range(nodes)
    ]
    scene = Scene(
        seed=9,
        clusters=(
            ClusterScene(
                name="cluster-a",
                provisioners=(
                    provisioner(
                        requirements=Requirements.of(ways), ttl_after_empty=timedelta(seconds=30)
                    ),
                ),
                workloads=tuple(pods),
                scalings=tuple(Scaling(1, one.name, 1) for one in pods),
            ),
        ),
    )
    world = World(scene, CallFaults.only((), 0))
    run(world, 240, end=False)
    asked = _Asked(world)
    world.invariants.also = asked.before
    taken = world.region.alive("cluster-a")
    begun, answered = world.kernel.time, _Queue(world)
    every = max(count // max(len(taken), 1), 1)
    for number in range(count):
        late = between(0, spread, scene.seed, "notice", number)
        if number % every == 0 and number // every < len(taken):
            machine = taken[number // every]
            world.kernel.after(late, lambda one=machine: answered.warn(one, asked))  # type: ignore[misc]
        else:
            world.kernel.after(late, lambda n=number: answered.put(f"i-f{n:016x}"))  # type: ignore[misc]
    left = run(world, 120, until_quiet=600)
    return Notices(
        notices=count,
        ours=len(taken),
        absorbed_seconds=(answered.last - begun) / _SECOND,
        asked_seconds=tuple(sorted(asked.seconds)),
        unasked=len(asked.waiting),
        left=tuple(left[:3]),
    )


@dataclass(frozen=True)
class Blocked:
    """An hour in which a budget lets no pod of expired nodes go.

    Attributes:
        first: Machines that stood before any was old.
        machines: Machines launched in all.
        moved: Pods that did not stay where they were.
    """

    minutes: int
    first: int
    machines: int
    moved: int

    @property
    def is_breeding(self) -> bool:
        """Whether nodes were bought again and again, or pods moved against their budget."""
        return self.machines > 2 * self.first or self.moved > 0


def blocked(minutes: int = 60) -> Blocked:
    """Let nodes grow old whose pods nobody may evict."""
    pods = Workload(name="web", kind=FLOATING, cpu=3500, unavailable=0)
    owner = provisioner(
        ttl_after_empty=timedelta(seconds=30), ttl_until_expired=timedelta(seconds=240)
    )
    cluster = ClusterScene(
        name="cluster-a",
        provisioners=(owner,),
        workloads=(pods,),
        scalings=(Scaling(1, "web", 4),),
    )
    world = World(Scene(seed=4, clusters=(cluster,)), CallFaults.only((), 0))
    run(world, 200, end=False)
    first, api = len(world.region.machines), world.apis["cluster-a"]
    before = {one.uid for one in api.pods.values()}
    run(world, 60 * minutes)
    return Blocked(
        minutes=minutes,
        first=first,
        machines=len(world.region.machines),
        moved=len(before - {one.uid for one in api.pods.values()}),
    )


class _Queue:
    """Lambda's own queue before a function that is called without waiting."""

    def __init__(self, world: World) -> None:
        self.last = 0
        self._world = world
        self._waiting: list[Mapping[str, Any]] = []
        self._running = 0

    def warn(self, machine: Machine, asked: _Asked) -> None:
        asked.notice(machine)
        self.put(machine.instance.instance_id)
        self._world.kernel.after(120, lambda: self._world.region.end(machine))

    def put(self, instance_id: str) -> None:
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        kind = "EC2 Spot Instance Interruption Warning"
        self._waiting.append({"source": "aws.ec2", "detail-type": kind, "detail": detail})
        self._next()

    def _next(self) -> None:
        while self._waiting and self._running < _AT_ONCE:
            self._running += 1
            self._world.functions("interrupt", self._waiting.pop(0), self._over)

    def _over(self, outcome: object) -> None:
        assert outcome is None, outcome
        self._running -= 1
        self.last = self._world.kernel.time
        self._next()

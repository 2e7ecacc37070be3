"""How soon what AWS takes is replaced: spot warnings one by one, and a storm of notices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from shared.model import labels as keys
from shared.model.requirements import Requirement, Requirements
from shared.snapshot.launch_body import LaunchBody
from tests.builders import GIB, provisioner
from tests.simulation.aws.machines import Machine
from tests.simulation.campaigns.hard_days import run
from tests.simulation.cluster.kept import Logged
from tests.simulation.cluster.workloads import FLOATING, Workload
from tests.simulation.schedule.faults import CallFaults, Site
from tests.simulation.schedule.kernel import Process
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene
from tests.simulation.schedule.seeded_random import between
from tests.simulation.schedule.world import World

_SECOND: Final = 1_000_000
# So many invocations run at once; the rest waits in Lambda's own queue.
_AT_ONCE: Final = 100


@dataclass
class _Asked:
    """Watches the requests to EC2 for the workloads of interrupted machines.

    Each workload fills a machine, and all are alike: a pod may take the machine that was requested
    for another pod, whose own is requested later. A machine for a workload that does not wait is
    therefore counted for the workload that has waited longest.

    Attributes:
        waiting: When each workload was warned of losing its machine, until one is asked for.
        extra: Machines requested although no workload waited.
    """

    world: World
    waiting: dict[str, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    extra: int = 0
    _slots: set[tuple[str, int, int]] = field(default_factory=set)

    def notice(self, machine: Machine) -> None:
        """Note a warning."""
        for pod in self.world.apis["cluster-a"].pods_of_node(machine.instance.private_dns_name):
            self.waiting[pod.labels["app"]] = self.world.kernel.time

    def before(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        """Note what is asked for."""
        if site.method == "create_fleet":
            for name in self._workloads_of(cluster, args[0]):
                self._asked(name)

    def _asked(self, name: str) -> None:
        if name not in self.waiting:
            if not self.waiting:
                self.extra += 1
                return
            name = min(self.waiting, key=lambda entry: (self.waiting[entry], entry))
        begun = self.waiting.pop(name)
        self.seconds.append((self.world.kernel.time - begun) / _SECOND)

    def _workloads_of(self, cluster: str, request: Mapping[str, Any]) -> list[str]:
        """Return the workload of each machine that is requested for the first time."""
        tags = {
            tag["Key"]: tag["Value"]
            for spec in request["TagSpecifications"]
            for tag in spec["Tags"]
        }
        plan, group = tags[keys.TAG_PLAN], int(tags[keys.TAG_GROUP])
        intent = self.world.ledger.intents[cluster, plan, group]
        attempt = LaunchBody.from_bytes(self.world.decisions.documents[intent.body_key]).attempt
        fresh = [slot for slot in attempt.slots if (plan, group, slot.number) not in self._slots]
        self._slots |= {(plan, group, promised_slot.number) for promised_slot in fresh}
        names = [promised_slot.pods[0].name.rpartition("-")[0] for promised_slot in fresh]
        return sorted(names, key=lambda name: (name not in self.waiting, name))


@dataclass(frozen=True)
class Notices:
    """The result of a storm of notices.

    Attributes:
        ours: How many were about Dovetail's machines.
        absorbed_seconds: From the first until the last was dealt with.
        asked_seconds: For each of those, from the warning until EC2 is asked for what replaces
            it; sorted.
        unasked: How many were not replaced.
        extra: Machines asked for although none was missing.
        left: What was not in order at the end.
    """

    notices: int
    ours: int
    absorbed_seconds: float
    asked_seconds: tuple[float, ...]
    unasked: int
    extra: int
    left: tuple[str, ...]

    @property
    def p99_seconds(self) -> float:
        """Return the time within which 99 of 100 were asked for."""
        return self.asked_seconds[int(0.99 * (len(self.asked_seconds) - 1))]


def notices(count: int = 15_000, nodes: int = 200, spread: float = 1.0, seed: int = 9) -> Notices:
    """Warn Dovetail's machines, among many notices that are about others.

    Args:
        spread: Seconds within which all notices come.
        seed: Of the times of notices and answers.
    """
    ways = (Requirement.of(keys.CAPACITY_TYPE, "spot"), Requirement.of(keys.ARCH, "amd64"))
    # Each fills a machine: none finds room on another's.
    pods = [
        Workload(name=f"web-{n}", kind=FLOATING, cpu=6500, memory=4 * GIB) for n in range(nodes)
    ]
    scene = Scene(
        seed=seed,
        clusters=(
            ClusterScene(
                name="cluster-a",
                provisioners=(
                    provisioner(
                        requirements=Requirements.of(ways), ttl_after_empty=timedelta(seconds=30)
                    ),
                ),
                workloads=tuple(pods),
                scalings=tuple(Scaling(1, pod.name, 1) for pod in pods),
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
            world.kernel.after(late, lambda entry=machine: answered.warn(entry, asked))  # type: ignore[misc]
        else:
            world.kernel.after(late, lambda n=number: answered.put(f"i-f{n:016x}"))  # type: ignore[misc]
    left = run(world, 120, until_quiet=600)
    return Notices(
        notices=count,
        ours=len(taken),
        absorbed_seconds=(answered.last - begun) / _SECOND,
        asked_seconds=tuple(sorted(asked.seconds)),
        unasked=len(asked.waiting),
        extra=asked.extra - _lost(world, {machine.instance.instance_id for machine in taken}),
        left=tuple(left[:3]),
    )


def together(parts: Sequence[Notices]) -> Notices:
    """Return the measurements of several worlds as one.

    Args:
        parts: At least one.
    """
    return Notices(
        notices=sum(part.notices for part in parts),
        ours=sum(part.ours for part in parts),
        absorbed_seconds=max(part.absorbed_seconds for part in parts),
        asked_seconds=tuple(sorted(second for part in parts for second in part.asked_seconds)),
        unasked=sum(part.unasked for part in parts),
        extra=sum(part.extra for part in parts),
        left=tuple(text for part in parts for text in part.left),
    )


def _lost(world: World, taken: set[str]) -> int:
    """Return how many new Nodes the cloud controller deleted as EC2 did not show their machine.

    Each is replaced. What Dovetail removes by itself has been Ready.
    """
    nodes = world.apis["cluster-a"].node_values
    assert isinstance(nodes, Logged)
    return len(
        {
            node.instance_id
            for _, _, node in nodes.log
            if node is not None
            and node.deletion_at is not None
            and node.ready is None
            and node.instance_id not in taken
        }
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
        self._world.region.lacking.add(machine.instance.offering)
        self.put(machine.instance.instance_id)
        self._world.kernel.after(120, lambda: self._world.region.end(machine))

    def put(self, instance_id: str) -> None:
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        kind = "EC2 Spot Instance Interruption Warning"
        time = self._world.kernel.now().isoformat()
        event = {"source": "aws.ec2", "detail-type": kind, "detail": detail, "time": time}
        self._waiting.append(event)
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

"""How soon an empty node is gone, also beside a dead one; a drain that cannot go on."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.node_budgets import NodeBudget
from shared.model.requirements import Requirement, Requirements
from tests.builders import provisioner
from tests.simulation.aws.machines import Machine
from tests.simulation.campaigns.hard_days import run
from tests.simulation.cluster.workloads import FLOATING, STATEFUL, Workload
from tests.simulation.schedule.faults import CallFaults
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene, draw_scene
from tests.simulation.schedule.world import World

_SECOND: Final = 1_000_000
_REASON: Final = "emptiness"
# What may go wrong while a node's last seconds are measured: machines, kubelets and EC2, but no
# function, message or timer.
_ELSEWHERE: Final = frozenset({"machine", "kubelet", "ec2"})
_MESSAGES: Final = frozenset({"bus", "queue", "timer", "forwarder"})


@dataclass
class _Ends:
    """Watches one cluster of a world: since when nodes are empty, and when they are gone.

    Nodes that a user or their own machine has tampered with are left out. So is the time in which
    another node of the owner is not Ready: for five minutes that one uses up the budget.
    """

    world: World
    cluster: str
    since: dict[str, int] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        api, ledger, time = self.world.apis[self.cluster], self.world.ledger, self.world.kernel.time
        promised = {slot.instance_id for slot in ledger.slots(self.cluster)}
        ttl_of = {
            provisioner_value.name: provisioner_value.ttl_after_empty
            for provisioner_value in api.provisioner_values.values()
        }
        used = {pod.node_name for pod in api.pods.values() if pod.counts_for_emptiness}
        not_ready = {
            node.provisioner
            for node in api.node_values.values()
            if node.was_initialized and node.ready is not True
        }
        for name, node in api.node_values.items():
            ttl = ttl_of.get(node.provisioner)
            if node.deletion_at is not None:
                if node.annotations.get(keys.REMOVAL_REASON) != _REASON:
                    self.since.pop(name, None)
                continue
            if ttl is None:
                continue
            # For pods that are promised to it, or still on the nodes it replaces.
            is_reserved = node.instance_id in promised or keys.REPLACES in node.annotations
            is_blocked = is_reserved or node.provisioner in not_ready
            if not node.is_initialized or name in used or is_blocked:
                self.since.pop(name, None)
            else:
                self.since.setdefault(name, time + int(ttl.total_seconds() * _SECOND))
        apart = {
            machine.instance.private_dns_name
            for machine in self.world.region.machines.values()
            if machine.released or machine.lied
        }
        for name in [value for value in self.since if value not in api.node_values]:
            due = self.since.pop(name)
            if name not in apart:
                self.gone[name] = (time - due) / _SECOND

    def ending(self, machine: Machine) -> None:
        due = self.since.get(machine.instance.private_dns_name)
        if (
            machine.cluster == self.cluster
            and due is not None
            and not (machine.taken or machine.lied)
        ):
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

    def within(self, seconds: float) -> float:
        """Return the part of the Nodes that were gone so soon."""
        return sum(gone_second <= seconds for gone_second in self.gone_seconds) / max(
            len(self.gone_seconds), 1
        )


def emptied(schedules: int, first: int = 0, *, share: float = 0) -> Emptied:
    """Run schedules and measure empty nodes; sweep is on, and the cluster answers.

    Args:
        share: Part of the calls' sites that fail; above 0 messages and timers get lost, too.
    """
    ended: list[float] = []
    gone: list[float] = []
    for seed in range(first, first + schedules):
        scene = replace(draw_scene(seed), sweeps=True)
        quiet = tuple(replace(cluster, holds=()) for cluster in scene.clusters)
        elsewhere = _ELSEWHERE | _MESSAGES if share else _ELSEWHERE
        faults = CallFaults(seed, share=share, elsewhere=elsewhere)
        faults.until = int(scene.busy_seconds * _SECOND)
        world = World(replace(scene, clusters=quiet), faults)
        watchers = [_Ends(world, cluster_scene.name) for cluster_scene in quiet]
        for watcher in watchers:
            world.apis[watcher.cluster].watched.append(watcher.look)
            world.endings.append(watcher.ending)
        run(world, scene.busy_seconds, until_quiet=600)
        for watcher in watchers:
            ended.extend(watcher.ended.values())
            gone.extend(watcher.gone.values())
    return Emptied(schedules, tuple(sorted(ended)), tuple(sorted(gone)))


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
    """Let nodes expire whose pods must not be evicted."""
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
    before = {pod.uid for pod in api.pods.values()}
    run(world, 60 * minutes)
    return Blocked(
        minutes=minutes,
        first=first,
        machines=len(world.region.machines),
        moved=len(before - {pod.uid for pod in api.pods.values()}),
    )


@dataclass(frozen=True)
class BesideDead:
    """How long nodes of a Provisioner with a budget of one stand once they should go.

    Attributes:
        empty_seconds: From the kubelet's end until an empty node beside it was gone.
        dead_seconds: The same of the node whose kubelet ended, under a pod of a StatefulSet.
    """

    empty_seconds: float
    dead_seconds: float


def beside_a_dead_node() -> BesideDead:
    """Let one of three kubelets end, and the pods of another node."""
    owner = provisioner(
        requirements=Requirements.of((Requirement.of(keys.INSTANCE_TYPE, "m5.large"),)),
        ttl_after_empty=timedelta(seconds=30),
        budgets=(NodeBudget(percent=10),),
    )
    names = ("dead", "ends", "stays")
    cluster = ClusterScene(
        name="cluster-a",
        provisioners=(owner,),
        workloads=tuple(Workload(name=name, kind=STATEFUL, cpu=1500) for name in names),
        scalings=tuple(Scaling(1, name, 1) for name in names),
    )
    world = World(Scene(seed=4, clusters=(cluster,)), CallFaults.only((), 0))
    run(world, 120, end=False)
    api, side = world.apis["cluster-a"], world.sides["cluster-a"]
    on = {app: api.pods_of(app)[0].node_name for app in names}
    begun, gone = world.kernel.time, dict[str, float]()

    def look() -> None:
        for name in on.values():
            if name not in api.node_values:
                gone.setdefault(name, (world.kernel.time - begun) / _SECOND)

    api.watched.append(look)
    side.stop_kubelet(side.kubelets[on["dead"]], for_ever=True)
    run(world, 60, end=False)
    api.scale("ends", 0)
    run(world, 900)
    never = float("inf")
    return BesideDead(gone.get(on["ends"], never), gone.get(on["dead"], never))

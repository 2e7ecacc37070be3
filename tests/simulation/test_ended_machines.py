"""A machine that ends by itself: nothing runs twice, and its pods do not stay behind."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from tests.builders import provisioner
from tests.simulation.aws.machines import Machine
from tests.simulation.campaigns.hard_days import run
from tests.simulation.cluster.workloads import FLOATING, STATEFUL, Workload
from tests.simulation.schedule.faults import CallFaults
from tests.simulation.schedule.scenario import ClusterScene, Scaling, Scene
from tests.simulation.schedule.world import World

CLUSTER = "cluster-a"
# From the moment EC2 says `terminated` or `stopped`.
MOST_SECONDS = 5.0


@dataclass
class Watch:
    """What is seen of one node's pods from the moment its machine is off.

    Attributes:
        off: That moment.
        pods_left: Seconds from then until no pod names the node.
        node_left: Seconds from then until the Node is gone.
        early: Whether the Node went before the pods of workloads.
    """

    world: World
    machine: Machine
    off: int
    pods_left: float = -1.0
    node_left: float = -1.0
    early: bool = False
    names: set[str] = field(default_factory=set)

    def look(self) -> None:
        name, api = self.machine.instance.private_dns_name, self.world.apis[CLUSTER]
        since = (self.world.kernel.time - self.off) / 1e6
        pods = api.pods_of_node(name)
        if self.node_left < 0 and name not in api.node_values:
            self.node_left, self.early = since, bool(pods)
        if self.pods_left < 0 and not pods:
            self.pods_left = since
        if self.pods_left < 0 or self.node_left < 0:
            self.world.kernel.after(0.05, self.look)


def busy_world(kind: str, *, unavailable: int | None, volumes: bool = False) -> World:
    pods = Workload(name="web", kind=kind, unavailable=unavailable, volumes=volumes)
    scene = Scene(
        seed=3,
        clusters=(
            ClusterScene(
                name=CLUSTER,
                provisioners=(provisioner(ttl_after_empty=timedelta(seconds=30)),),
                workloads=(pods,),
                scalings=(Scaling(1, "web", 3),),
            ),
        ),
    )
    world = World(scene, CallFaults.only((), 0))
    run(world, 120, end=False)
    return world


def take(world: World, end: Callable[[Machine], None]) -> Watch:
    """Let EC2 take a machine with running pods; return what came of them."""
    machine = next(
        machine
        for machine in world.region.alive(CLUSTER)
        if world.apis[CLUSTER].pods_of_node(machine.instance.private_dns_name)
    )
    end(machine)
    watch = Watch(world, machine, machine.off)
    world.kernel.at(machine.off, watch.look)
    run(world, 120, until_quiet=300)
    return watch


@pytest.mark.parametrize("unavailable", [None, 0])
@pytest.mark.parametrize("kind", [FLOATING, STATEFUL])
def test_pods_of_a_machine_terminated_from_outside_are_gone_in_seconds(
    kind: str, unavailable: int | None
) -> None:
    world = busy_world(kind, unavailable=unavailable)

    def end(machine: Machine) -> None:
        machine.taken = True
        world.region.end(machine)

    watch = take(world, end)
    assert 0 <= watch.pods_left <= MOST_SECONDS
    assert watch.node_left >= 0
    assert not watch.early


@pytest.mark.parametrize("volumes", [False, True])
@pytest.mark.parametrize("kind", [FLOATING, STATEFUL])
def test_pods_of_a_stopped_machine_are_gone_in_seconds(kind: str, *, volumes: bool) -> None:
    world = busy_world(kind, unavailable=0, volumes=volumes)
    watch = take(world, world.region.stop)
    assert 0 <= watch.pods_left <= MOST_SECONDS
    assert watch.node_left >= 0
    assert not watch.early
    assert watch.machine.ended is not None
    # Its volumes were free for the pods that followed.
    assert {pod.phase for pod in world.apis[CLUSTER].pods.values()} == {"Running"}

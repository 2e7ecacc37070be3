"""What users and others do while functions run: between two of their calls, and beside them."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from infra.local.ec2.instances import Instance as Model
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.kubernetes.nodes import Node
from shared.ports import NodeChange
from tests.builders import ZONES
from tests.fakes.cloud import pool_of, seen
from tests.simulation.aws.machines import Machine
from tests.simulation.cluster.workloads import JOB
from tests.simulation.schedule.faults import Action, Site
from tests.simulation.schedule.kernel import Process
from tests.simulation.schedule.seeded_random import between, chosen, draw

if TYPE_CHECKING:
    from tests.simulation.schedule.world import World

# A pod may come just before Dovetail cordons a node, and between the lists of a snapshot.
_BEFORE_CORDON: Final = ((Action.GROWS, 0.25),)
_BETWEEN_LISTS: Final = ((Action.GROWS, 0.01),)
_LISTS: Final = frozenset({"nodes", "bound_pods"})
_MOST_REPLICAS: Final = 8
# Part of the freezes during which EC2 is short of what was about to be asked for.
_SHORT_MEANWHILE: Final = 0.7
_STRANGERS: Final = ((Action.STRANGER, 0.06),)
_STRANGE_TYPE: Final = "m5.large"


class Bystanders:
    """Acts by itself in all clusters of a world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        for cluster in world.scene.clusters:
            world.kernel.after(
                between(15, 150, world.scene.seed, "stranger", cluster.name),
                lambda name=cluster.name: self._come(name),  # type: ignore[misc]
            )

    def between(self, process: Process, site: Site, args: tuple[Any, ...], cluster: str) -> None:
        """Let a user add a pod, and everybody act at once, before a call is carried out."""
        if site.method == "change_node":
            change: NodeChange = args[1]
            by_choice = change.unschedulable and keys.REMOVAL_REASON in change.set_annotations
            chances = _BEFORE_CORDON if by_choice else ()
        else:
            planned = process.function == "provision" and site.method in _LISTS
            chances = _BETWEEN_LISTS if planned else ()
        if not chances:
            return
        world = self._world
        where = Site("users", "between", f"{process.function} {site.method}")
        if world.faults.event(where, world.kernel.time, *chances) is None:
            return
        api = world.apis[cluster]
        growing = [one for one in api.workloads.values() if one.kind != JOB]
        one = chosen(growing, world.scene.seed, where, world.faults.counts[where])
        if one.replicas < _MOST_REPLICAS and world.kernel.time >= api.away_until:
            api.scale(one.name, one.replicas + 1)
            api.act()

    def asleep(self, site: Site, args: tuple[Any, ...], cluster: str, span: int) -> None:
        """Let EC2 be short of what is asked for until just before the one who asks wakes."""
        world = self._world
        time = world.kernel.time
        if site.method == "create_fleet" and draw(world.scene.seed, "asleep", time) < (
            _SHORT_MEANWHILE
        ):
            for offering in world.clouds[cluster].asked(args[0]):
                world.region.run_out(offering, time + span - 1_000_000, 0)

    def _come(self, cluster: str) -> None:
        """Let a machine of somebody else stand behind a Node that has all marks of Dovetail's."""
        world = self._world
        site = Site("account", "stranger", cluster)
        if world.faults.event(site, world.kernel.time, *_STRANGERS) is None:
            return
        owner = next(iter(world.apis[cluster].provisioner_values.values()))
        offering = OfferingKey(
            instance_type=_STRANGE_TYPE, zone=ZONES[0], capacity_type=CapacityType.ON_DEMAND
        )
        name = f"ip-10-200-0-{1 + list(world.apis).index(cluster)}.ec2.internal"
        model = Model(
            instance_id=f"i-{len(world.region.ec2.instances) + 1:017x}",
            pool=pool_of(offering),
            subnet_id="",
            launched_at=world.kernel.now(),
            private_dns_name=name,
        )
        model.enter(model.launched_at, (timedelta(0), "running"))
        world.region.ec2.instances[model.instance_id] = model
        machine = Machine(cluster, model, seen(world.region.ec2, model), user_data="")
        world.region.machines[model.instance_id] = machine
        of_type = world.types[_STRANGE_TYPE]
        node = Node(
            name=name,
            uid=f"uid-stranger-{cluster}",
            labels={
                **of_type.labels,
                owner.owner_label: owner.name,
                keys.INITIALIZED: "true",
                keys.INSTANCE_TYPE: _STRANGE_TYPE,
                keys.ZONE: offering.zone,
                keys.CAPACITY_TYPE: offering.capacity_type.value,
                keys.HOSTNAME: name,
            },
            annotations={keys.SLOT: "plan-00000/0/0"},
            finalizers=(keys.TERMINATION_FINALIZER,),
            provider_id=machine.instance.provider_id,
            capacity=of_type.capacity,
            allocatable=of_type.allocatable,
        )
        world.sides[cluster].meet(machine, node)
        if draw(world.scene.seed, "stranger deleted", cluster) < 0.5:
            wait = between(20, 120, world.scene.seed, "stranger deleted after", cluster)
            world.kernel.after(wait, lambda: self._delete(cluster, node))

    def _delete(self, cluster: str, node: Node) -> None:
        api = self._world.apis[cluster]
        known = api.node_values.get(node.name)
        if known is not None and known.uid == node.uid:
            api.delete_node(known)

"""The cluster as kube-scheduler would meet it once the plan's machines run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.rules.amounts import pod_requests
from infra.local.cluster_simulator.rules.claims import attach_reasons, claim_names, volume_reasons
from infra.local.cluster_simulator.rules.matching import ClusterView, is_finished
from infra.local.cluster_simulator.rules.predicates import (
    fits,
    node_reasons,
    port_reasons,
    resource_reasons,
)
from infra.local.cluster_simulator.rules.topology import PodTopology
from infra.local.cluster_simulator.scheduler.node_usage import Room, Rooms, score, topology_class
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import Instance, LaunchOption, PlannedNode, Slot
from shared.model.provisioner import Provisioner
from shared.nodes.join.node_objects import node_manifest
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters import nodes as machines
from tests.scheduler_oracle.clusters.daemonsets import daemon_pod
from tests.scheduler_oracle.clusters.disks import bind_claims, claims_of
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.clusters.storage import csi_node
from tests.scheduler_oracle.reading import CLUSTER, NOW


def planned_node(
    name: str,
    planned: PlannedNode,
    option: LaunchOption,
    owner: Provisioner,
    types: Mapping[str, InstanceType],
) -> Json:
    """Return the Node that an option of a planned node becomes, ready.

    Labels are those of Dovetail's own node-making and what kubelets and the cloud add; the
    provisioner's lasting taints stay, those of booting and starting are gone.
    """
    place = {
        keys.ZONE: option.offering.zone,
        keys.CAPACITY_TYPE: option.offering.capacity_type.value,
        keys.INSTANCE_TYPE: option.offering.instance_type,
    }
    slot = Slot(
        cluster=CLUSTER,
        plan_id="plan-1",
        group=0,
        number=0,
        provisioner=planned.provisioner,
        instance_id=f"i-{name}",
        offering=option.offering,
        price_micros_per_hour=option.price_micros_per_hour,
        capacity=option.capacity,
        allocatable=option.allocatable,
        labels={**planned.labels, **place},
        launched_at=NOW,
    )
    instance = Instance(
        instance_id=slot.instance_id,
        state="running",
        offering=option.offering,
        private_dns_name=name,
    )
    manifest = node_manifest(slot, instance, owner, types)
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": keys.with_older(manifest.labels),
        },
        "spec": {
            "providerID": manifest.provider_id,
            "taints": [
                {"key": t.key, "value": t.value, "effect": t.effect.value} for t in owner.taints
            ],
        },
        "status": {
            "capacity": option.capacity.to_quantities(),
            "allocatable": option.allocatable.to_quantities(),
        },
    }


@dataclass(slots=True)
class World:
    """Nodes with their pods, growing as pods are bound."""

    view: ClusterView
    claims: dict[Key, Json]
    volumes: dict[str, Json]
    rooms: Rooms = field(default_factory=Rooms)
    _topologies: dict[bytes, PodTopology] = field(default_factory=dict)
    _classes: dict[Key, bytes] = field(default_factory=dict)
    _requests: dict[Key, dict[str, int]] = field(default_factory=dict)

    def reasons(self, pod: Json, name: str) -> list[str]:
        """Return why the scheduler would not bind a pod to a node now."""
        room = self.rooms.by_name[name]
        assert room.node is not None
        if self.view.nominated:
            bound = self.rooms.bound()
            here = [entry for entry in bound if entry["spec"]["nodeName"] == name]
            return fits(pod, room.node, here, self._with(bound))
        return [
            *node_reasons(pod, room.node),
            *port_reasons(pod, room.ports()),
            *resource_reasons(self._requested(pod), room.free()),
            *self._volumes(pod, room),
            *self.topology(pod).reasons(room.node),
        ]

    def _requested(self, pod: Json) -> dict[str, int]:
        key = key_of(pod)
        if key not in self._requests:
            self._requests[key] = pod_requests(pod)
        return self._requests[key]

    def _volumes(self, pod: Json, room: Room) -> list[str]:
        assert room.node is not None
        if not claim_names(pod):
            return []
        view = self._with(self.rooms.bound())
        return [
            *volume_reasons(pod, room.node, view),
            *attach_reasons(pod, room.node, list(room.pods.values()), view),
        ]

    def _with(self, pods: list[Json]) -> ClusterView:
        return replace(self.view, pods=pods, claims=self.claims, volumes=self.volumes)

    def topology(self, pod: Json) -> PodTopology:
        """Return the counts that matter to a pod, kept up while pods are bound."""
        key = key_of(pod)
        sort = self._classes.get(key)
        if sort is None:
            sort = self._classes[key] = topology_class(pod)
        if sort not in self._topologies:
            self._topologies[sort] = PodTopology(pod, self._with(self.rooms.bound()))
        return self._topologies[sort]

    def bind(self, pod: Json, name: str) -> None:
        self.rooms.place(pod, name)
        node = self.rooms.by_name[name].node
        assert node is not None
        bind_claims(pod, node, self.claims, self.volumes)
        for topology in self._topologies.values():
            topology.place(pod, node)

    def free_choice(self, pod: Json) -> str:
        """Return the node that the scheduler itself would choose, empty for none."""
        requests = pod_requests(pod)
        found = [
            (score(pod, room, self.topology(pod), requests), name)
            for name, room in self.rooms.open()
            if not self.reasons(pod, name)
        ]
        return min(found)[1] if found else ""

    def with_node(self, node: Json, daemons: Sequence[Json]) -> "World":
        """Return another world with one node more, its daemons on it."""
        view = replace(self.view, nodes=[*self.view.nodes, node])
        other = World(view, dict(self.claims), dict(self.volumes))
        # The rooms themselves are shared: only the new one is written to.
        other.rooms.by_name = dict(self.rooms.by_name)
        other.rooms._place = dict(self.rooms._place)
        other.add_node(node, daemons)
        return other

    def add_node(self, node: Json, daemons: Sequence[Json]) -> None:
        """Let a node stand, with the daemons that are not on it yet."""
        name = node["metadata"]["name"]
        self.rooms.set_node(name, node)
        there = {key_of(pod) for pod in self.rooms.by_name[name].pods.values()}
        for daemon in daemons:
            made = daemon_pod(daemon, node)
            if made is not None and key_of(made) not in there:
                self.rooms.place(made, name)


def world_of(case: Json, planned: Sequence[Json]) -> World:
    """Return the world of a case with the plan's nodes, before any pod of the plan is bound.

    Nodes in flight have come up; pods promised to them are bound. Nodes that cannot take pods
    are there too: they form topology domains.
    """
    standing = machines.standing(case)
    flying = [machines.dressed(case, slot["node"]) for slot in case["slots"]]
    pods = [pod for pod in case["pods"] if not is_finished(pod)]
    nodes = [*standing, *flying, *planned]
    view = ClusterView(
        nodes=nodes,
        namespaces=case["namespaces"],
        csi_nodes=_csi_nodes(case, [*flying, *planned]),
        storage_classes={
            storage_pod_class["metadata"]["name"]: storage_pod_class
            for storage_pod_class in case["storage_classes"]
        },
        nominated=[pod for pod in pods if is_nominated(pod)],
    )
    volumes = {volume["metadata"]["name"]: volume for volume in case["volumes"]}
    world = World(view, claims_of(case), volumes)
    names = {entry["metadata"]["name"] for entry in nodes}
    for pod in pods:
        place = pod["spec"].get("nodeName")
        if place in names:
            world.rooms.place(pod, place)
    for node in standing:
        world.rooms.set_node(node["metadata"]["name"], node)
    for node in (*flying, *planned):
        world.add_node(node, case["daemonsets"])
    by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
    for slot in case["slots"]:
        for uid in slot["pods"]:
            if uid in by_uid:
                world.bind(by_uid[uid], slot["node"]["metadata"]["name"])
    return world


def _csi_nodes(case: Json, new: Sequence[Json]) -> dict[str, Json]:
    """Return what each node can attach: new ones as much as machines of their type."""
    found = {entry["metadata"]["name"]: entry for entry in case.get("csi_nodes", ())}
    for node in new if "volume_limits" in case else ():
        name = node["metadata"]["name"]
        limit = case["volume_limits"].get(node["metadata"]["labels"].get(keys.INSTANCE_TYPE))
        if limit is not None:
            found[name] = csi_node(name, limit)
    return found


def is_nominated(pod: Json) -> bool:
    """Return whether others are being preempted for a waiting pod."""
    waits = not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
    return waits and bool(pod["status"].get("nominatedNodeName"))


def slot_names(case: Json) -> dict[str, str]:
    """Return the node name of every slot, by the slot's name and by the node's own."""
    found: dict[str, str] = {}
    for slot in case["slots"]:
        name = slot["node"]["metadata"]["name"]
        found |= {f"plan-0/0/{slot['number']}": name, name: name}
    return found

"""Nodes that are there or on their way, as room for pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode, Slot
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.kubernetes.taints import Taint
from shared.model.kubernetes.volumes import CLAIM_LABEL
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.scheduling.compatibility import Port, labels_accepted, taint_refusal
from shared.scheduling.daemon_overhead import DaemonOverhead


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingNode:
    """A node that pods may still be placed on.

    Attributes:
        name: Of the Node, or of the slot while it has no Node object.
        slot: Name of the slot while it is in flight, else empty.
        taints: To be tolerated; those expected to go while it starts are left out.
        pods: Standing on it or promised to it.
        available: Room left beside pods of DaemonSets still to come; amounts may be negative.
        ports: Host ports that are taken, by DaemonSet pods still to come, too.
        volumes: Shared volumes (as `Scheduling.shared` names them) that are attached to it.
    """

    name: str
    slot: str
    labels: Mapping[str, str] = field(hash=False)
    taints: tuple[Taint, ...]
    pods: tuple[Pod, ...]
    available: Resources
    ports: tuple[Port, ...] = ()
    volumes: frozenset[str] = frozenset()

    def accepts(self, scheduling: Scheduling) -> bool:
        """Return whether labels and taints accept such pods."""
        return labels_accepted(scheduling, self.labels) and not taint_refusal(
            scheduling, self.taints
        )


# A node, the pods on it as they came, and the room that they leave.
_Kept = dict[str, tuple[Node, list[Pod], ExistingNode]]
# Of the clusters that were planned for last: what a process serves in turn.
_MOST_KEPT: Final = 8
_kept_rooms: Final[dict[str, tuple[tuple[DaemonSet, ...], _Kept]]] = {}


def rooms(snapshot: ClusterSnapshot) -> tuple[ExistingNode, ...]:
    """Return the rooms of a snapshot: initialized nodes first, then in-flight ones, by name.

    The room of a node that only its own pods fill follows from these and the DaemonSets. It is
    kept, and made anew only where the node or its pods differ from those it was made of, or any
    DaemonSet does: the same snapshot gives the same rooms, whatever was asked before.
    """
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        by_node.setdefault(pod.node_name, []).append(pod)
    pending = {pod.uid: pod for pod in snapshot.pending}
    # Pods are preempted for it there: kube-scheduler reserves the capacity.
    coming: dict[str, list[Pod]] = {}
    for pod in snapshot.pending:
        if pod.nominated_node and not pod.is_terminating:
            coming.setdefault(pod.nominated_node, []).append(pod)
    known, kept = _kept_of(snapshot), _Kept()
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
    types = {instance_type.name: instance_type.labels for instance_type in snapshot.instance_types}
    found = []
    for node in snapshot.nodes:
        slot = slot_of.pop(node.instance_id, None) if node.instance_id else None
        if node.unschedulable or node.deletion_at is not None:
            continue
        if slot is None and node.ready is not True:
            # Not ours to wait for, or broken: it is no room until it is Ready.
            continue
        there = by_node.get(node.name, [])
        alone = slot is None and node.name not in coming
        made = known.get(node.name) if alone else None
        # Lists and values compare what is one object by identity: what stayed takes no time.
        if made is None or made[1] != there or (made[0] is not node and made[0] != node):
            standing = sorted(there, key=lambda entry: entry.key) + coming.get(node.name, [])
            made = (node, there, _room_of_node(node, slot, standing, pending, snapshot))
        if alone:
            kept[node.name] = made
        found.append(made[2])
    _keep(snapshot, kept)
    found.extend(
        _room_of_slot(
            slot,
            pending,
            provisioners.get(slot.provisioner),
            types.get(slot.offering.instance_type, {}),
            snapshot,
        )
        for slot in slot_of.values()
    )
    return tuple(sorted(found, key=lambda room: (bool(room.slot), room.name)))


def _kept_of(snapshot: ClusterSnapshot) -> _Kept:
    """Return the rooms kept of a cluster, none when its DaemonSets are others than then."""
    daemonsets, kept = _kept_rooms.pop(snapshot.cluster, ((), _Kept()))
    return kept if daemonsets == snapshot.daemonsets else _Kept()


def _keep(snapshot: ClusterSnapshot, kept: _Kept) -> None:
    _kept_rooms[snapshot.cluster] = (snapshot.daemonsets, kept)
    while len(_kept_rooms) > _MOST_KEPT:
        del _kept_rooms[next(iter(_kept_rooms))]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedNode:
    """A node that takes no more pods, but whose pods rules may count.

    Attributes:
        labels: As far as they are settled; of others a value nothing else has.
        unsettled: Keys of those others.
        possible: Labels it may turn out to have, where they are not settled.
        starting: Whether it is still to come, and with it the pods of DaemonSets.
    """

    name: str
    labels: Mapping[str, str] = field(hash=False)
    taints: tuple[Taint, ...]
    pods: tuple[Pod, ...]
    unsettled: frozenset[str] = frozenset()
    possible: tuple[Mapping[str, str], ...] = field(default=(), hash=False)
    starting: bool = False


def counted_nodes(
    snapshot: ClusterSnapshot, found: Iterable[ExistingNode]
) -> tuple[CountedNode, ...]:
    """Return the nodes that are no room, and those of launches that have no machine so far."""
    taken = {room.name for room in found}
    by_node: dict[str, list[Pod]] = {
        node.name: [] for node in snapshot.nodes if node.name not in taken
    }
    for pod in snapshot.bound if by_node else ():
        if pod.node_name in by_node:
            by_node[pod.node_name].append(pod)
    listed = [
        CountedNode(
            name=node.name,
            labels=node.labels,
            # A cordon counts by its taint, as to kube-scheduler, not by the field that makes it.
            taints=node.taints,
            pods=tuple(by_node[node.name]),
        )
        for node in snapshot.nodes
        if node.name in by_node
    ]
    pending = {pod.uid: pod for pod in snapshot.pending}
    types = {instance_type.name: instance_type.labels for instance_type in snapshot.instance_types}
    taints = {provisioner.name: provisioner.taints for provisioner in snapshot.provisioners}
    for number, planned in enumerate(snapshot.launching):
        pods = tuple(pending[ref.uid] for ref in planned.pods if ref.uid in pending)
        of_owner = taints.get(planned.provisioner, ())
        listed.append(_launching(f"launching/{number}", planned, pods, types, of_owner))
    return tuple(listed)


def _launching(
    name: str,
    planned: PlannedNode,
    pods: tuple[Pod, ...],
    types: Mapping[str, Mapping[str, str]],
    taints: tuple[Taint, ...],
) -> CountedNode:
    """Return a node that may come up as any of its options."""
    options = [
        {
            **types.get(option.offering.instance_type, {}),
            keys.ZONE: option.offering.zone,
            keys.CAPACITY_TYPE: option.offering.capacity_type.value,
        }
        for option in (*planned.options, *planned.fallback)
    ]
    own = {keys.HOSTNAME: name, **planned.labels}
    sure = {k: v for k, v in options[0].items() if all(o.get(k) == v for o in options)}
    # The domain is not known yet: pods on this node count in none of the known domains.
    unsure = {k: f"\x00{name}" for k in options[0] if k not in sure and k not in own}
    return CountedNode(
        name=name,
        labels={**unsure, **sure, **own},
        taints=taints,
        pods=pods,
        unsettled=frozenset(unsure),
        possible=tuple({**option, **own} for option in options if unsure),
        starting=True,
    )


def _room_of_node(
    node: Node,
    slot: Slot | None,
    standing: Sequence[Pod],
    pending: Mapping[str, Pod],
    snapshot: ClusterSnapshot,
) -> ExistingNode:
    in_flight = slot is not None and not node.is_initialized
    promised = _promised(slot, pending, standing)
    taints = tuple(t for t in node.taints if not (in_flight and keys.is_ephemeral(t.key)))
    allocatable = node.allocatable
    if in_flight and slot is not None:
        starting = {
            (taint.key, taint.effect)
            for provisioner in snapshot.provisioners
            if provisioner.name == slot.provisioner
            for taint in provisioner.startup_taints
        }
        taints = tuple(t for t in taints if (t.key, t.effect) not in starting)
        # Device plugins report late: what the launch promised counts where the kubelet shows none.
        # What it does show is true, though the estimate was larger. So does Karpenter. Source:
        # https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/state/statenode.go
        # (`Allocatable`, 2026-11).
        shown = dict(allocatable.items)
        allocatable = Resources.from_mapping({**dict(slot.allocatable.items), **shown})
    due = _due(snapshot.daemonsets, standing)
    daemons, ports = DaemonOverhead(due, taints).on(node.labels)
    used = Resources.total(pod.scheduling.requests for pod in (*standing, *promised))
    volumes, attached = _volumes((*standing, *promised))
    return ExistingNode(
        name=node.name,
        slot=slot.name if in_flight and slot is not None else "",
        labels=node.labels,
        taints=taints,
        pods=(*standing, *promised),
        available=allocatable - used - daemons - attached,
        ports=(*_ports((*standing, *promised)), *ports),
        volumes=volumes,
    )


def _room_of_slot(
    slot: Slot,
    pending: Mapping[str, Pod],
    provisioner: Provisioner | None,
    of_type: Mapping[str, str],
    snapshot: ClusterSnapshot,
) -> ExistingNode:
    promised = _promised(slot, pending)
    used = Resources.total(pod.scheduling.requests for pod in promised)
    labels = {keys.HOSTNAME: slot.name, **of_type, **slot.labels}
    taints = provisioner.taints if provisioner is not None else ()
    volumes, attached = _volumes(promised)
    _, ports = DaemonOverhead(snapshot.daemonsets, taints).on(labels)
    return ExistingNode(
        name=slot.name,
        slot=slot.name,
        labels=labels,
        taints=taints,
        pods=promised,
        available=slot.allocatable - used - slot.daemon_requests - attached,
        ports=(*_ports(promised), *ports),
        volumes=volumes,
    )


def _due(daemonsets: Sequence[DaemonSet], standing: Sequence[Pod]) -> Sequence[DaemonSet]:
    """Return the DaemonSets that have no pod on a node.

    On a node that has just been opened it may not be made or bound yet, and one that ended is
    made again. Karpenter keeps their room on every node, too. Source: `NewExistingNode` in
    https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/provisioning/scheduling/existingnode.go
    (2026-11).
    """
    if not daemonsets:
        return ()
    there = daemons_on(standing)
    return [entry for entry in daemonsets if (entry.namespace, entry.name) not in there]


def _volumes(pods: Sequence[Pod]) -> tuple[frozenset[str], Resources]:
    """Return the shared volumes of a node, and the attachments that are still to be made.

    Volumes of bound pods are no longer part of the node's free attachments. A nominated pod may
    never be bound: its volumes take their attachments, but no other pod may count on sharing them.
    """
    there = {
        f"{pod.namespace}/{label.removeprefix(CLAIM_LABEL)}"
        for pod in pods
        if pod.node_name
        for label in pod.labels
        if label.startswith(CLAIM_LABEL)
    }
    coming = {volume: resource for pod in pods for volume, resource in pod.scheduling.shared}
    amounts = [Resources(((coming[value], 1),)) for value in sorted(coming.keys() - there)]
    sure = {volume for pod in pods if not pod.nominated_node for volume, _ in pod.scheduling.shared}
    return frozenset(there | sure), Resources.total(amounts)


def _ports(pods: Iterable[Pod]) -> Iterator[Port]:
    return (port for pod in pods for port in pod.scheduling.host_ports)


def _promised(
    slot: Slot | None, pending: Mapping[str, Pod], standing: Iterable[Pod] = ()
) -> tuple[Pod, ...]:
    """Return the pending pods promised to a slot, without those that its node has already.

    Args:
        slot: None for a node that no launch is known of.
        pending: All pending pods, by uid.
        standing: Pods of its node; kube-scheduler may have nominated a promised one, too.
    """
    if slot is None:
        return ()
    there = {pod.uid for pod in standing}
    return tuple(pending[r.uid] for r in slot.pods if r.uid in pending and r.uid not in there)


def daemons_on(pods: Iterable[Pod]) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the DaemonSets that have a pod among these."""
    return frozenset(
        (pod.namespace, pod.owner.name) for pod in pods if pod.owner is not None and pod.is_daemon
    )


def nominated(slots: Iterable[Slot]) -> frozenset[str]:
    """Return the uids of pods that are promised to a node in flight: they count as placed."""
    return frozenset(ref.uid for slot in slots for ref in slot.pods)

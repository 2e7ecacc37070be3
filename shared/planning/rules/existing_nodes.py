"""Nodes that exist or are in flight, as capacity for pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode, Slot
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Taint
from shared.model.kubernetes.volumes import CLAIM_LABEL
from shared.model.provisioner import Provisioner
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.planning.rules.daemon_overhead import DaemonOverhead
from shared.planning.rules.labels_and_taints import Port


class ExistingNode(Struct, frozen=True, kw_only=True):
    """A node that pods may still be placed on.

    Attributes:
        name: Of the Node, or of the slot while it has no Node object.
        slot: Name of the slot while it is in flight, else empty.
        taints: To be tolerated; those expected to be removed while it starts are left out.
        pods: Pods on it, nominated to it or promised to it.
        available: Amounts left, DaemonSet pods still to come deducted; may be negative.
        ports: Host ports that are taken, also by DaemonSet pods still to come.
        volumes: Shared volumes (as `Scheduling.shared` names them) that are attached to it.
    """

    name: str
    slot: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    pods: tuple[Pod, ...]
    available: Resources
    ports: tuple[Port, ...] = ()
    volumes: frozenset[str] = frozenset()


# By name: a node, the pods on it in the order they came, and the existing node made of them.
_Cached = dict[str, tuple[Node, list[Pod], ExistingNode]]
# Clusters that are cached: those that this process planned for last.
_MOST_CACHED: Final = 8
_cached_nodes: Final[dict[str, tuple[tuple[DaemonSet, ...], _Cached]]] = {}


def existing_nodes(snapshot: ClusterSnapshot) -> tuple[ExistingNode, ...]:
    """Return the nodes that take pods: initialized nodes first, then in-flight ones, by name.

    The available capacity of a node without slot and nominated pods follows from the node, its pods
    and the DaemonSets; it is cached until one of these changes. The same snapshot always gives the
    same result.
    """
    by_node: dict[str, list[Pod]] = {}
    for pod in snapshot.bound:
        by_node.setdefault(pod.node_name, []).append(pod)
    pending = {pod.uid: pod for pod in snapshot.pending}
    # Pods are preempted for these pods: kube-scheduler reserves the capacity.
    nominated_pods: dict[str, list[Pod]] = {}
    for pod in snapshot.pending:
        if pod.nominated_node and not pod.is_terminating:
            nominated_pods.setdefault(pod.nominated_node, []).append(pod)
    cached_nodes, reused = _cached_of(snapshot), _Cached()
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    provisioners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
    types = {instance_type.name: instance_type.labels for instance_type in snapshot.instance_types}
    found = []
    for node in snapshot.nodes:
        slot = slot_of.pop(node.instance_id, None) if node.instance_id else None
        if node.unschedulable or node.deletion_at is not None:
            continue
        if slot is None and node.ready is not True:
            # Not launched by Dovetail, or broken: it is no capacity until it is Ready.
            continue
        there = by_node.get(node.name, [])
        is_reusable = slot is None and node.name not in nominated_pods
        cached = cached_nodes.get(node.name) if is_reusable else None
        # Identical objects compare equal at once: nodes and pods that stayed take no time.
        if cached is None or cached[1] != there or (cached[0] is not node and cached[0] != node):
            existing_pods = sorted(there, key=lambda entry: entry.key) + nominated_pods.get(
                node.name, []
            )
            cached = (node, there, _of_node(node, slot, existing_pods, pending, snapshot))
        if is_reusable:
            reused[node.name] = cached
        found.append(cached[2])
    _cache(snapshot, reused)
    found.extend(
        _of_slot(
            slot,
            pending,
            provisioners.get(slot.provisioner),
            types.get(slot.offering.instance_type, {}),
            snapshot,
        )
        for slot in slot_of.values()
    )
    return tuple(sorted(found, key=lambda existing: (bool(existing.slot), existing.name)))


def _cached_of(snapshot: ClusterSnapshot) -> _Cached:
    """Return the cached nodes of a cluster, none if its DaemonSets have changed."""
    daemonsets, cached = _cached_nodes.pop(snapshot.cluster, ((), _Cached()))
    return cached if daemonsets == snapshot.daemonsets else _Cached()


def _cache(snapshot: ClusterSnapshot, cached: _Cached) -> None:
    _cached_nodes[snapshot.cluster] = (snapshot.daemonsets, cached)
    while len(_cached_nodes) > _MOST_CACHED:
        del _cached_nodes[next(iter(_cached_nodes))]


class CountedNode(Struct, frozen=True, kw_only=True):
    """A node that takes no more pods, but whose pods rules may count.

    Attributes:
        labels: Those that are settled; others have a placeholder value that nothing else has.
        placeholder_keys: Keys of labels with placeholder values.
        possible_labels: The labels of each option that it may start as, if they are not settled.
        starting: Whether it is still being launched, so that its DaemonSet pods are still to come.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    pods: tuple[Pod, ...]
    placeholder_keys: frozenset[str] = frozenset()
    possible_labels: tuple[Mapping[str, str], ...] = field(default=())
    starting: bool = False


def counted_nodes(
    snapshot: ClusterSnapshot, found: Iterable[ExistingNode]
) -> tuple[CountedNode, ...]:
    """Return the nodes that take no more pods, and those of launches without an instance so far."""
    taken = {existing.name for existing in found}
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
            # A cordon counts by its taint, as to kube-scheduler, not by `spec.unschedulable`.
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
    """Return a node that may start as any of its options."""
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
        placeholder_keys=frozenset(unsure),
        possible_labels=tuple({**option, **own} for option in options if unsure),
        starting=True,
    )


def _of_node(
    node: Node,
    slot: Slot | None,
    existing_pods: Sequence[Pod],
    pending: Mapping[str, Pod],
    snapshot: ClusterSnapshot,
) -> ExistingNode:
    in_flight = slot is not None and not node.is_initialized
    promised = _promised(slot, pending, existing_pods)
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
        # Device plugins report late: the launch's estimate counts until the kubelet reports an
        # amount. What it reports is true, even if the estimate was larger. Karpenter does the same.
        # Source:
        # https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/state/statenode.go
        # (`Allocatable`, 2026-11).
        shown = dict(allocatable.items)
        allocatable = Resources.from_mapping({**dict(slot.allocatable.items), **shown})
    due = _missing_daemonsets(snapshot.daemonsets, existing_pods)
    daemons, ports = DaemonOverhead(due, taints).on(node.labels)
    used = Resources.total(pod.scheduling.requests for pod in (*existing_pods, *promised))
    volumes, attached = _volumes((*existing_pods, *promised))
    return ExistingNode(
        name=node.name,
        slot=slot.name if in_flight and slot is not None else "",
        labels=node.labels,
        taints=taints,
        pods=(*existing_pods, *promised),
        available=allocatable - used - daemons - attached,
        ports=(*_ports((*existing_pods, *promised)), *ports),
        volumes=volumes,
    )


def _of_slot(
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


def _missing_daemonsets(
    daemonsets: Sequence[DaemonSet], existing_pods: Sequence[Pod]
) -> Sequence[DaemonSet]:
    """Return the DaemonSets that have no pod on a node.

    On a node that has just opened, a pod may not be created or bound yet, and one that ended is
    created again. Karpenter reserves their requests on every node, too. Source: `NewExistingNode`,
    https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/provisioning/scheduling/existingnode.go
    (2026-11).
    """
    if not daemonsets:
        return ()
    there = daemons_on(existing_pods)
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
    slot: Slot | None, pending: Mapping[str, Pod], existing_pods: Iterable[Pod] = ()
) -> tuple[Pod, ...]:
    """Return the pending pods promised to a slot, without those that its node has already.

    Args:
        slot: None for a node without a known launch.
        pending: All pending pods, by uid.
        existing_pods: Pods of its node; kube-scheduler may have nominated a promised one, too.
    """
    if slot is None:
        return ()
    there = {pod.uid for pod in existing_pods}
    return tuple(pending[r.uid] for r in slot.pods if r.uid in pending and r.uid not in there)


def daemons_on(pods: Iterable[Pod]) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the DaemonSets that have a pod among these."""
    return frozenset(
        (pod.namespace, pod.owner.name) for pod in pods if pod.owner is not None and pod.is_daemon
    )


def nominated(slots: Iterable[Slot]) -> frozenset[str]:
    """Return the uids of pods that are promised to a node in flight: they count as placed."""
    return frozenset(ref.uid for slot in slots for ref in slot.pods)

"""Simulates where the pods of some nodes would run if those nodes were removed."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode, Slot
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.initial_state import pods_to_place
from shared.planning.kube_scheduler import kube_scheduler_places
from shared.planning.setting_aside import ref_of

# The removal reason, in a simulation, of a node whose change is under way.
UNDER_WAY: Final = "replacement"
# How much more than its cheapest option a new node may cost, in percent: the price of what it
# replaces is the real limit.
_OPTION_CEILING: Final = 900


def without_nodes(snapshot: ClusterSnapshot, names: Collection[str]) -> ClusterSnapshot:
    """Return the snapshot in which the pods of these nodes are pending.

    The nodes stay in it, cordoned, because limits count them: a replacement runs beside the node
    that it replaces for a while. Slots without a node are cordoned, too: no node is removed in the
    hope that an instance will join. Pods that were pending already are left out.
    """
    leaving = frozenset(names)
    moved: list[Pod] = []
    staying: list[Pod] = []
    for pod in snapshot.bound:
        moves = pod.node_name in leaving and pod.keeps_its_node
        (moved if moves else staying).append(pod)
    slot_of = {slot.instance_id: slot for slot in snapshot.slots}
    nodes = tuple(
        _simulated(node, slot_of.pop(node.instance_id, None), leaves=node.name in leaving)
        for node in snapshot.nodes
    )
    in_flight = tuple(
        Node(
            name=f"in flight {slot.name}",
            uid=slot.instance_id,
            labels=slot.labels,
            annotations={keys.SLOT: slot.name},
            capacity=slot.capacity,
            unschedulable=True,
        )
        for slot in slot_of.values()
    )
    return replace(
        snapshot,
        pending=tuple(as_pending(pod) for pod in moved),
        bound=tuple(staying),
        nodes=(*nodes, *in_flight),
        slots=(),
        promised=frozenset(),
    )


def _simulated(node: Node, slot: Slot | None, *, leaves: bool) -> Node:
    """Return a node with the labels of its slot, cordoned if it is removed or not initialized.

    A kubelet that registers first creates its Node without Dovetail's annotation.
    """
    if slot is None:
        return replace(node, unschedulable=True) if leaves else node
    return replace(
        node,
        labels={**slot.labels, **node.labels},
        annotations={keys.SLOT: slot.name, **node.annotations},
        unschedulable=node.unschedulable or leaves or not node.is_initialized,
    )


def with_cordoned(snapshot: ClusterSnapshot, names: Collection[str]) -> ClusterSnapshot:
    """Return the snapshot in which some nodes are cordoned."""
    if not names:
        return snapshot
    nodes = (
        replace(node, unschedulable=True) if node.name in names else node for node in snapshot.nodes
    )
    return replace(snapshot, nodes=tuple(nodes))


def with_leaving(snapshot: ClusterSnapshot, uids: Collection[str]) -> ClusterSnapshot:
    """Return the snapshot in which nodes whose change is under way are being deleted."""
    return replace(
        snapshot,
        nodes=tuple(
            replace(
                node,
                deletion_at=snapshot.taken_at,
                annotations={**node.annotations, keys.REMOVAL_REASON: UNDER_WAY},
            )
            if node.uid in uids and node.deletion_at is None
            else node
            for node in snapshot.nodes
        ),
    )


def with_drained(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which pods of nodes being deleted run on nodes that hold them.

    The capacity that these pods need is reserved for them as soon as the drain begins. If the node
    that has this capacity is to be removed, it must be found elsewhere. A drain may last for ever,
    for example under a PodDisruptionBudget, so a pod that no node can hold stays where it is,
    blocks no change, and nothing is launched for it. A node that was launched to replace others
    takes only the pods of these, also while it starts; they are placed first. Pods promised to one
    in flight stay where they are, as do pods whose volumes are not resolved.
    """
    going = {node.name for node in snapshot.nodes if node.is_ours and node.deletion_at is not None}
    if not going:
        return snapshot
    bought = {
        node.name: going.intersection(node.annotations[keys.REPLACES].split(","))
        for node in snapshot.nodes
        if keys.REPLACES in node.annotations
    }
    replaced = frozenset[str]().union(*bought.values())
    if replaced:
        own = {name for name, served in bought.items() if served}
        snapshot = _rescheduled(snapshot, replaced, own)
    free = {node.name for node in snapshot.nodes if not node.unschedulable}
    return _rescheduled(snapshot, going, free - bought.keys())


def _rescheduled(
    snapshot: ClusterSnapshot, leaving: Collection[str], free: Collection[str]
) -> ClusterSnapshot:
    """Return the snapshot in which pods of `leaving` nodes run on `free` nodes that hold them."""
    bought = {
        node.instance_id
        for node in snapshot.nodes
        if node.name in free and keys.REPLACES in node.annotations
    }
    cordoned = replace(
        snapshot,
        nodes=tuple(
            _uncordoned(node) if node.name in free else replace(node, unschedulable=True)
            for node in snapshot.nodes
        ),
        slots=tuple(slot for slot in snapshot.slots if slot.instance_id not in bought),
        provisioners=(),
        instance_types=(),
        # The same result when the change is planned and when it is checked again.
        seed=0,
    )
    asked = without_nodes(cordoned, leaving)
    joined = {node.instance_id for node in snapshot.nodes}
    promised = {
        ref.uid
        for slot in snapshot.slots
        if slot.replaces and slot.instance_id not in joined
        for ref in slot.pods
    }
    known = tuple(
        pod
        for pod in asked.pending
        if pod.scheduling.claims in ((), RESOLVED) and pod.uid not in promised
    )
    plan = decide(replace(asked, pending=known))
    places = {ref.uid: found.node for found in plan.placements for ref in found.pods}
    return replace(
        snapshot,
        bound=tuple(
            replace(pod, node_name=places[pod.uid], deletion_at=None) if pod.uid in places else pod
            for pod in snapshot.bound
        ),
    )


def _uncordoned(node: Node) -> Node:
    """Return a node as it is once it takes pods: a replacement may still be starting."""
    if keys.REPLACES not in node.annotations or node.is_initialized:
        return replace(node, unschedulable=False) if node.unschedulable else node
    taints = tuple(taint for taint in node.taints if not keys.is_ephemeral(taint.key))
    return replace(node, unschedulable=False, ready=True, taints=taints)


def by_price(packing: PackingSettings) -> PackingSettings:
    """Return the settings by which consolidation compares spot nodes: by the price that is paid.

    For new pods, nodes are compared by the mean of many pools, since EC2 chooses the pool. Here,
    pools that EC2 skips are left out, and `spot_types` says how many instance types must be left.
    """
    return replace(
        packing,
        diversification_k_spot=1,
        option_price_ceiling_percent=max(_OPTION_CEILING, packing.option_price_ceiling_percent),
    )


def simulate(
    snapshot: ClusterSnapshot, names: Collection[str], settings: PackingSettings
) -> Plan | None:
    """Return the plan for the pods of some nodes without these nodes, None when a pod fits nowhere.

    Args:
        snapshot: As `with_drained` returns it.
    """
    # The pods are not new ones: no node is to be larger than they need.
    settings = replace(settings, growth_percent=0, fewer_nodes_permille=0)
    plan = decide(without_nodes(snapshot, names), settings)
    return None if plan.unschedulable else plan


def launched_again(
    snapshot: ClusterSnapshot,
    names: Collection[str],
    plan: Plan,
    budgets: Sequence[PodDisruptionBudget],
    settings: PackingSettings,
) -> Plan | None:
    """Return what would be launched since kube-scheduler does not place pods as a plan does.

    It places the pods of removed nodes one by one, in the order in which they are made again. A
    PodDisruptionBudget lets only so many of its pods go at a time: the others come later. Pods
    with volumes are made again when these are detached.

    Args:
        snapshot: As `with_drained` returns it.
        plan: What `simulate` returns; its new nodes are their cheapest options.

    Returns:
        The plan for the pods that find no room, empty where all do; None when one fits nowhere.
    """
    slots = tuple(_planned(snapshot, number, node) for number, node in enumerate(plan.nodes))
    after = replace(without_nodes(snapshot, names), slots=slots)
    pods = sorted(pods_to_place(after), key=lambda pod: pod.key)
    evicted: Counter[tuple[str, str]] = Counter()
    turns: dict[str, int] = {}
    for pod in pods:
        for budget in budgets:
            if budget.protects(pod):
                at_a_time = max(budget.disruptions_allowed, 1)
                turns[pod.uid] = evicted[budget.namespace, budget.name] // at_a_time
                evicted[budget.namespace, budget.name] += 1
    pods.sort(key=lambda pod: (turns.get(pod.uid, 0), bool(pod.scheduling.claims)))
    places = kube_scheduler_places(replace(after, sites=()), pods)
    if len(places) == len(pods):
        return Plan()
    placed = tuple(replace(pod, node_name=places.get(pod.uid, "")) for pod in pods)
    own = {slot.name for slot in slots}
    left = decide(
        replace(
            after,
            pending=tuple(pod for pod in placed if not pod.node_name or pod.node_name in own),
            bound=(
                *after.bound,
                *(pod for pod in placed if pod.node_name and pod.node_name not in own),
            ),
            slots=tuple(
                replace(slot, pods=tuple(ref_of(p) for p in placed if p.node_name == slot.name))
                for slot in slots
            ),
        ),
        settings,
    )
    return None if left.unschedulable else left


def _planned(snapshot: ClusterSnapshot, number: int, node: PlannedNode) -> Slot:
    """Return a node that a plan launches as if EC2 had launched its cheapest option."""
    option = node.options[0]
    return Slot(
        cluster=snapshot.cluster,
        plan_id="simulated",
        group=0,
        number=number,
        provisioner=node.provisioner,
        instance_id=f"simulated {number}",
        offering=option.offering,
        price_micros_per_hour=option.price_micros_per_hour,
        capacity=option.capacity,
        allocatable=option.allocatable,
        daemon_requests=node.daemon_requests,
        labels={**node.labels, **option.offering.labels},
        launched_at=snapshot.taken_at,
    )


def fits_without(
    snapshot: ClusterSnapshot, names: Collection[str], settings: PackingSettings
) -> bool:
    """Return whether the pods of these nodes fit on the other nodes without a launch.

    Capacity that pods of nodes that are being deleted need is reserved for them, as are nodes that
    were launched to replace others. Volumes are left out: their location was checked when the
    change was planned.
    """
    bound = tuple(
        replace(pod, scheduling=replace(pod.scheduling, claims=()))
        if pod.node_name in names and pod.scheduling.claims
        else pod
        for pod in snapshot.bound
    )
    for_others = {
        node.name
        for node in snapshot.nodes
        if keys.REPLACES in node.annotations
        and not set(names).intersection(node.annotations[keys.REPLACES].split(","))
    }
    cordoned = replace(
        with_cordoned(snapshot, for_others), bound=bound, provisioners=(), instance_types=()
    )
    return not decide(without_nodes(with_drained(cordoned), names), settings).unschedulable


def with_claims_of(
    snapshot: ClusterSnapshot,
    uids: Collection[str],
    resolve: Callable[[ClusterSnapshot], ClusterSnapshot],
) -> ClusterSnapshot:
    """Return the snapshot with the constraints that volumes put on some running pods if moved.

    Args:
        uids: Of the pods that may move.
        resolve: Returns a snapshot with the claims of its pending pods resolved.
    """
    moving = {pod.uid: pod for pod in snapshot.bound if pod.scheduling.claims and pod.uid in uids}
    if not moving:
        return snapshot
    asking = replace(
        snapshot,
        pending=(*snapshot.pending, *map(as_pending, moving.values())),
        bound=tuple(pod for pod in snapshot.bound if pod.uid not in moving),
    )
    resolved = resolve(asking)
    found: dict[str, Pod] = {pod.uid: pod for pod in resolved.pending}
    # Their attached volumes are subtracted from their nodes already, and now requested, too.
    attached: dict[str, Resources] = {}
    for uid, pod in moving.items():
        more = found[uid].scheduling.requests - pod.scheduling.requests
        attached[pod.node_name] = attached.get(pod.node_name, Resources()) + more
    return replace(
        resolved,
        pending=tuple(pod for pod in resolved.pending if pod.uid not in moving),
        nodes=tuple(
            replace(node, allocatable=node.allocatable + attached[node.name])
            if node.allocatable and node.name in attached
            else node
            for node in resolved.nodes
        ),
        bound=tuple(
            replace(
                pod,
                scheduling=found[pod.uid].scheduling,
                labels=found[pod.uid].labels,
            )
            if pod.uid in moving
            else pod
            for pod in snapshot.bound
        ),
    )


def as_pending(pod: Pod) -> Pod:
    """Return a pod, or the successor of a terminating one, as if it were pending."""
    return replace(
        pod,
        node_name="",
        nominated_node="",
        phase="Pending",
        unschedulable=True,
        gated=False,
        deletion_at=None,
    )

"""What is shown of nodes and of pods that wait: a pure function of what was read.

Amounts are cpu in millicores, memory in bytes and prices in micro-dollars per hour. The page is
sent the result of `to_plain`, which is plain JSON for everything here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from functions.cli.plan.svg_node import DAEMONS
from functions.cli.plan.svg_plan import workload_of
from shared.model import labels as keys
from shared.model.dialect import owner_kind_of
from shared.model.dollars_and_counts import counted
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import PlannedNode, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, MEMORY, PODS
from shared.model.values import replace
from shared.nodes.events.node_events import cause_of, price_of
from shared.nodes.node_waits import waiting_for
from shared.provisioning.savings.pools import capacity_type_of

LAUNCHING: Final = "launching"  # requested from EC2, no Node yet
GOING: Final = "going"
NOT_READY: Final = "not ready"
_EXAMPLES: Final = 3

OfferingId = tuple[str, str, str]  # instance type, zone, capacity type


class WorkloadShare(Struct, frozen=True, kw_only=True):
    """Pods of one workload on one node, and what they request together.

    Attributes:
        names: Each namespace/name, sorted.
    """

    workload: str
    count: int
    cpu: int
    memory: int
    names: tuple[str, ...]


class ShownNode(Struct, frozen=True, kw_only=True):
    """One node, or an instance that has no Node yet.

    Attributes:
        owner: Name of the Provisioner or NodePool it was launched for, empty for none.
        owner_kind: Provisioner or NodePool; empty when it has no owner or that is unknown.
        ours: Whether Dovetail launched it; Karpenter's nodes have an owner, too.
        price: None when neither the Node nor the catalogue knows it.
        cpu: Allocatable, as is `memory`; the expected value for an instance without a Node.
        room: Allocatable number of pods.
        phase: launching, launched, registered, initialized, going or not ready.
        waits_for: What it still needs before it accepts pods, empty for nothing.
        reason: Why it is removed, empty when it stays.
        blocked: What blocks its drain or its removal, empty for nothing.
        since: When its Node was created or its instance launched, ISO 8601; empty when unknown.
        pods: The pods on it, by workload, in order of name.
        promised: The pods nominated to it that are not bound yet, likewise.
        plan: The decision that launched it, empty when unknown.
    """

    name: str
    instance: str
    type: str
    zone: str
    capacity_type: str
    owner: str
    owner_kind: str
    ours: bool
    price: int | None
    cpu: int
    memory: int
    room: int
    phase: str
    waits_for: str = ""
    reason: str = ""
    blocked: str = ""
    since: str = ""
    pods: tuple[WorkloadShare, ...] = ()
    promised: tuple[WorkloadShare, ...] = ()
    plan: str = ""


class WaitingGroup(Struct, frozen=True, kw_only=True):
    """Pods of one workload that wait for the same.

    Attributes:
        key: Identifies this group permanently.
        reason: What they wait for.
        names: The first few, each namespace/name.
        node: What they are nominated to, empty for nothing or several nodes.
        since: When the first was created, ISO 8601; empty when unknown.
    """

    key: str
    workload: str
    count: int
    cpu: int
    memory: int
    reason: str
    names: tuple[str, ...]
    node: str
    since: str


class Nomination(Struct, frozen=True, kw_only=True):
    """The nomination of a pod to a node that is not ready yet.

    Attributes:
        node: Name of the Node, or the instance's id while there is none.
        waits_for: What that node waits for.
    """

    node: str
    waits_for: str


class OfferingPrices(Struct, frozen=True):
    """What offerings cost, in micro-dollars per hour."""

    by_offering: Mapping[OfferingId, int]

    @classmethod
    def of(cls, instance_types: Iterable[InstanceType]) -> "OfferingPrices":
        """Return the prices of a catalogue."""
        return cls(
            {
                (
                    instance_type.name,
                    offering.zone,
                    offering.capacity_type.value,
                ): offering.price_micros_per_hour
                for instance_type in instance_types
                for offering in instance_type.offerings
            }
        )

    def of_node(self, node: Node) -> int | None:
        """Return what a node costs: the annotation of Dovetail, else the catalogue's price.

        The catalogue has only Linux prices.
        """
        labels, paid = node.labels, capacity_type_of(node).value
        place = (labels.get(keys.INSTANCE_TYPE, ""), labels.get(keys.ZONE, ""), paid)
        known = self.by_offering.get(place) if labels.get(keys.OS, "linux") == "linux" else None
        return price_of(node) or known


def view_node(
    node: Node,
    pods: Sequence[Pod],
    owner: Provisioner | None,
    promised: Sequence[Pod],
    price: int | None,
) -> ShownNode:
    """Return what is shown of a node.

    Args:
        pods: The pods on it that have not ended.
        owner: Its Provisioner or NodePool, None when that is gone or unknown.
        promised: The pods nominated to it, bound or not.
        price: What it costs, None when unknown.
    """
    phase, waits = _phase(node, owner, promised)
    written = node.annotations
    kind = node.labels.get(keys.INSTANCE_TYPE, "")
    # That of what is not known to be an instance is not made up: Fargate has none.
    capacity_type = capacity_type_of(node).value if kind else ""
    owner_name = node.labels.get(keys.PROVISIONER_NAME) or node.labels.get(keys.NODE_POOL, "")
    return ShownNode(
        name=node.name,
        instance=node.instance_id,
        type=kind,
        zone=node.labels.get(keys.ZONE, ""),
        capacity_type=node.labels.get(keys.CAPACITY_TYPE) or capacity_type,
        owner=owner_name,
        owner_kind=owner_kind_of(node.labels).value if owner_name else "",
        ours=node.is_ours,
        price=price,
        cpu=node.allocatable[CPU],
        memory=node.allocatable[MEMORY],
        room=node.allocatable[PODS],
        phase=phase,
        waits_for=waits,
        reason=cause_of(node) if phase == GOING else "",
        blocked=written.get(keys.DRAIN_BLOCKED) or written.get(keys.DISRUPTION_BLOCKED, ""),
        since=node.created_at.isoformat() if node.created_at else "",
        pods=workload_shares(pods),
        promised=workload_shares([pod for pod in promised if not pod.node_name]),
        plan=written.get(keys.SLOT, "").partition("/")[0],
    )


def _phase(node: Node, owner: Provisioner | None, promised: Sequence[Pod]) -> tuple[str, str]:
    """Return how far a node has come and what it waits for."""
    if node.deletion_at is not None or keys.REMOVAL_REASON in node.annotations:
        return GOING, ""
    if not node.is_ours:
        return ("initialized", "") if node.ready is True else (NOT_READY, "its kubelet to be Ready")
    if node.was_initialized:
        return (
            ("initialized", "")
            if node.ready is True
            else (NOT_READY, "its kubelet to be Ready again")
        )
    waits = waiting_for(node, owner, promised) or "Dovetail to bind its pods and open it"
    return "launched" if node.ready is None else "registered", waits


def view_slot(slot: Slot, owner: Provisioner | None, promised: Sequence[Pod]) -> ShownNode:
    """Return what is shown of an instance whose Node does not exist yet."""
    return ShownNode(
        name=slot.instance_id,
        instance=slot.instance_id,
        type=slot.offering.instance_type,
        zone=slot.offering.zone,
        capacity_type=slot.offering.capacity_type.value,
        owner=slot.provisioner,
        owner_kind=owner.kind.value if owner is not None else "",
        ours=True,
        price=slot.price_micros_per_hour,
        cpu=slot.allocatable[CPU],
        memory=slot.allocatable[MEMORY],
        room=slot.allocatable[PODS],
        phase=LAUNCHING,
        waits_for="EC2 to start the instance, then its Node is made",
        since=slot.launched_at.isoformat(),
        promised=workload_shares([pod for pod in promised if not pod.node_name]),
        plan=slot.plan_id,
    )


def view_planned(
    name: str, node: PlannedNode, owner: Provisioner | None, promised: Sequence[Pod]
) -> ShownNode:
    """Return what is shown of a node that was requested from EC2 and has no instance yet.

    Args:
        name: Name of its slot.
        promised: The pods that it is planned for.
    """
    first = node.options[0]
    return ShownNode(
        name=name,
        instance="",
        type=first.offering.instance_type,
        zone=first.offering.zone,
        capacity_type=first.offering.capacity_type.value,
        owner=node.provisioner,
        owner_kind=owner.kind.value if owner is not None else "",
        ours=True,
        price=first.price_micros_per_hour,
        cpu=first.allocatable[CPU],
        memory=first.allocatable[MEMORY],
        room=first.allocatable[PODS],
        phase=LAUNCHING,
        waits_for=f"EC2's answer to CreateFleet, which names {len(node.options)} offerings",
        promised=workload_shares(promised),
        plan=name.partition("/")[0],
    )


def workload_shares(pods: Iterable[Pod]) -> tuple[WorkloadShare, ...]:
    """Return pods by workload, in order of name; DaemonSet pods and static pods are one entry."""
    counts: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    keys_of: dict[str, list[str]] = {}
    for pod in pods:
        name = DAEMONS if pod.is_daemon or pod.is_static else workload_of(pod)
        requests = pod.scheduling.requests
        counts[name] += 1
        keys_of.setdefault(name, []).append(pod.key)
        cpu[name] += requests[CPU]
        memory[name] += requests[MEMORY]
    return tuple(
        WorkloadShare(
            workload=name,
            count=counts[name],
            cpu=cpu[name],
            memory=memory[name],
            names=tuple(sorted(keys_of[name])),
        )
        for name in sorted(counts)
    )


def view_waiting(
    pods: Iterable[Pod],
    nominations: Mapping[str, Nomination],
    refused: Mapping[str, str],
    scheduler_messages: Mapping[str, str],
) -> tuple[WaitingGroup, ...]:
    """Return the pods without a node, grouped by workload and reason; most pods first.

    Args:
        nominations: What pods were nominated to, by uid.
        refused: Why the last decision found no place, by uid.
        scheduler_messages: Kube-scheduler's message about a pod, by uid.
    """
    refusals: dict[tuple[str, str], list[Pod]] = {}
    nominated: dict[tuple[str, str], list[tuple[Pod, str]]] = {}
    for pod in pods:
        nomination = nominations.get(pod.uid)
        if nomination is not None:
            key = (workload_of(pod), nomination.waits_for)
            nominated.setdefault(key, []).append((pod, nomination.node))
        else:
            reason = _reason(pod, refused.get(pod.uid, ""), scheduler_messages)
            refusals.setdefault((workload_of(pod), reason), []).append(pod)
    found = [_group(*key, many, key[1]) for key, many in refusals.items()]
    found += [_nominated(*key, many) for key, many in nominated.items()]
    return tuple(sorted(found, key=lambda group: (-group.count, group.key)))


def _reason(pod: Pod, refused: str, scheduler_messages: Mapping[str, str]) -> str:
    if pod.why_not_provisionable:
        return pod.why_not_provisionable
    if refused:
        return refused
    return (
        scheduler_messages.get(pod.uid) or "waits for the next plan, which is made within a minute"
    )


def _nominated(workload: str, waits_for: str, many: Sequence[tuple[Pod, str]]) -> WaitingGroup:
    """Return pods whose nodes wait for the same: those of a large plan are on hundreds of nodes."""
    nodes = sorted({node for _, node in many})
    one = len(nodes) == 1
    reason = f"nominated to {nodes[0] if one else counted(len(nodes), 'node')}"
    if waits_for:
        reason += f", which {'waits' if one else 'wait'} for {waits_for}"
    group = _group(workload, reason, [pod for pod, _ in many], f"nominated {waits_for}")
    return replace(group, node=nodes[0] if one else "")


def _group(workload: str, reason: str, pods: Sequence[Pod], key: str) -> WaitingGroup:
    [total] = workload_shares(pods)
    made = [pod.created_at for pod in pods if pod.created_at is not None]
    return WaitingGroup(
        key=f"{workload} {key}",
        workload=workload,
        count=len(pods),
        cpu=total.cpu,
        memory=total.memory,
        reason=reason,
        names=tuple(sorted(pod.key for pod in pods)[:_EXAMPLES]),
        node="",
        since=min(made).isoformat() if made else "",
    )

"""What is shown of nodes and of pods that wait: a pure function of what was read.

Amounts are cpu in millicores, memory in bytes and prices in micro-dollars per hour. Everything here
is plain JSON once `dataclasses.asdict` has seen it: it is what the page is sent.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from functions.cli.render.svg_node import DAEMONS
from functions.cli.render.svg_plan import workload_of
from shared.events.node_events import cause_of, price_of
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType
from shared.model.ec2.launches import PlannedNode, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.model.resources import CPU, MEMORY, PODS
from shared.node_lifecycle.node_waits import waiting_for

LAUNCHING: Final = "launching"  # asked of EC2, no Node yet
GOING: Final = "going"
NOT_READY: Final = "not ready"
_EXAMPLES: Final = 3

Place = tuple[str, str, str]  # instance type, zone, capacity type


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Pods of one workload on one node, and what they request together."""

    workload: str
    count: int
    cpu: int
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node, or an instance that has no Node yet.

    Attributes:
        owner: Name of the Provisioner or NodePool it was launched for; empty if not by Dovetail.
        price: None when neither the Node nor the catalogue knows it.
        cpu: What pods can have, as is `memory`; of an instance without Node what is expected.
        room: How many pods it can have.
        phase: launching, launched, registered, initialized, going or not ready.
        waits_for: What it still needs before it takes pods, empty for nothing.
        reason: Why it goes, empty when it stays.
        blocked: What holds its drain or keeps it though it should go, empty for nothing.
        since: When its Node was made or its instance launched, ISO 8601; empty when unknown.
        pods: On it, by workload, in order of name.
        promised: Nominated to it and not bound yet, likewise.
        plan: The decision that it was launched by, empty when unknown.
    """

    name: str
    instance: str
    type: str
    zone: str
    capacity_type: str
    owner: str
    price: int | None
    cpu: int
    memory: int
    room: int
    phase: str
    waits_for: str = ""
    reason: str = ""
    blocked: str = ""
    since: str = ""
    pods: tuple[Share, ...] = ()
    promised: tuple[Share, ...] = ()
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """Pods of one workload that wait for the same.

    Attributes:
        key: Names this group for good.
        reason: What they wait for.
        names: Of the first few, each namespace/name.
        since: When the first was made, ISO 8601; empty when unknown.
    """

    key: str
    workload: str
    count: int
    cpu: int
    memory: int
    reason: str
    names: tuple[str, ...]
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """That a pod was nominated to a node that is coming.

    Attributes:
        node: Name of the Node, or the instance's id while there is none.
        waits_for: What that node waits for.
    """

    node: str
    waits_for: str


@dataclass(frozen=True, slots=True)
class Prices:
    """What offerings cost, in micro-dollars per hour."""

    known: Mapping[Place, int]

    @classmethod
    def of(cls, instance_types: Iterable[InstanceType]) -> "Prices":
        """Return the prices of a catalogue."""
        return cls(
            {
                (instance_type.name, way.zone, way.capacity_type.value): way.price_micros_per_hour
                for instance_type in instance_types
                for way in instance_type.offerings
            }
        )

    def of_node(self, node: Node) -> int | None:
        """Return what a node costs: what Dovetail wrote on it, else what the catalogue says.

        A node that does not say how it is paid for counts as on demand; EKS node groups have a
        label of their own for it. The catalogue has prices of Linux alone.
        Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html (2026-11).
        """
        labels = node.labels
        paid = labels.get(keys.CAPACITY_TYPE) or _paid(labels.get("eks.amazonaws.com/capacityType"))
        place = (labels.get(keys.INSTANCE_TYPE, ""), labels.get(keys.ZONE, ""), paid)
        known = self.known.get(place) if labels.get(keys.OS, "linux") == "linux" else None
        return price_of(node) or known


def _paid(text: str | None) -> str:
    return "spot" if text == "SPOT" else "on-demand"


def view_node(
    node: Node,
    pods: Sequence[Pod],
    owner: Provisioner | None,
    promised: Sequence[Pod],
    price: int | None,
) -> NodeView:
    """Return what is shown of a node.

    Args:
        pods: On it that have not ended.
        owner: Its Provisioner or NodePool, None when that is gone or unknown.
        promised: Nominated to it, bound or not.
        price: What it costs, None when unknown.
    """
    phase, waits = _phase(node, owner, promised)
    written = node.annotations
    capacity_type = node.labels.get(keys.CAPACITY_TYPE, "")
    return NodeView(
        name=node.name,
        instance=node.instance_id,
        type=node.labels.get(keys.INSTANCE_TYPE, ""),
        zone=node.labels.get(keys.ZONE, ""),
        capacity_type=capacity_type,
        owner=node.provisioner if node.is_ours else "",
        price=price,
        cpu=node.allocatable[CPU],
        memory=node.allocatable[MEMORY],
        room=node.allocatable[PODS],
        phase=phase,
        waits_for=waits,
        reason=cause_of(node) if phase == GOING else "",
        blocked=written.get(keys.DRAIN_BLOCKED) or written.get(keys.DISRUPTION_BLOCKED, ""),
        since=node.created_at.isoformat() if node.created_at else "",
        pods=shares(pods),
        promised=shares([pod for pod in promised if not pod.node_name]),
        plan=written.get(keys.SLOT, "").partition("/")[0],
    )


def _phase(node: Node, owner: Provisioner | None, promised: Sequence[Pod]) -> tuple[str, str]:
    """Return how far a node has come and what it waits for."""
    if node.deletion_at is not None or keys.REMOVAL_REASON in node.annotations:
        return GOING, ""
    if not node.is_ours:
        return ("initialized", "") if node.ready is True else (NOT_READY, "its kubelet to be Ready")
    if node.has_joined:
        return (
            ("initialized", "")
            if node.ready is True
            else (NOT_READY, "its kubelet to be Ready again")
        )
    waits = waiting_for(node, owner, promised) or "Dovetail to bind its pods and open it"
    return "launched" if node.ready is None else "registered", waits


def view_slot(slot: Slot, promised: Sequence[Pod]) -> NodeView:
    """Return what is shown of an instance whose Node is not made yet."""
    return NodeView(
        name=slot.instance_id,
        instance=slot.instance_id,
        type=slot.offering.instance_type,
        zone=slot.offering.zone,
        capacity_type=slot.offering.capacity_type.value,
        owner=slot.provisioner,
        price=slot.price_micros_per_hour,
        cpu=slot.allocatable[CPU],
        memory=slot.allocatable[MEMORY],
        room=slot.allocatable[PODS],
        phase=LAUNCHING,
        waits_for="EC2 to start the instance, then its Node is made",
        since=slot.launched_at.isoformat(),
        promised=shares([pod for pod in promised if not pod.node_name]),
        plan=slot.plan_id,
    )


def view_planned(name: str, node: PlannedNode, promised: Sequence[Pod]) -> NodeView:
    """Return what is shown of a node that EC2 was asked for and has not given an instance of.

    Args:
        name: Of its slot.
        promised: Pods it is planned for.
    """
    first = node.options[0]
    return NodeView(
        name=name,
        instance="",
        type=first.offering.instance_type,
        zone=first.offering.zone,
        capacity_type=first.offering.capacity_type.value,
        owner=node.provisioner,
        price=first.price_micros_per_hour,
        cpu=first.allocatable[CPU],
        memory=first.allocatable[MEMORY],
        room=first.allocatable[PODS],
        phase=LAUNCHING,
        waits_for=f"EC2's answer to CreateFleet, which names {len(node.options)} offerings",
        promised=shares(promised),
        plan=name.partition("/")[0],
    )


def shares(pods: Iterable[Pod]) -> tuple[Share, ...]:
    """Return pods by workload, in order of its name; those of DaemonSets and nodes are one."""
    counts: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for pod in pods:
        name = DAEMONS if pod.is_daemon or pod.is_static else workload_of(pod)
        requests = pod.scheduling.requests
        counts[name] += 1
        cpu[name] += requests[CPU]
        memory[name] += requests[MEMORY]
    return tuple(
        Share(workload=name, count=counts[name], cpu=cpu[name], memory=memory[name])
        for name in sorted(counts)
    )


def view_waiting(
    pods: Iterable[Pod],
    promises: Mapping[str, Promise],
    refused: Mapping[str, str],
    said: Mapping[str, str],
) -> tuple[WaitingView, ...]:
    """Return the pods without a node, grouped by workload and reason; most pods first.

    Args:
        promises: What pods were nominated to, by uid.
        refused: Why the last decision found no place, by uid.
        said: What kube-scheduler says of a pod, by uid.
    """
    groups: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        reason = _reason(pod, promises.get(pod.uid), refused.get(pod.uid, ""), said)
        groups.setdefault((workload_of(pod), reason), []).append(pod)
    found = [_group(workload, reason, many) for (workload, reason), many in groups.items()]
    return tuple(sorted(found, key=lambda group: (-group.count, group.key)))


def _reason(pod: Pod, promise: Promise | None, refused: str, said: Mapping[str, str]) -> str:
    if promise is not None:
        waits = f", which waits for {promise.waits_for}" if promise.waits_for else ""
        return f"nominated to {promise.node}{waits}"
    if pod.why_not_provisionable:
        return pod.why_not_provisionable
    if refused:
        return refused
    return said.get(pod.uid) or "waits for the next plan, which is made within a minute"


def _group(workload: str, reason: str, pods: Sequence[Pod]) -> WaitingView:
    [total] = shares(pods)
    made = [pod.created_at for pod in pods if pod.created_at is not None]
    return WaitingView(
        key=f"{workload} {reason}",
        workload=workload,
        count=len(pods),
        cpu=total.cpu,
        memory=total.memory,
        reason=reason,
        names=tuple(sorted(pod.key for pod in pods)[:_EXAMPLES]),
        since=min(made).isoformat() if made else "",
    )

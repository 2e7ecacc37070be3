"""Events about each step of a node's life, on the Node, and about groups of nodes.

A step happens once, so its Event is written by whatever takes the step, without a note in the
ledger; a step that is repeated after a crash raises the Event's count. Texts carry no times: the
Event has one.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef, Slot
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.nodes import UNHEALTHY_AFTER, Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.ports import KubernetesEvent, Severity

MICROS: Final = 1_000_000
# The most nodes that an Event about a group names, and the most pods that get an Event about their
# node at once: each Event is a call to the API server.
MOST_NAMED: Final = 3
MOST_PODS: Final = 25
CONSOLE: Final = "aws ec2 get-console-output --latest --output text --instance-id"


def event_on(
    subject: Node | Pod | PodRef | Provisioner | DaemonSet,
    reason: str,
    text: str,
    *,
    severity: Severity = Severity.WARNING,
) -> KubernetesEvent:
    """Return an Event about a Node, a Pod, a Provisioner, a NodePool or a DaemonSet."""
    kind = "Pod" if isinstance(subject, PodRef) else type(subject).__name__
    return KubernetesEvent(
        kind=subject.kind.value if isinstance(subject, Provisioner) else kind,
        namespace=subject.namespace if isinstance(subject, Pod | PodRef | DaemonSet) else "",
        name=subject.name,
        uid=subject.uid,
        severity=severity,
        reason=reason,
        message=text,
        api_version="apps/v1" if isinstance(subject, DaemonSet) else "",
    )


# --- one node


def launched(slot: Slot, node: Node) -> KubernetesEvent:
    """Return the Event that a node's instance was launched and its Node made."""
    return _step(node, "Launched", f"launched {machine_of(slot)}; waits for its kubelet to join")


def unmarked(node: Node) -> KubernetesEvent:
    """A kubelet registered without the taint that keeps pods away until the node is ready."""
    text = "its kubelet registered without Dovetail's taint: pods may have come before it was ready"
    return event_on(node, "UnregisteredTaintMissing", text)


def registered(node: Node) -> KubernetesEvent:
    """Return the Event that a node's kubelet has joined and is Ready."""
    return _step(node, "Registered", f"the kubelet of {node.instance_id} joined and is Ready")


def waits(node: Node, waiting_for: str) -> KubernetesEvent:
    """Return the Event that a node whose kubelet is Ready is not initialized yet.

    Args:
        waiting_for: What it waits for, as in "startup taint X to go".
    """
    return _step(node, "NotInitialized", f"is Ready and not initialized: waits for {waiting_for}")


def overdue(node: Node, waiting_for: str, limit: timedelta) -> KubernetesEvent:
    """Return the Event that a node has waited for too long, and takes no further pods for that."""
    minutes = round(limit.total_seconds() / 60)
    text = (
        f"is Ready for more than {minutes} min and still waits for {waiting_for}; until it is "
        "initialized no further pods are nominated to it"
    )
    return event_on(node, "NotInitialized", text)


def initialized(node: Node) -> KubernetesEvent:
    """Return the Event that a node takes pods from now on."""
    return _step(node, "Initialized", "is initialized and takes pods")


def unhealthy(node: Node, prospect: str) -> KubernetesEvent:
    """Return the Event that a node's kubelet has not been Ready for long.

    Args:
        prospect: What becomes of it.
    """
    minutes = round(UNHEALTHY_AFTER.total_seconds() / 60)
    return event_on(node, "NotReady", f"has been NotReady for more than {minutes} min; {prospect}")


def empty(node: Node, ttl: timedelta) -> KubernetesEvent:
    """Return the Event that the last pod has left a node.

    Args:
        ttl: How long it stays empty before it is removed.
    """
    seconds = round(ttl.total_seconds())
    text = f"has no pods but those of DaemonSets; is removed {seconds} s later unless a pod comes"
    return _step(node, "Empty", text)


def cordoned(node: Node) -> KubernetesEvent:
    """Return the Event that a node was cordoned to be drained."""
    return _step(node, "Cordoned", f"cordoned, will be drained and terminated: {cause_of(node)}")


def drained(node: Node) -> KubernetesEvent:
    """Return the Event that nothing is left to evict from a node."""
    return _step(node, "Drained", f"no pod is left to evict; {node.instance_id} is terminated next")


def terminated(node: Node) -> KubernetesEvent:
    """Return the Event that a node's instance has ended and the Node is deleted."""
    return _step(node, "Terminated", f"terminated {described(node)}: {cause_of(node)}")


def cause_of(node: Node) -> str:
    """Return why a node goes, for people: the reason written on it, else that it was deleted."""
    return node.annotations.get(keys.REMOVAL_REASON) or "the Node was deleted"


def machine_of(slot: Slot) -> str:
    """Return id, type, zone, capacity type and price of a launched instance, for people."""
    offering = slot.offering
    return _machine(
        slot.instance_id,
        offering.instance_type,
        offering.capacity_type.value,
        offering.zone,
        slot.price_micros_per_hour,
    )


def described(node: Node) -> str:
    """Return id, type, zone, capacity type and price of a node's instance, for people."""
    found = node.labels.get
    return _machine(
        node.instance_id,
        found(keys.INSTANCE_TYPE, ""),
        found(keys.CAPACITY_TYPE, ""),
        found(keys.ZONE, ""),
        price_of(node),
    )


def price_of(node: Node) -> int:
    """Return what a node's instance costs, in micro-dollars per hour; 0 when that is unknown."""
    written = node.annotations.get(keys.PRICE, "")
    return int(written) if written.isdecimal() else 0


def nominated(ref: PodRef, slot: Slot, node: Node | None) -> KubernetesEvent:
    """Return the Event on a pod about the node it is planned onto, and what that node waits for.

    Args:
        node: Of the slot, None while it is not made.
    """
    kind = slot.offering.instance_type
    if node is None:
        text = f"nominated instance {slot.instance_id} ({kind}), whose Node is not made yet"
    elif node.ready is not True:
        text = f"nominated node {node.name} ({kind}), which waits for its kubelet to join"
    else:
        text = f"nominated node {node.name} ({kind}), which is Ready and not yet initialized"
    return event_on(ref, "Nominated", text, severity=Severity.NORMAL)


def first_names(names: Iterable[str]) -> str:
    """Return the first names and how many more there are.

    Example:
        >>> first_names(["a", "b"]), first_names("abcde")
        ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = len(listed) - MOST_NAMED
    return ", ".join(listed[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 pod" and "2 pods"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _step(node: Node, reason: str, text: str) -> KubernetesEvent:
    return event_on(node, reason, text, severity=Severity.NORMAL)


def _machine(
    instance_id: str, instance_type: str, capacity_type: str, zone: str, micros_per_hour: int
) -> str:
    said = [instance_type, capacity_type, zone]
    if micros_per_hour:
        said.append(f"${micros_per_hour / MICROS:.4f}/h")
    known = ", ".join(text for text in said if text)
    return f"{instance_id or 'an unknown instance'}" + (f" ({known})" if known else "")

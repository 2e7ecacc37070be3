"""Events about each step of a node's life, on the Node, and about groups of nodes.

A step happens once, so the code that takes the step writes its Event, without a note in the ledger;
a step that is repeated after a crash increments the Event's count. Texts contain no times: the
Event has one.
"""

from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.dollars_and_counts import hourly
from shared.model.ec2.launches import PodRef, Slot
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import UNHEALTHY_AFTER, Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.ports import KubernetesEvent, Severity

# The most pods that get an Event about their node at once: each is a call to the API server.
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
    """Return the Event that a node's instance was launched and its Node created."""
    return _step(
        node, "Launched", f"launched {slot_instance_text(slot)}; waits for its kubelet to join"
    )


def registered_without_taint(node: Node) -> KubernetesEvent:
    """Return the Event that a kubelet registered without the taint that keeps pods away."""
    text = "its kubelet registered without Dovetail's taint: pods may have come before it was ready"
    return event_on(node, "UnregisteredTaintMissing", text)


def registered(node: Node) -> KubernetesEvent:
    """Return the Event that a node's kubelet has joined and is Ready."""
    return _step(node, "Registered", f"the kubelet of {node.instance_id} joined and is Ready")


def not_initialized(node: Node, waiting_for: str) -> KubernetesEvent:
    """Return the Event that a node whose kubelet is Ready is not initialized yet.

    Args:
        waiting_for: What it waits for, as in "startup taint X to go".
    """
    return _step(node, "NotInitialized", f"is Ready and not initialized: waits for {waiting_for}")


def overdue(node: Node, waiting_for: str, allowed: timedelta) -> KubernetesEvent:
    """Return the Event that a node has waited too long, so no further pods are nominated to it."""
    minutes = round(allowed.total_seconds() / 60)
    text = (
        f"is Ready for more than {minutes} min and still waits for {waiting_for}; until it is "
        "initialized no further pods are nominated to it"
    )
    return event_on(node, "NotInitialized", text)


def initialized(node: Node) -> KubernetesEvent:
    """Return the Event that a node is initialized and accepts pods from now on."""
    return _step(node, "Initialized", "is initialized and takes pods")


def unhealthy(node: Node, outcome: str) -> KubernetesEvent:
    """Return the Event that a node has not been Ready for five minutes.

    Args:
        outcome: What happens to the node.
    """
    minutes = round(UNHEALTHY_AFTER.total_seconds() / 60)
    return event_on(node, "NotReady", f"has been NotReady for more than {minutes} min; {outcome}")


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
    return _step(node, "Terminated", f"terminated {node_instance_text(node)}: {cause_of(node)}")


def cause_of(node: Node) -> str:
    """Return why a node is removed, for messages: its removal reason, else that it was deleted."""
    return node.annotations.get(keys.REMOVAL_REASON) or "the Node was deleted"


def slot_instance_text(slot: Slot) -> str:
    """Return a launched instance as text: ID, type, capacity type, zone and price."""
    offering = slot.offering
    return _instance_text(
        slot.instance_id,
        offering.instance_type,
        offering.capacity_type.value,
        offering.zone,
        slot.price_micros_per_hour,
    )


def node_instance_text(node: Node) -> str:
    """Return a node's instance as text: ID, type, capacity type, zone and price."""
    found = node.labels.get
    return _instance_text(
        node.instance_id,
        found(keys.INSTANCE_TYPE, ""),
        found(keys.CAPACITY_TYPE, ""),
        found(keys.ZONE, ""),
        price_of(node),
    )


def price_of(node: Node) -> int:
    """Return the price of a node's instance in micro-dollars per hour, 0 if unknown."""
    written = node.annotations.get(keys.PRICE, "")
    return int(written) if written.isdecimal() else 0


def nominated(ref: PodRef, slot: Slot, node: Node | None) -> KubernetesEvent:
    """Return the Event on a pod about the node that it is nominated to, and what that waited for.

    The Event stays when the node has come further: it says what was.

    Args:
        node: The Node of the slot, None until it is created.
    """
    kind = slot.offering.instance_type
    if node is None:
        text = f"nominated instance {slot.instance_id} ({kind}); its Node was not made yet"
    elif node.ready is not True:
        text = f"nominated node {node.name} ({kind}); its kubelet had not joined yet"
    else:
        text = f"nominated node {node.name} ({kind}); it was Ready and not yet initialized"
    return event_on(ref, "Nominated", text, severity=Severity.NORMAL)


def _step(node: Node, reason: str, text: str) -> KubernetesEvent:
    return event_on(node, reason, text, severity=Severity.NORMAL)


def _instance_text(
    instance_id: str, instance_type: str, capacity_type: str, zone: str, micros_per_hour: int
) -> str:
    parts = [instance_type, capacity_type, zone]
    if micros_per_hour:
        parts.append(hourly(micros_per_hour))
    known = ", ".join(text for text in parts if text)
    return f"{instance_id or 'an unknown instance'}" + (f" ({known})" if known else "")

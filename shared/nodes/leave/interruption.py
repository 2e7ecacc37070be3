"""Interruption: AWS interrupts an instance; its node is drained and replaced at once."""

import contextlib
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.errors import ConflictError, NotFoundError, RetryableError
from shared.model.kubernetes.nodes import Node
from shared.model.messages.notices import Notice, NoticeKind
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner
from shared.model.scheduled_changes import DRAINED_AHEAD
from shared.nodes.events.node_events import event_on
from shared.nodes.launch.refusals.offering_facts import OfferingFact, mark_unavailable
from shared.nodes.leave.interrupted_slots import (
    EVICTION_TIME,
    mark_interrupted,
    record_interruption,
)
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.pod_eviction import force_delete_pods
from shared.nodes.node_editor import change_node
from shared.ports import NodeChange, NodePorts
from shared.snapshot.node_facts import cluster_instances

# Provision is not invoked again within this time.
_WAKE_INTERVAL: Final = timedelta(seconds=2)
_LOST_STATES: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
_STOPPED: Final = frozenset({"stopping", "stopped"})
# In these states no kubelet runs; before, it may still run pods.
_OFF: Final = frozenset({"stopped", "terminated"})
# How often a Node that controllers write to is read again for one notice.
_ATTEMPTS: Final = 4


class InterruptReport(Struct, frozen=True, kw_only=True):
    """The result of one notice about one instance.

    Attributes:
        interrupted: Whether AWS interrupts the instance: false if Dovetail terminates it itself.
    """

    instance_id: str
    node: str
    action: str
    interrupted: bool = False


class NodeIndex:
    """From instance to node, for one cluster; kept while the process runs.

    Notices come in bursts when EC2 reclaims a Spot pool: nodes and instances are listed once for
    many.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._offerings: dict[str, OfferingKey] = {}
        self._woken_at: datetime | None = None

    def find(self, ports: NodePorts, instance_id: str, node_name: str = "") -> Node | None:
        """Return the node of an instance as it is now, None if there is none.

        Args:
            node_name: The name of its node, if known.
        """
        if node_name:
            self._names[instance_id] = node_name
        elif instance_id not in self._names:
            listed = ports.cluster.nodes()
            self._names = {node.instance_id: node.name for node in listed if node.instance_id}
        name = self._names.get(instance_id)
        node = ports.cluster.node(name) if name is not None else None
        if node is None or node.instance_id != instance_id:
            self._names.pop(instance_id, None)
            return None
        return node

    def offering(self, ports: NodePorts, instance_id: str) -> OfferingKey | None:
        """Return the offering of one of the cluster's instances, None if EC2 does not show it."""
        if instance_id not in self._offerings:
            shown = cluster_instances(ports)
            self._offerings = {instance.instance_id: instance.offering for instance in shown}
        return self._offerings.get(instance_id)

    def wake_provision(self, ports: NodePorts) -> None:
        """Let provision evaluate the nodes: by the queue, and at once unless just invoked."""
        now = ports.clock.now()
        ports.outbox.evaluate(ports.cluster.name)
        if self._woken_at is None or now - self._woken_at >= _WAKE_INTERVAL:
            self._woken_at = now
            try:
                ports.outbox.invoke_provision(ports.cluster.name, evaluate=True)
            except RetryableError:
                # The queue has the same message.
                return


class Interruption:
    """Acts on notices about instances of one cluster.

    Args:
        index: What this process knows about the cluster's nodes.
    """

    def __init__(self, ports: NodePorts, index: NodeIndex | None = None) -> None:
        self._ports = ports
        self._index = index or NodeIndex()

    def run(self, notice: Notice, instance_id: str) -> InterruptReport:
        """Act on a notice about one of the cluster's instances.

        Raises:
            ConflictError: If its slot or its Node changes too fast: the notice comes again.
        """
        for _ in range(_ATTEMPTS):
            report = self._run(notice, instance_id)
            if report is not None:
                return report
        raise ConflictError(f"the slot of {instance_id} changes too fast: the notice comes again")

    def _run(self, notice: Notice, instance_id: str) -> InterruptReport | None:
        """Return the report, None if the Node came or went meanwhile, or may have."""
        node = self._index.find(self._ports, instance_id)
        if node is None or not node.is_ours:
            action = self._without_node(notice, instance_id, node)
            if action is None:
                return None
            return InterruptReport(
                instance_id=instance_id,
                node="",
                action=action,
                interrupted=action != "ignored",
            )
        if notice.kind == NoticeKind.REBALANCE_RECOMMENDATION:
            action = self._on_rebalance_recommendation(node)
            return InterruptReport(instance_id=instance_id, node=node.name, action=action)
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _LOST_STATES:
            return InterruptReport(instance_id=instance_id, node=node.name, action="ignored")
        if action := self._on_scheduled_change(notice, node):
            return InterruptReport(instance_id=instance_id, node=node.name, action=action)
        if notice.kind.is_warning:
            self._mark_unavailable(node, OfferingFact.INTERRUPTED)
        going = node.deletion_at is not None
        interrupted = not going or notice.kind.is_warning
        if interrupted:
            if not going:
                why = notice.change.text if notice.change is not None else ""
                record_interruption(self._ports, node, notice.kind, why)
            if not self._remove(node, notice):
                return None
            # Its pods get new nodes now, before they are evicted.
            self._index.wake_provision(self._ports)
        self._force_delete_pods(node, notice)
        return InterruptReport(
            instance_id=instance_id,
            node=node.name,
            action="draining" if going else "drained",
            interrupted=interrupted,
        )

    def _force_delete_pods(self, node: Node, notice: Notice) -> None:
        """Delete the pods of an instance that is off, before the next step of its drain does.

        A notice that an instance was stopped may be late: it counts only if EC2 still shows that.
        """
        if notice.kind != NoticeKind.STATE_CHANGE or notice.state not in _OFF:
            return
        if notice.state == "stopped":
            shown = self._ports.cloud.instances([node.instance_id])
            if not any(instance.state in _OFF for instance in shown):
                return
        try:
            force_delete_pods(self._ports, node)
        except (ConflictError, NotFoundError):
            # The Node is gone, or others write to it all the time: the next step of the drain does
            # this.
            return

    def _remove(self, node: Node, notice: Notice) -> bool:
        """Remove a node, or set the deadline of a drain that runs already.

        The instance ends two minutes after EC2 said so, however late the notice is.

        Returns:
            False if it is gone, or is no longer Dovetail's, by its labels.
        """
        deadline = None
        if notice.kind.is_warning:
            deadline = (notice.at or self._ports.clock.now()) + EVICTION_TIME
        for _ in range(_ATTEMPTS):
            if remove_node(self._ports, node, notice.kind.value, deadline):
                return True
            fresh = self._index.find(self._ports, node.instance_id, node.name)
            if fresh is None or not fresh.is_ours:
                return False
            node = fresh
        raise ConflictError(f"node {node.name} changes too fast: the notice comes again")

    def _on_rebalance_recommendation(self, node: Node) -> str:
        """Mark a node that EC2 expects to interrupt: provision replaces it first if that pays."""
        if node.deletion_at is not None or keys.REBALANCE_RECOMMENDED in node.annotations:
            return "recorded"
        now = self._ports.clock.now()
        stamp = {keys.REBALANCE_RECOMMENDED: now.isoformat(timespec="seconds")}
        with contextlib.suppress(NotFoundError):
            change_node(self._ports, node, NodeChange(set_annotations=stamp))
        self._mark_unavailable(node, OfferingFact.ABOUT_TO_BE_INTERRUPTED)
        owner = self._owner(node)
        if owner is not None and not owner.acts_on(Trigger.REBALANCE):
            text = f"EC2 expects to interrupt it: {_only_recorded(owner, Trigger.REBALANCE)}"
        else:
            text = "EC2 expects to interrupt it: replaced first if it pays"
            self._ports.outbox.evaluate(self._ports.cluster.name)
        self._record_event(node, "RebalanceRecommended", text)
        return "recorded"

    def _on_scheduled_change(self, notice: Notice, node: Node) -> str:
        """Mark a node that has time until a scheduled change of AWS: provision replaces it first.

        Returns:
            What was done, empty if the node must be drained now.
        """
        change = notice.change
        if change is None or node.deletion_at is not None:
            return ""
        if node.instance_id in notice.ended:
            self._mark(node, None)
            return "ignored"
        owner = self._owner(node)
        if owner is not None and not owner.acts_on(Trigger.SCHEDULED_CHANGE):
            text = f"{change.text}: {_only_recorded(owner, Trigger.SCHEDULED_CHANGE)}"
        elif change.starts_at is None or change.is_drain_due(self._ports.clock.now()):
            return ""
        else:
            text = (
                f"{change.text}: replaced before, and drained at "
                f"{change.starts_at - DRAINED_AHEAD:%H:%M} UTC at the latest"
            )
            self._ports.outbox.evaluate(self._ports.cluster.name)
        if self._mark(node, change.annotation_value):
            self._record_event(node, "ScheduledChange", text)
        return "recorded"

    def _mark(self, node: Node, mark: str | None) -> bool:
        """Annotate a node with what is scheduled; return whether the annotation changed."""
        if node.annotations.get(keys.CHANGE_SCHEDULED) == mark:
            return False
        with contextlib.suppress(NotFoundError):
            change_node(
                self._ports, node, NodeChange(set_annotations={keys.CHANGE_SCHEDULED: mark})
            )
        return True

    def _owner(self, node: Node) -> Provisioner | None:
        owners, _ = self._ports.cluster.provisioners()
        return next((owner for owner in owners if owner.owns(node)), None)

    def _without_node(self, notice: Notice, instance_id: str, node: Node | None) -> str | None:
        """Act on an instance that ends before it is a node: its pods are planned again.

        Args:
            node: The Node of the instance if it is not Dovetail's.

        Returns:
            None if its Node was created meanwhile, or may have been.
        """
        if notice.kind != NoticeKind.STATE_CHANGE and not notice.kind.is_warning:
            return "ignored"
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _LOST_STATES:
            return "ignored"
        slot = self._ports.ledger.slot_with(self._ports.cluster.name, instance_id)
        if notice.state == "terminated" and slot is None:
            # An instance with a slot is dropped with the slot, which is found by the instance's
            # row.
            self._ports.ledger.drop_instance(instance_id)
        has_joined = node is not None and keys.TERMINATION_FINALIZER in node.finalizers
        if notice.state in _STOPPED and not has_joined:
            # It will never join, and its volumes cost money. A Node with the finalizer has only
            # lost its other marks: sweep puts them back and removes the Node.
            self._ports.cloud.terminate([instance_id])
        if slot is None:
            return "ignored"
        if slot.node_name:
            made = self._index.find(self._ports, instance_id, slot.node_name)
            return "ignored" if made is None or not made.is_ours else None
        if notice.kind.is_warning and slot.interrupted_at is None:
            if notice.kind == NoticeKind.SPOT_INTERRUPTION:
                mark_unavailable(self._ports, OfferingFact.INTERRUPTED, [slot.offering])
            if not mark_interrupted(self._ports, slot):
                return None
        # If the instance ended, provision reads why and frees its pods.
        self._ports.outbox.wake(self._ports.cluster.name, timedelta(0))
        return "planned again"

    def _mark_unavailable(self, node: Node, fact: OfferingFact) -> None:
        """Mark the offering of a node's instance unavailable, as EC2 shows it."""
        offering = self._index.offering(self._ports, node.instance_id)
        if offering is not None and offering.capacity_type == CapacityType.SPOT:
            mark_unavailable(self._ports, fact, [offering])

    def _record_event(self, node: Node, reason: str, text: str) -> None:
        self._ports.cluster.record_events([event_on(node, reason, text)])


def _only_recorded(owner: Provisioner, trigger: Trigger) -> str:
    setting = "off" if trigger in owner.triggers else "not on"
    return (
        f"only recorded, as {trigger.annotation} of {owner.kind.lower()} {owner.name} is {setting}"
    )

"""Interruption: AWS takes a machine; its node is drained and replaced at once."""

import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.events.node_events import event_on
from shared.launching.offering_facts import Fact, note
from shared.messages.notices import Notice, NoticeKind
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.errors import ConflictError, NotFoundError, RetryableError
from shared.model.kubernetes.nodes import Node
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner
from shared.model.scheduled_changes import DRAINED_AHEAD
from shared.node_lifecycle.force_deletion import free_node
from shared.node_lifecycle.interrupted_slots import (
    ASKED_FOR,
    mark_interrupted,
    tell_interrupted,
)
from shared.node_lifecycle.node_deletion import remove
from shared.node_lifecycle.node_editor import change_node, read_again
from shared.ports import NodeChange, NodePorts
from shared.snapshot.node_facts import cluster_instances

# Provision is not called again within this.
_SETTLED: Final = timedelta(seconds=2)
_TAKEN: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
_STOPPED: Final = frozenset({"stopping", "stopped"})
# In these states no kubelet runs; before, it may still run pods.
_OFF: Final = frozenset({"stopped", "terminated"})
# How often a Node that controllers write to is read again for one notice.
_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptReport:
    """What came of one notice about one instance.

    Attributes:
        interrupted: Whether the machine was taken: false for what Dovetail terminates itself.
    """

    instance_id: str
    node: str
    action: str
    interrupted: bool = False


class NodeIndex:
    """Which node an instance is, for one cluster; kept while a process lives.

    A burst of notices comes when a pool is taken: nodes and machines are listed once for many.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._offerings: dict[str, OfferingKey] = {}
        self._looked_at: datetime | None = None

    def find(self, ports: NodePorts, instance_id: str, node_name: str = "") -> Node | None:
        """Return the node of an instance as it is now, None when there is none.

        Args:
            node_name: Of its node, if that is known.
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
        """Return the offering of one of the cluster's machines, None when EC2 does not show it."""
        if instance_id not in self._offerings:
            shown = cluster_instances(ports)
            self._offerings = {machine.instance_id: machine.offering for machine in shown}
        return self._offerings.get(instance_id)

    def look(self, ports: NodePorts) -> None:
        """Let provision look over the nodes: by the queue, and at once when not just asked."""
        now = ports.clock.now()
        ports.outbox.look(ports.cluster.name)
        if self._looked_at is None or now - self._looked_at >= _SETTLED:
            self._looked_at = now
            try:
                ports.outbox.invoke_provision(ports.cluster.name, look=True)
            except RetryableError:
                # The queue has the same message.
                return


class Interruption:
    """Acts on notices about machines of one cluster.

    Args:
        index: What this process knows of its nodes.
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
        """Return what came of it, None when its Node was made meanwhile, or may have been."""
        node = self._index.find(self._ports, instance_id)
        if node is None or not node.is_ours:
            action = self._without_node(notice, instance_id)
            if action is None:
                return None
            return InterruptReport(
                instance_id=instance_id,
                node="",
                action=action,
                interrupted=action != "ignored",
            )
        if notice.kind == NoticeKind.REBALANCE_RECOMMENDATION:
            action = self._recommended(node)
            return InterruptReport(instance_id=instance_id, node=node.name, action=action)
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _TAKEN:
            return InterruptReport(instance_id=instance_id, node=node.name, action="ignored")
        if action := self._announced(notice, node):
            return InterruptReport(instance_id=instance_id, node=node.name, action=action)
        if notice.kind.is_warning:
            self._remember(node, Fact.INTERRUPTED)
        going = node.deletion_at is not None
        taken = not going or notice.kind.is_warning
        if taken:
            if not going:
                why = notice.change.text if notice.change is not None else ""
                tell_interrupted(self._ports, node, notice.kind, why)
            self._remove(node, notice.kind)
            # Its pods get new nodes now, before they are evicted.
            self._index.look(self._ports)
        self._free(node, notice)
        return InterruptReport(
            instance_id=instance_id,
            node=node.name,
            action="draining" if going else "drained",
            interrupted=taken,
        )

    def _free(self, node: Node, notice: Notice) -> None:
        """Delete the pods of a machine that is off, before the next step of its drain does.

        A notice that a machine was stopped may be late: it is believed if EC2 still says so.
        """
        if notice.kind != NoticeKind.STATE_CHANGE or notice.state not in _OFF:
            return
        if notice.state == "stopped":
            shown = self._ports.cloud.instances([node.instance_id])
            if not any(instance.state in _OFF for instance in shown):
                return
        try:
            free_node(self._ports, node)
        except (ConflictError, NotFoundError):
            # Gone already, or others write to it all the time: the next step of the drain does it.
            return

    def _remove(self, node: Node, kind: NoticeKind) -> None:
        """Remove a node, or let its drain know by when it must be over."""
        deadline = None
        if kind.is_warning:
            deadline = self._ports.clock.now() + ASKED_FOR
        for _ in range(_ATTEMPTS):
            if remove(self._ports, node, kind.value, deadline):
                return
            try:
                node = read_again(self._ports, node)
            except NotFoundError:
                return
        raise ConflictError(f"node {node.name} changes too fast: the notice comes again")

    def _recommended(self, node: Node) -> str:
        """Mark a node that EC2 expects to interrupt: provision replaces it first if that pays."""
        if node.deletion_at is not None or keys.REBALANCE_RECOMMENDED in node.annotations:
            return "recorded"
        now = self._ports.clock.now()
        stamp = {keys.REBALANCE_RECOMMENDED: now.isoformat(timespec="seconds")}
        with contextlib.suppress(NotFoundError):
            change_node(self._ports, node, NodeChange(set_annotations=stamp))
        self._remember(node, Fact.ABOUT_TO_BE_INTERRUPTED)
        owner = self._owner(node)
        if owner is not None and not owner.acts_on(Trigger.REBALANCE):
            text = f"EC2 expects to interrupt it: {_only_recorded(owner, Trigger.REBALANCE)}"
        else:
            text = "EC2 expects to interrupt it: replaced first if it pays"
            self._ports.outbox.look(self._ports.cluster.name)
        self._say(node, "RebalanceRecommended", text)
        return "recorded"

    def _announced(self, notice: Notice, node: Node) -> str:
        """Mark a node that has time until what AWS has scheduled: provision replaces it first.

        Returns:
            What was done, empty where the node must be drained now.
        """
        change = notice.change
        if change is None or node.deletion_at is not None:
            return ""
        if node.instance_id in notice.over:
            self._mark(node, None)
            return "ignored"
        owner = self._owner(node)
        if owner is not None and not owner.acts_on(Trigger.SCHEDULED_CHANGE):
            text = f"{change.text}: {_only_recorded(owner, Trigger.SCHEDULED_CHANGE)}"
        elif change.starts_at is None or change.drains_by(self._ports.clock.now()):
            return ""
        else:
            text = (
                f"{change.text}: replaced before, and drained at "
                f"{change.starts_at - DRAINED_AHEAD:%H:%M} UTC at the latest"
            )
            self._ports.outbox.look(self._ports.cluster.name)
        if self._mark(node, change.mark):
            self._say(node, "ScheduledChange", text)
        return "recorded"

    def _mark(self, node: Node, mark: str | None) -> bool:
        """Write on a node what is scheduled; return whether that was not there already."""
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

    def _without_node(self, notice: Notice, instance_id: str) -> str | None:
        """A machine that ends before it is a node: its pods are planned again.

        Returns:
            None when its Node was made meanwhile, or may have been.
        """
        if notice.kind != NoticeKind.STATE_CHANGE and not notice.kind.is_warning:
            return "ignored"
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _TAKEN:
            return "ignored"
        slot = self._ports.ledger.slot_with(self._ports.cluster.name, instance_id)
        if notice.state == "terminated" and slot is None:
            # One with a slot is dropped with it: by its row the slot is found.
            self._ports.ledger.drop_instance(instance_id)
        if notice.state in _STOPPED:
            # It will never join, and its disks are paid for.
            self._ports.cloud.terminate([instance_id])
        if slot is None:
            return "ignored"
        if slot.node_name:
            made = self._index.find(self._ports, instance_id, slot.node_name)
            return "ignored" if made is None or not made.is_ours else None
        if notice.kind.is_warning and slot.interrupted_at is None:
            if notice.kind == NoticeKind.SPOT_INTERRUPTION:
                note(self._ports, Fact.INTERRUPTED, [slot.offering])
            if not mark_interrupted(self._ports, slot):
                return None
        # Of one that died provision reads why, and frees its pods.
        self._ports.outbox.wake(self._ports.cluster.name, timedelta(0))
        return "planned again"

    def _remember(self, node: Node, fact: Fact) -> None:
        """Leave the offering of a node's machine out, as EC2 shows it."""
        offering = self._index.offering(self._ports, node.instance_id)
        if offering is not None and offering.capacity_type == CapacityType.SPOT:
            note(self._ports, fact, [offering])

    def _say(self, node: Node, reason: str, text: str) -> None:
        self._ports.cluster.record_events([event_on(node, reason, text)])


def _only_recorded(owner: Provisioner, trigger: Trigger) -> str:
    said = "off" if trigger in owner.triggers else "not on"
    return f"only recorded, as {trigger.annotation} of {owner.kind.lower()} {owner.name} is {said}"

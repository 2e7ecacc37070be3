"""Interruption: AWS takes a machine; its node is drained and replaced at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.messages.notices import Notice, NoticeKind
from shared.model import labels as keys
from shared.model.errors import ConflictError, RetryableError
from shared.model.instance_types import CapacityType, OfferingKey
from shared.model.nodes import Node
from shared.ports import ClusterPorts, NodeChange
from shared.services.node_events import node_event
from shared.services.removing import remove

# Provision is not called again within this.
_SETTLED: Final = timedelta(seconds=2)
# A spot machine ends two minutes after its warning: from then pods are no longer asked, so that
# they can still end in order.
_ASKED_FOR: Final = timedelta(seconds=90)
_TAKEN: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptReport:
    """What came of one notice about one instance."""

    instance_id: str
    node: str
    action: str


class NodeIndex:
    """Which node an instance is, for one cluster; kept while a process lives.

    A burst of notices comes when a pool is taken: the nodes are listed once for many of them.
    """

    def __init__(self) -> None:
        """Prepare; nothing is known yet."""
        self._names: dict[str, str] = {}
        self._looked_at: datetime | None = None

    def find(self, ports: ClusterPorts, instance_id: str) -> Node | None:
        """Return the node of an instance as it is now, None when there is none."""
        if instance_id not in self._names:
            listed = ports.cluster.nodes()
            self._names = {one.instance_id: one.name for one in listed if one.instance_id}
        name = self._names.get(instance_id)
        node = ports.cluster.node(name) if name is not None else None
        if node is None or node.instance_id != instance_id:
            self._names.pop(instance_id, None)
            return None
        return node

    def look(self, ports: ClusterPorts) -> None:
        """Let provision look over the nodes: by the queue, and at once when not just asked."""
        now = ports.clock.now()
        ports.outbox.look(ports.cluster.name)
        if self._looked_at is None or now - self._looked_at >= _SETTLED:
            self._looked_at = now
            try:
                ports.outbox.look_at_once(ports.cluster.name)
            except RetryableError:
                # The queue has the same message.
                return


class Interrupting:
    """Acts on notices about machines of one cluster."""

    def __init__(self, ports: ClusterPorts, index: NodeIndex | None = None) -> None:
        """Prepare for one cluster.

        Args:
            index: What this process knows of its nodes.
        """
        self._ports = ports
        self._index = index or NodeIndex()

    def run(self, notice: Notice, instance_id: str) -> InterruptReport:
        """Act on a notice about one of the cluster's instances."""
        node = self._index.find(self._ports, instance_id)
        if node is None or not node.is_ours:
            action = self._without_node(notice, instance_id)
            return InterruptReport(instance_id=instance_id, node="", action=action)
        if notice.kind == NoticeKind.REBALANCE_RECOMMENDATION:
            action = self._recommended(node)
            return InterruptReport(instance_id=instance_id, node=node.name, action=action)
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _TAKEN:
            return InterruptReport(instance_id=instance_id, node=node.name, action="ignored")
        if notice.kind == NoticeKind.SPOT_INTERRUPTION:
            self._remember(node)
        going = node.deletion_at is not None
        if going and notice.kind != NoticeKind.SPOT_INTERRUPTION:
            return InterruptReport(instance_id=instance_id, node=node.name, action="draining")
        if not going:
            self._say(node, "Interrupted", f"{notice.kind.value}: drained and replaced")
        self._remove(node, notice.kind)
        # Its pods get new nodes now, before they are evicted.
        self._index.look(self._ports)
        action = "draining" if going else "drained"
        return InterruptReport(instance_id=instance_id, node=node.name, action=action)

    def _remove(self, node: Node, kind: NoticeKind) -> None:
        """Remove a node, or let its drain know by when it must be over."""
        deadline = None
        if kind == NoticeKind.SPOT_INTERRUPTION:
            deadline = self._ports.clock.now() + _ASKED_FOR
        if remove(self._ports, node, kind.value, deadline):
            return
        fresh = self._ports.cluster.node(node.name)
        if fresh is None or fresh.uid != node.uid:
            return
        if not remove(self._ports, fresh, kind.value, deadline):
            raise ConflictError(f"node {node.name} changes too fast: the notice comes again")

    def _recommended(self, node: Node) -> str:
        """Mark a node that EC2 expects to interrupt: provision replaces it first if that pays."""
        if node.deletion_at is not None or keys.REBALANCE_RECOMMENDED in node.annotations:
            return "recorded"
        now = self._ports.clock.now()
        stamp = {keys.REBALANCE_RECOMMENDED: now.isoformat(timespec="seconds")}
        change = NodeChange(set_annotations=stamp)
        try:
            self._ports.cluster.change_node(node, change)
        except ConflictError:
            fresh = self._ports.cluster.node(node.name)
            if fresh is not None and fresh.uid == node.uid:
                self._ports.cluster.change_node(fresh, change)
        self._remember(node, certain=False)
        self._say(
            node, "RebalanceRecommended", "EC2 expects to interrupt it: replaced first if it pays"
        )
        self._ports.outbox.look(self._ports.cluster.name)
        return "recorded"

    def _without_node(self, notice: Notice, instance_id: str) -> str:
        """A machine that ends before it is a node: its pods are planned again."""
        if notice.kind not in (NoticeKind.STATE_CHANGE, NoticeKind.SPOT_INTERRUPTION):
            return "ignored"
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _TAKEN:
            return "ignored"
        if notice.state == "terminated":
            self._ports.ledger.drop_instance(instance_id)
        for slot in self._ports.ledger.slots(self._ports.cluster.name):
            if slot.instance_id == instance_id and not slot.node_name:
                if notice.kind == NoticeKind.SPOT_INTERRUPTION:
                    # It still runs: nobody may buy another in its place before it ends.
                    self._ports.cloud.terminate([instance_id])
                self._ports.ledger.mark_unavailable([slot.offering], self._ports.clock.now())
                self._ports.ledger.drop_slot(slot)
                self._ports.outbox.wake(self._ports.cluster.name, timedelta(0))
                return "planned again"
        return "ignored"

    def _remember(self, node: Node, *, certain: bool = True) -> None:
        instance_type, zone = node.labels.get(keys.INSTANCE_TYPE), node.labels.get(keys.ZONE)
        if instance_type and zone:
            offering = OfferingKey(
                instance_type=instance_type, zone=zone, capacity_type=CapacityType.SPOT
            )
            self._ports.ledger.mark_unavailable(
                [offering], self._ports.clock.now(), certain=certain
            )

    def _say(self, node: Node, reason: str, text: str) -> None:
        self._ports.cluster.happened([node_event(node, reason, text)])

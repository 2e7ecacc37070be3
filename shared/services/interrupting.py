"""Interruption: AWS takes a machine; its node is drained and replaced at once."""

from dataclasses import dataclass
from datetime import timedelta

from shared.messages.notices import Notice, NoticeKind
from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.model.instance_types import CapacityType, OfferingKey
from shared.model.nodes import Node
from shared.ports import ClusterPorts, Happening, Severity
from shared.services.removing import remove

_TAKEN = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptReport:
    """What came of one notice about one instance."""

    instance_id: str
    node: str
    action: str


class Interrupting:
    """Acts on notices about machines of one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
        self._ports = ports

    def run(self, notice: Notice, instance_id: str) -> InterruptReport:
        """Act on a notice about one of the cluster's instances."""
        nodes = self._ports.cluster.nodes()
        node = next((one for one in nodes if one.instance_id == instance_id), None)
        if node is None or not node.is_ours:
            action = self._without_node(notice, instance_id)
            return InterruptReport(instance_id=instance_id, node="", action=action)
        if notice.kind == NoticeKind.REBALANCE_RECOMMENDATION:
            self._say(node, "RebalanceRecommended", "EC2 expects to interrupt it; nothing done")
            return InterruptReport(instance_id=instance_id, node=node.name, action="recorded")
        if notice.kind == NoticeKind.STATE_CHANGE and notice.state not in _TAKEN:
            return InterruptReport(instance_id=instance_id, node=node.name, action="ignored")
        if notice.kind == NoticeKind.SPOT_INTERRUPTION:
            self._remember(node)
        if node.deletion_at is not None:
            return InterruptReport(instance_id=instance_id, node=node.name, action="draining")
        self._say(node, "Interrupted", f"{notice.kind.value}: drained and replaced")
        if not remove(self._ports, node, notice.kind.value):
            fresh = self._ports.cluster.node(node.name)
            if (
                fresh is not None
                and fresh.uid == node.uid
                and not (remove(self._ports, fresh, notice.kind.value))
            ):
                raise ConflictError(f"node {node.name} changes too fast: the notice comes again")
        # Its pods become pending as they are evicted: look again soon, without being asked.
        self._ports.outbox.wake(self._ports.cluster.name, timedelta(seconds=2))
        return InterruptReport(instance_id=instance_id, node=node.name, action="drained")

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

    def _remember(self, node: Node) -> None:
        instance_type, zone = node.labels.get(keys.INSTANCE_TYPE), node.labels.get(keys.ZONE)
        if instance_type and zone:
            offering = OfferingKey(
                instance_type=instance_type, zone=zone, capacity_type=CapacityType.SPOT
            )
            self._ports.ledger.mark_unavailable([offering], self._ports.clock.now())

    def _say(self, node: Node, reason: str, message: str) -> None:
        self._ports.cluster.happened(
            [
                Happening(
                    kind="Node",
                    namespace="",
                    name=node.name,
                    uid=node.uid,
                    severity=Severity.WARNING,
                    reason=reason,
                    message=message,
                )
            ]
        )

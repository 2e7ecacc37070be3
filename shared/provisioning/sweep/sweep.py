"""Sweep: the check each minute for what messages missed. It wakes the functions that act."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import asdict

from shared.disruption.evaluation_due import needs_evaluation
from shared.model import labels as keys
from shared.model.ec2.launches import Instance, LaunchIntent, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.messages.notices import NoticeKind
from shared.model.note import Note
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner, owner_among
from shared.model.scheduled_changes import scheduled_change
from shared.nodes.brakes.hold import Hold, held_back, hold_of, rivals_of
from shared.nodes.brakes.removals import save_rivals
from shared.nodes.events.provisioner_conditions import (
    SHOWN_NOTE,
    shown_ceilings,
    shown_hold,
    shown_outdated,
    shown_unusable,
)
from shared.nodes.leave.interrupted_slots import record_interruption
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.leave.replacement import REPLACED
from shared.nodes.leave.stale_marks import remove_stale_marks
from shared.nodes.timers.heartbeats import drop_heartbeat, last_heartbeats
from shared.nodes.timers.timers import terminate_orphan
from shared.planning.rules.existing_nodes import nominated
from shared.ports import ClusterPorts
from shared.provisioning.shadow_purchases import has_purchases
from shared.provisioning.sweep.node_by_node import NodeByNode
from shared.provisioning.sweep.node_repair import repair_nodes
from shared.provisioning.sweep.pool_status import write_pool_statuses
from shared.provisioning.sweep.timer_recovery import start_missing_timers
from shared.provisioning.sweep.unhealthy_nodes import record_unhealthy
from shared.snapshot.node_facts import cluster_instances, node_facts


class SweepPolicy(Struct, frozen=True, kw_only=True):
    """How old things may be before sweep counts them as missed.

    Attributes:
        pending_grace: A pod that has waited for less is being planned for.
        orphan_grace: An instance younger than this may still get its Node.
        registration: How long an instance may take to join.
        template_age: Launch templates older than this are deleted.
        timer_age: Heartbeats of timers that are older than this, and whose node is gone, are
            removed.
        window: The time for which a replaced node counts in consolidation's budget.
        drift: Whether drifted nodes are replaced for Provisioners that do not specify it.
    """

    pending_grace: timedelta = timedelta(seconds=60)
    orphan_grace: timedelta = timedelta(seconds=90)
    registration: timedelta = timedelta(minutes=5)
    template_age: timedelta = timedelta(hours=1)
    timer_age: timedelta = timedelta(minutes=5)
    window: timedelta = timedelta(minutes=10)
    drift: bool = False


class SweepReport(Struct, frozen=True, kw_only=True):
    """Findings by category, for logs and metrics.

    Attributes:
        contradicted_nodes: Nodes that contradict EC2 about their instance, or falsely claim to be
            Dovetail's.
        refused_nodes: Nodes for which work was refused.
        held_back: 1 if a brake or another autoscaler forbids acting on the findings.
        pods_waiting: Pods that nothing is planned for yet; an observation, not a finding.
        longest_wait_seconds: The longest wait among these pods; an observation, too.
    """

    overdue_pods: int = 0
    contradicted_nodes: int = 0
    unfinished_launches: int = 0
    orphaned_instances: int = 0
    nodes_without_instance: int = 0
    missing_timers: int = 0
    unbound_nodes: int = 0
    unused_templates: int = 0
    stale_timers: int = 0
    refused_nodes: int = 0
    held_back: int = 0
    pods_waiting: int = 0
    longest_wait_seconds: int = 0

    @property
    def findings(self) -> Mapping[str, int]:
        """The number of problems found, by category."""
        seen = ("pods_waiting", "longest_wait_seconds")
        return {name: n for name, n in asdict(self).items() if name not in seen}


class Sweep:
    """Checks one cluster."""

    def __init__(self, ports: ClusterPorts, policy: SweepPolicy) -> None:
        self._ports = ports
        self._policy = policy

    def run(self) -> SweepReport:
        """Check everything once and wake the functions that must act.

        Raises:
            RetryableError: If the cluster or AWS cannot be read now: the next run tries again.
        """
        ports, now = self._ports, self._ports.clock.now()
        # Intents and slots first: if a launch ends while the rest is read, its intent still
        # accounts for its instances; instances of a launch that begins are young.
        intents = ports.ledger.open_intents(ports.cluster.name)
        slots = ports.ledger.slots(ports.cluster.name)
        nodes = ports.cluster.nodes()
        instances = cluster_instances(ports)
        facts = node_facts(ports, nodes, instances, slots, intents)
        nodes = facts.nodes
        provisioners, unusable = ports.cluster.provisioners()
        owners = {provisioner.name: provisioner for provisioner in provisioners}
        bound = ports.cluster.bound_pods()
        rivals = rivals_of(ports)
        save_rivals(ports, rivals)
        why_held = held_back(ports, rivals)
        held = bool(why_held)
        waits = self._waits(slots, now)
        overdue = sum(1 for wait in waits if wait > self._policy.pending_grace)
        unfinished = self._unfinished(slots, intents, now)
        shown = ports.ledger.note(self._name, SHOWN_NOTE)
        if overdue or unfinished or rivals or _is_outdated(shown, hold_of(ports, rivals), now):
            ports.outbox.wake(ports.cluster.name, timedelta(0))
        compares = ports.brakes.shadow and has_purchases(ports, nodes, bound, now)
        # Nearly full ceilings and outdated nodes are evaluated each minute until they are gone.
        evaluates = needs_evaluation(nodes, owners, now, drift=self._policy.drift)
        node_by_node = NodeByNode()
        drains = self._drain_scheduled(nodes, owners, node_by_node, now)
        if compares or evaluates or drains or shown_ceilings(shown) or shown_outdated(shown):
            ports.outbox.evaluate(ports.cluster.name)
        report = SweepReport(
            contradicted_nodes=0 if held else repair_nodes(ports, facts, node_by_node),
            overdue_pods=overdue,
            unfinished_launches=unfinished,
            orphaned_instances=0 if held else self._orphans(nodes, slots, instances, intents, now),
            nodes_without_instance=0 if held else self._lost(nodes, instances, node_by_node, now),
            missing_timers=start_missing_timers(
                ports,
                nodes,
                slots,
                owners,
                bound,
                node_by_node=node_by_node,
                registration=self._policy.registration,
                held=held,
            ),
            unbound_nodes=self._unbound(nodes, slots),
            unused_templates=0 if held else self._templates(now),
            stale_timers=self._stale_timers(nodes, instances, node_by_node, now),
            refused_nodes=len(node_by_node.refused),
            held_back=int(held),
            pods_waiting=len(waits),
            longest_wait_seconds=int(max(waits, default=timedelta(0)).total_seconds()),
        )
        record_unhealthy(ports, nodes, bound, owners, held_back=why_held, now=now)
        if not rivals and not ports.brakes.shadow:
            write_pool_statuses(ports, nodes, provisioners, unusable)
        ports.cluster.leave_copies()
        return report

    def _stale_timers(
        self,
        nodes: tuple[Node, ...],
        instances: tuple[Instance, ...],
        node_by_node: NodeByNode,
        now: datetime,
    ) -> int:
        """Remove heartbeats of timers whose node or instance is gone, and stale marks on nodes."""
        known = {node.uid for node in nodes} | {instance.instance_id for instance in instances}
        heartbeats, found = last_heartbeats(self._ports.ledger, self._name), 0
        for (uid, kind), last in sorted(heartbeats.items()):
            age = self._policy.window if kind == REPLACED else self._policy.timer_age
            if uid not in known and now - last > age:
                found += 1
                drop_heartbeat(self._ports.ledger, self._name, uid, kind)
        uids = {node.name: node.uid for node in nodes}
        return found + node_by_node.each(
            lambda node: remove_stale_marks(self._ports, node, uids, heartbeats, now), nodes
        )

    def _waits(self, slots: tuple[Slot, ...], now: datetime) -> tuple[timedelta, ...]:
        """Return the waiting time of each pod that nothing is planned for."""
        placed = nominated(slots)
        return tuple(
            now - pod.created_at
            for pod in self._ports.cluster.pending_pods()
            if pod.is_provisionable and pod.uid not in placed and pod.created_at is not None
        )

    def _unfinished(
        self, slots: tuple[Slot, ...], intents: tuple[LaunchIntent, ...], now: datetime
    ) -> int:
        due = sum(1 for intent in intents if intent.not_before is None or intent.not_before <= now)
        waiting = sum(1 for slot in slots if not slot.node_name)
        return due + waiting + (1 if self._ports.ledger.abandoned(self._name, now) else 0)

    def _orphans(
        self,
        nodes: tuple[Node, ...],
        slots: tuple[Slot, ...],
        instances: tuple[Instance, ...],
        intents: tuple[LaunchIntent, ...],
        now: datetime,
    ) -> int:
        """Terminate instances with Dovetail's tags that have neither a Node nor a slot.

        Stopped instances, too: they never join again, and their volumes cost money.

        A slot does not protect its instance once its Node was created and is gone: the invocation
        that removed the finalizer ended before it updated the ledger.
        """
        alive = {instance.instance_id for instance in instances if instance.is_alive}
        # `_lost` removes the Node of a stopped instance if it is Dovetail's. A Node that the
        # kubelet created and that was never adopted does not protect its instance.
        standing = {node.instance_id for node in nodes if node.is_ours or node.instance_id in alive}
        left = {slot.instance_id: slot for slot in slots if slot.node_name}
        known = standing | {slot.instance_id for slot in slots if not slot.node_name}
        launching = {intent.plan_id for intent in intents}
        found = 0
        for instance in instances:
            young = (
                instance.launched_at is None
                or now - instance.launched_at < self._policy.orphan_grace
            )
            if instance.instance_id in known or young or instance.is_terminating:
                continue
            if instance.tags.get(keys.TAG_PLAN) in launching:
                continue
            if self._has_node(instance.private_dns_name, instance.instance_id, alive):
                continue
            found += 1
            terminate_orphan(self._ports, instance.instance_id)
        kept = {instance.instance_id for instance in instances if not instance.is_terminating}
        for instance_id, slot in left.items():
            young = now - slot.launched_at < self._policy.orphan_grace
            if not young and instance_id not in standing | kept:
                if self._has_node(slot.node_name, instance_id, alive):
                    continue
                found += 1
                terminate_orphan(self._ports, instance_id)
        return found

    def _has_node(self, name: str, instance_id: str, alive: set[str]) -> bool:
        """Read a single Node: the list of all Nodes may be an outdated copy that lacks it."""
        node = self._ports.cluster.node(name) if name else None
        if node is None or node.instance_id != instance_id:
            return False
        return node.is_ours or instance_id in alive

    def _lost(
        self,
        nodes: tuple[Node, ...],
        instances: tuple[Instance, ...],
        node_by_node: NodeByNode,
        now: datetime,
    ) -> int:
        """Remove Dovetail's Nodes whose instance is gone or no longer runs."""
        alive = {instance.instance_id for instance in instances if instance.is_alive}
        missing = [
            node
            for node in nodes
            if node.is_ours
            and node.deletion_at is None
            and node.instance_id
            and node.instance_id not in alive
            and node.created_at is not None
            and now - node.created_at > self._policy.orphan_grace
        ]
        if not missing:
            return 0
        # Described again by ID: lists may lag behind.
        shown = self._ports.cloud.instances([node.instance_id for node in missing])
        alive = {instance.instance_id for instance in shown if instance.is_alive}
        lost = [node for node in missing if node.instance_id not in alive]
        # A Node that was written to since it was read is checked again in a minute.
        node_by_node.each(
            lambda node: remove_node(self._ports, node, NoticeKind.STATE_CHANGE.value), lost
        )
        if lost:
            self._ports.outbox.evaluate(self._name)
        return len(lost)

    def _drain_scheduled(
        self,
        nodes: tuple[Node, ...],
        owners: Mapping[str, Provisioner],
        node_by_node: NodeByNode,
        now: datetime,
    ) -> int:
        """Drain the nodes that were not replaced in time before a scheduled change of AWS."""

        def drain(node: Node) -> int:
            change, owner = scheduled_change(node), owner_among(node, owners)
            left = owner is not None and not owner.acts_on(Trigger.SCHEDULED_CHANGE)
            if change is None or left or not change.is_drain_due(now):
                return 0
            # A Node that was written to since it was read is checked again in a minute.
            if remove_node(self._ports, node, NoticeKind.SCHEDULED_CHANGE.value):
                record_interruption(self._ports, node, NoticeKind.SCHEDULED_CHANGE, change.text)
            return 1

        ours = [node for node in nodes if node.is_ours and node.deletion_at is None]
        return node_by_node.each(drain, ours)

    def _unbound(self, nodes: tuple[Node, ...], slots: tuple[Slot, ...]) -> int:
        """Wake bind for nodes that are Ready and not initialized, or that still have a slot."""
        promised = {slot.instance_id for slot in slots}
        found = [
            node.name
            for node in nodes
            if node.is_ours
            and node.deletion_at is None
            and node.ready is True
            and not (node.is_initialized and node.instance_id not in promised)
        ]
        if found:
            self._ports.outbox.invoke_bind(self._name, found)
        return len(found)

    def _templates(self, now: datetime) -> int:
        """Delete old launch templates; one that is still needed is created again."""
        found = 0
        for name, made in self._ports.cloud.launch_templates():
            if now - made > self._policy.template_age:
                found += 1
                self._ports.cloud.delete_launch_template(name)
        return found

    @property
    def _name(self) -> str:
        return self._ports.cluster.name


def _is_outdated(shown: Note, hold: Hold | None, now: datetime) -> bool:
    """Return whether conditions of Provisioners are outdated."""
    over = any(end <= now for end in shown_unusable(shown).values())
    return over or shown_hold(shown) != (hold.reason if hold is not None else "")

"""Binding: binds nominated pods and opens nodes for kube-scheduler once they are Ready."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from shared.model import labels as keys
from shared.model.ec2.launches import PodRef, Slot
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.resources import Resources, format_amount
from shared.model.values import replace
from shared.nodes.brakes.runaway import save_launched_for
from shared.nodes.events.node_events import (
    event_on,
    initialized,
    not_initialized,
    overdue,
    registered,
    registered_without_taint,
)
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.launch.ami_canary import ImageCanary
from shared.nodes.launch.refusals.registration_health import save_registration
from shared.nodes.leave.interrupted_slots import drain_interrupted
from shared.nodes.node_editor import change_node
from shared.nodes.node_waits import (
    StartupTaints,
    closed_by,
    lacks,
    node_waits_for,
    startup_taints_of,
)
from shared.nodes.timers.heartbeats import last_heartbeat
from shared.nodes.timers.timers import start_expiration
from shared.planning.rules.binding import binds_early, needs_scheduler
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.snapshot.observed_allocatable import save_observed_allocatable

_BUSY = "a quiet moment"


class BindReport(Struct, frozen=True, kw_only=True):
    """The result for one node: what it still waits for, or how many pods were bound to it.

    Attributes:
        pods_refused: Pods that the API server did not bind: they are bound elsewhere or deleted.
    """

    node: str
    initialized: bool = False
    waiting_for: str = ""
    pods_bound: int = 0
    pods_left_to_scheduler: int = 0
    pods_refused: int = 0


class Binding:
    """Completes nodes of one cluster once their kubelet is Ready."""

    def __init__(self, ports: NodePorts, policy: LaunchPolicy) -> None:
        self._ports = ports
        self._policy = policy

    def run(self, node_name: str) -> BindReport:
        """Open one node and complete it, as far as it is ready; return what it waits for otherwise.

        A node is opened, so that kube-scheduler may use it, once its kubelet is Ready and the cloud
        controller has initialized it: device plugins and agents that remove startup taints are
        DaemonSets that do not tolerate the not-ready taint. Pods are bound before that taint is
        removed, because until then kube-scheduler cannot use their capacity for others. Pods that
        need something that the node lacks stay nominated to it, and kube-scheduler binds them once
        the node has it. Then the node is initialized and its slot is dropped.
        """
        report = self._run(node_name)
        if report is None:
            report = self._run(node_name)
        # Provision and kubelets write often: a later wake message does the rest.
        return report or BindReport(node=node_name, waiting_for=_BUSY)

    def _run(self, node_name: str) -> BindReport | None:
        """Return the report, None if the nominations were made or changed meanwhile."""
        slot, node = self._read(node_name)
        if node is None or not node.is_ours or node.deletion_at is not None:
            return BindReport(
                node=node_name, waiting_for="not a node of Dovetail, or being deleted"
            )
        if slot is None and not node.is_initialized and self._slot_with(node.instance_id):
            # The slot was written and the Node became Dovetail's between the two reads.
            return None
        if node.is_initialized:
            if slot is not None:
                # An earlier call labeled the node and could not complete it.
                self._complete(node, slot)
            return BindReport(node=node_name, initialized=True)
        if slot is not None and slot.interrupted_at is not None:
            return self._drain(node, slot.interrupted_at)
        closed = closed_by(node)
        if closed:
            return self._waits(node, BindReport(node=node_name, waiting_for=closed))
        promised = self._promised(slot)
        startup_taints = self._startup_taints(node)
        missing = node_waits_for(node, startup_taints, promised)
        report = self._bind(node, slot, promised, startup_taints, missing)
        if report is None:
            return None
        opened = self._open(node, slot, initialized=not missing)
        if opened is None:
            return replace(report, waiting_for=_BUSY)
        if missing:
            return self._waits(opened, replace(report, waiting_for=missing))
        self._complete(opened, slot)
        EventRecorder(self._ports).record_each(registered(opened), initialized(opened))
        return replace(report, initialized=True)

    def _drain(self, node: Node, interrupted_at: datetime) -> BindReport | None:
        """Drain a node whose instance EC2 interrupts; return None if it changed meanwhile."""
        if not drain_interrupted(self._ports, node, interrupted_at):
            return None
        return BindReport(
            node=node.name, waiting_for="the end of its instance, which EC2 interrupts"
        )

    def _read(self, node_name: str) -> tuple[Slot | None, Node | None]:
        """Return slot and Node; the Node is read twice, because it tells which slot to read.

        The slot is read before the Node is read for the second time. So the Node is at least as new
        as the one that another bind read before it wrote the slot, and all pods that the other bind
        binds are bound here, too, before the Node is opened.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return None, None
        slot, fresh = self._slot_with(node.instance_id), self._ports.cluster.node(node_name)
        same = fresh is not None and fresh.instance_id == node.instance_id
        return (slot if same else None), fresh

    def _slot_with(self, instance_id: str) -> Slot | None:
        return self._ports.ledger.slot_with(self._ports.cluster.name, instance_id)

    def _open(self, node: Node, slot: Slot | None, *, initialized: bool) -> Node | None:
        """Open the node for kube-scheduler and label it as registered or initialized.

        Returns:
            None if it is closed again or gone, or if others write to it all the time.
        """
        labels = {keys.REGISTERED: "true"}
        if node.labels.get(keys.REGISTERED) != "true":
            self._save_observations(node, slot)
            if not node.is_closed:
                EventRecorder(self._ports).record([registered_without_taint(node)])
        if initialized:
            labels[keys.INITIALIZED] = "true"
        if node.is_open and all(node.labels.get(k) == v for k, v in labels.items()):
            return node
        change = NodeChange(remove_taint_keys=keys.CLOSING_TAINTS, set_labels=labels)

        def unless_closed(fresh: Node) -> NodeChange:
            closed = closed_by(fresh)
            if closed or not fresh.is_ours:
                raise ConflictError(f"node {fresh.name} waits for {closed or 'its marks'}")
            return change

        try:
            return change_node(self._ports, node, unless_closed)
        except (ConflictError, NotFoundError):
            return None

    def _waits(self, node: Node, report: BindReport) -> BindReport:
        """Return the report; record what the Node waits for in Events if its kubelet is Ready."""
        if node.ready is True:
            allowed, missing = self._policy.initialization_timeout, report.waiting_for
            kube_events = [registered(node), not_initialized(node, missing)]
            if node.is_overdue(allowed, self._ports.clock.now()):
                kube_events.append(overdue(node, missing, allowed))
            EventRecorder(self._ports).record(kube_events)
        return report

    def _save_observations(self, node: Node, slot: Slot | None) -> None:
        """Save what the node shows: that its image works, and which resources it has less of."""
        ImageCanary(self._ports).save_success(node)
        save_registration(self._ports, node, joined=True)
        missing = save_observed_allocatable(self._ports, node, slot) if slot is not None else {}
        if missing:
            named = ", ".join(
                f"{name} {format_amount(name, amount)}" for name, amount in sorted(missing.items())
            )
            text = (
                f"has less allocatable than planned: {named}; "
                f"{node.provisioner} plans its type with that now"
            )
            event = event_on(node, "LessThanPlanned", text)
            EventRecorder(self._ports).record([event])

    def _complete(self, node: Node, slot: Slot | None) -> None:
        """Drop the slot and ensure the expiration timer; the registration timer ends by itself."""
        if slot is not None:
            self._ports.ledger.drop_slot(slot)
        self._expire(node)

    def _startup_taints(self, node: Node) -> StartupTaints:
        provisioners, _ = self._ports.cluster.provisioners()
        owner = next((found for found in provisioners if found.owns(node)), None)
        return startup_taints_of(owner)

    def _promised(self, slot: Slot | None) -> tuple[Pod, ...]:
        """Return the pods nominated to a slot that still wait for a node."""
        found = []
        for ref in slot.pods if slot is not None else ():
            pod = self._ports.cluster.pod(ref.namespace, ref.name)
            if pod is not None and pod.uid == ref.uid and not (pod.node_name or pod.is_terminating):
                found.append(pod)
        return tuple(found)

    def _bind(
        self,
        node: Node,
        slot: Slot | None,
        promised: Sequence[Pod],
        startup_taints: StartupTaints,
        missing: str,
    ) -> BindReport | None:
        """Bind the pods that may be bound; keep the others nominated while something is missing.

        On an open node only kube-scheduler binds: it may have used the capacity for other pods. So
        the slot is written before pods are bound, and again with `opened` before the node is
        opened. Each write fails if another bind wrote in between. So no bind opens the node while
        another binds pods that it does not know of, and no bind that read the node closed binds
        later.

        Returns:
            None if the nominations changed meanwhile, or provision may still be binding.
        """
        if slot is None:
            return BindReport(node=node.name)
        closed = not (node.is_open or slot.opened)
        binds = self._policy.binding_policy != BindingPolicy.SCHEDULER and closed
        bindable = self._fitting(
            node,
            [
                pod
                for pod in promised
                if binds and not needs_scheduler(pod) and not lacks(node, pod, startup_taints)
            ],
        )
        if closed and not slot.node_name and self._may_arrive(promised, bindable):
            return None
        if bindable:
            if not self._ports.ledger.change_slot(slot):
                return None
            slot = replace(slot, version=slot.version + 1)
        bound = len(self._ports.cluster.bind_all([(pod, node.name) for pod in bindable]))
        unbound = tuple(
            PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
            for pod in promised
            if pod not in bindable
        )
        if unbound and not missing:
            save_launched_for(self._ports, node.instance_id, unbound)
        # An invocation of provision that read the slot before this can nominate no more pods to it.
        kept = replace(slot, pods=unbound, bound=not missing, opened=True)
        if (not missing or kept != slot) and not self._ports.ledger.change_slot(kept):
            return None
        return BindReport(
            node=node.name,
            pods_bound=bound,
            pods_left_to_scheduler=0 if missing else len(unbound),
            pods_refused=len(bindable) - bound,
        )

    def _may_arrive(self, promised: Sequence[Pod], bindable: Sequence[Pod]) -> bool:
        """Return whether provision, which is still creating the Node, may be binding other pods.

        Such a call, if it is slow, would reach a node that kube-scheduler has filled by then.
        """
        early = self._policy.binding_policy == BindingPolicy.EARLY
        return early and any(not binds_early(pod) for pod in promised if pod not in bindable)

    def _fitting(self, node: Node, pods: Sequence[Pod]) -> list[Pod]:
        """Return the pods that fit on the node beside the pods that are on it now.

        A plan is made from a snapshot, which may lack a pod, and for an instance that may turn out
        smaller. A kubelet permanently rejects a pod that does not fit; kube-scheduler finds another
        node for it.
        """
        if not pods:
            return []
        there = [pod for pod in self._ports.cluster.pods_on(node.name) if not pod.is_terminal]
        available = node.allocatable - Resources.total(pod.scheduling.requests for pod in there)
        fitting = []
        for pod in pods:
            if pod.scheduling.requests.fits(available):
                fitting.append(pod)
                available -= pod.scheduling.requests
        return fitting

    def _expire(self, node: Node) -> None:
        """Start the expiration timer of a node if it was not started when the Node was created."""
        if last_heartbeat(
            self._ports.ledger, self._ports.cluster.name, node.uid, TimerKind.EXPIRATION
        ):
            return
        provisioners, _ = self._ports.cluster.provisioners()
        for provisioner in provisioners:
            if provisioner.owns(node):
                start_expiration(self._ports, node, provisioner, self._ports.clock.now())

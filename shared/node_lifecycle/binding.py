"""Binding: nodes are opened for kube-scheduler once they are ready, their nominated pods bound."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.brakes.trials import save_launched_for
from shared.events.node_events import event_on, initialized, overdue, registered, unmarked, waits
from shared.events.recorder import EventRecorder
from shared.launching.ami_canary import ImageRollout
from shared.launching.registration_health import note_registration
from shared.model import labels as keys
from shared.model.ec2.launches import PodRef, Slot
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.resources import Resources, format_amount
from shared.node_lifecycle.interrupted_slots import drain_interrupted
from shared.node_lifecycle.node_editor import change_node
from shared.node_lifecycle.node_waits import (
    StartupTaints,
    closed_by,
    lacks,
    missing_for,
    starting_taints,
)
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.scheduling.binding import binds_early, needs_scheduler
from shared.snapshot.observed_allocatable import learn
from shared.timers.heartbeats import timer_seen
from shared.timers.timers import start_expiration

_BUSY = "a quiet moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindReport:
    """What came of one node: why it is not ready yet, or how many pods were bound to it.

    Attributes:
        pods_refused: Pods that the API server did not bind: bound elsewhere, or deleted.
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
        """Open one node and complete it, as far as it is ready; else say what it waits for.

        A node is opened, so that kube-scheduler may use it, once its kubelet is Ready and the
        cloud controller has initialized it: device plugins and agents that remove startup taints
        are DaemonSets that do not tolerate the not-ready taint. Pods are bound before that taint
        goes, since until then kube-scheduler cannot give their place away. Pods that need what
        the node does not have yet stay promised to it, and kube-scheduler binds them once it has.
        Then the node is initialized and its slot is dropped.
        """
        report = self._run(node_name)
        if report is None:
            report = self._run(node_name)
        # Planners and kubelets write often: a later wake does the rest.
        return report or BindReport(node=node_name, waiting_for=_BUSY)

    def _run(self, node_name: str) -> BindReport | None:
        """Return what came of it, None when the promise was made or changed meanwhile."""
        slot, node = self._read(node_name)
        if node is None or not node.is_ours or node.deletion_at is not None:
            return BindReport(
                node=node_name, waiting_for="not a node of Dovetail, or being deleted"
            )
        if slot is None and not node.is_initialized and self._slot_with(node.instance_id):
            # The slot was written and the Node became ours between the two reads.
            return None
        if node.is_initialized:
            if slot is not None:
                # It could not be completed after it was labelled.
                self._complete(node, slot)
            return BindReport(node=node_name, initialized=True)
        if slot is not None and slot.interrupted_at is not None:
            return self._drain(node, slot.interrupted_at)
        closed = closed_by(node)
        if closed:
            return self._waits(node, BindReport(node=node_name, waiting_for=closed))
        promised = self._promised(slot)
        starting = self._startup_taints(node)
        missing = missing_for(node, starting, promised)
        report = self._bind(node, slot, promised, starting, missing)
        if report is None:
            return None
        opened = self._open(node, slot, initialized=not missing)
        if opened is None:
            return dataclasses.replace(report, waiting_for=_BUSY)
        if missing:
            return self._waits(opened, dataclasses.replace(report, waiting_for=missing))
        self._complete(opened, slot)
        EventRecorder(self._ports).record_each(registered(opened), initialized(opened))
        return dataclasses.replace(report, initialized=True)

    def _drain(self, node: Node, interrupted_at: datetime) -> BindReport | None:
        """Drain a node whose machine EC2 takes; None when it changed meanwhile."""
        if not drain_interrupted(self._ports, node, interrupted_at):
            return None
        return BindReport(node=node.name, waiting_for="the end of its machine, which EC2 takes")

    def _read(self, node_name: str) -> tuple[Slot | None, Node | None]:
        """Return slot and Node; the Node is read once more, for it says whose slot to read.

        The slot is read before the Node: then the Node is as another bind that wrote the slot
        read it, or newer, and whatever that one binds is bound here, too, before the Node opens.
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
        """Let kube-scheduler use the node and label how far it is.

        Returns:
            None when it is closed again or gone, or when others write to it all the time.
        """
        labels = {keys.REGISTERED: "true"}
        if node.labels.get(keys.REGISTERED) != "true":
            self._remember(node, slot)
            if not node.is_closed:
                EventRecorder(self._ports).record([unmarked(node)])
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
        """Return the report, and say on the Node what it waits for once its kubelet is Ready."""
        if node.ready is True:
            limit, missing = self._policy.initialization, report.waiting_for
            told = [registered(node), waits(node, missing)]
            if node.is_overdue(limit, self._ports.clock.now()):
                told.append(overdue(node, missing, limit))
            EventRecorder(self._ports).record(told)
        return report

    def _remember(self, node: Node, slot: Slot | None) -> None:
        """Keep what the node has shown: that its image works, and what it has less than thought."""
        ImageRollout(self._ports).registered(node)
        note_registration(self._ports, node, joined=True)
        missing = learn(self._ports, node, slot) if slot is not None else {}
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
        """Keep the promise of the slot, and see to the expiration; the registration timer ends."""
        if slot is not None:
            self._ports.ledger.drop_slot(slot)
        self._expire(node)

    def _startup_taints(self, node: Node) -> StartupTaints:
        provisioners, _ = self._ports.cluster.provisioners()
        owner = next((found for found in provisioners if found.owns(node)), None)
        return starting_taints(owner)

    def _promised(self, slot: Slot | None) -> tuple[Pod, ...]:
        """Return the pods promised to a slot that still wait for a node."""
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
        starting: StartupTaints,
        missing: str,
    ) -> BindReport | None:
        """Bind what may be bound, and keep the promise to the rest while something is missing.

        On an open node kube-scheduler binds: it may have given the room away since. So the slot
        is written before pods are bound, and again with `opened` before the node is opened. Each
        write fails if another bind wrote in between: no bind opens the node while another one
        binds pods that it does not know of, and no bind that read the node closed binds later.

        Returns:
            None when the nominations changed meanwhile, or provision may still be binding.
        """
        if slot is None:
            return BindReport(node=node.name)
        closed = not (node.is_open or slot.opened)
        binds = self._policy.binding != BindingPolicy.SCHEDULER and closed
        mine = self._with_room(
            node,
            [
                pod
                for pod in promised
                if binds and not needs_scheduler(pod) and not lacks(node, pod, starting)
            ],
        )
        if closed and not slot.node_name and self._may_arrive(promised, mine):
            return None
        if mine:
            if not self._ports.ledger.change_slot(slot):
                return None
            slot = dataclasses.replace(slot, version=slot.version + 1)
        bound = len(self._ports.cluster.bind_all([(pod, node.name) for pod in mine]))
        left = tuple(
            PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
            for pod in promised
            if pod not in mine
        )
        if left and not missing:
            now = self._ports.clock.now()
            name, ledger = self._ports.cluster.name, self._ports.ledger
            save_launched_for(ledger, name, node.instance_id, left, now)
        # A planner that read the slot before this can promise nothing more of a closed one.
        kept = dataclasses.replace(slot, pods=left, bound=not missing, opened=True)
        if (not missing or kept != slot) and not self._ports.ledger.change_slot(kept):
            return None
        return BindReport(
            node=node.name,
            pods_bound=bound,
            pods_left_to_scheduler=0 if missing else len(left),
            pods_refused=len(mine) - bound,
        )

    def _may_arrive(self, promised: Sequence[Pod], mine: Sequence[Pod]) -> bool:
        """Return whether provision, which is still making the Node, may be binding other pods.

        Such a call, when it is slow, would reach a node that kube-scheduler has filled by then.
        """
        early = self._policy.binding == BindingPolicy.EARLY
        return early and any(not binds_early(pod) for pod in promised if pod not in mine)

    def _with_room(self, node: Node, pods: Sequence[Pod]) -> list[Pod]:
        """Return those for which the node has room beside the pods that are on it now.

        A plan promises room of a copy of the cluster, which may lack a pod, on a machine that may
        turn out smaller. A kubelet refuses for good what does not fit; kube-scheduler finds it
        another place.
        """
        if not pods:
            return []
        there = [pod for pod in self._ports.cluster.pods_on(node.name) if not pod.is_terminal]
        room = node.allocatable - Resources.total(pod.scheduling.requests for pod in there)
        fitting = []
        for pod in pods:
            if pod.scheduling.requests.fits(room):
                fitting.append(pod)
                room -= pod.scheduling.requests
        return fitting

    def _expire(self, node: Node) -> None:
        """Start the expiration timer of a node whose maker could not."""
        if timer_seen(self._ports.ledger, self._ports.cluster.name, node.uid, TimerKind.EXPIRATION):
            return
        provisioners, _ = self._ports.cluster.provisioners()
        for provisioner in provisioners:
            if provisioner.owns(node):
                start_expiration(self._ports, node, provisioner, self._ports.clock.now())

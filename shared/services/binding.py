"""Binding: when a node is ready, its nominated pods are bound, then its taint goes."""

import dataclasses
from dataclasses import dataclass

from shared.model import labels as keys
from shared.model.errors import ConflictError
from shared.model.launch import PodRef, Slot, slot_of
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.policy import BindingPolicy, LaunchPolicy
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, format_amount
from shared.model.taints import Effect
from shared.ports import ClusterPorts, NodeChange, TimerKind
from shared.scheduling.binding import needs_scheduler
from shared.services.announcing import Announcer
from shared.services.image_rollout import ImageRollout
from shared.services.learning import learn
from shared.services.node_events import initialized, node_event, registered, waits
from shared.services.timers import start_expiration

_CLOUD_TAINTS = frozenset({keys.CLOUD_UNINITIALIZED_TAINT, keys.NODE_NOT_READY_TAINT})
_BUSY = "a quiet moment"
_PLAIN = frozenset({CPU, MEMORY, PODS, EPHEMERAL_STORAGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class BindReport:
    """What came of one node: why it is not ready yet, or how many pods were bound to it.

    Attributes:
        pods_refused: That the API server did not bind: somebody else did, or they are gone.
    """

    node: str
    initialized: bool = False
    waiting_for: str = ""
    pods_bound: int = 0
    pods_left_to_scheduler: int = 0
    pods_refused: int = 0


class Binding:
    """Completes nodes of one cluster once their kubelet has spoken."""

    def __init__(self, ports: ClusterPorts, policy: LaunchPolicy) -> None:
        """Prepare for one cluster."""
        self._ports = ports
        self._policy = policy

    def run(self, node_name: str) -> BindReport:
        """Bind and untaint one node if it is ready; else say what it waits for.

        Pods are bound first: while the taint stands kube-scheduler keeps away, so that nobody
        takes their place. Then the promise is closed, so that nobody is added to it any more; if
        somebody just was, all is read once more.
        """
        report = self._run(node_name)
        if report is None:
            report = self._run(node_name)
        # Planners and kubelets write often: a later wake does the rest.
        return report or BindReport(node=node_name, waiting_for=_BUSY)

    def _run(self, node_name: str) -> BindReport | None:
        """Return what came of it, None when the promise was changed meanwhile."""
        node = self._ports.cluster.node(node_name)
        if node is None or not node.is_ours or node.deletion_at is not None:
            return BindReport(node=node_name, waiting_for="no node of ours that stays")
        slot = self._slot_of(node)
        waiting_for = self._not_ready(node, slot)
        if node.is_initialized and (node.has_joined or waiting_for):
            if slot is not None:
                # Whoever took the taint away could not finish, or it never had one.
                self._complete(node, slot)
            return BindReport(node=node_name, initialized=True)
        if waiting_for:
            if node.ready is True:
                Announcer(self._ports).tell([registered(node), waits(node, waiting_for)])
            return BindReport(node=node_name, waiting_for=waiting_for)
        report = self._bind(node, slot)
        if report is None:
            return None
        self._remember(node, slot)
        change = NodeChange(
            remove_taint_keys=frozenset({keys.NOT_READY_TAINT}),
            set_labels={keys.REGISTERED: "true", keys.INITIALIZED: "true"},
        )
        try:
            node = self._ports.cluster.change_node(node, change)
        except ConflictError:
            # Read again, once.
            fresh = self._ports.cluster.node(node_name)
            if fresh is None or fresh.uid != node.uid or self._not_ready(fresh, slot):
                return dataclasses.replace(report, waiting_for=_BUSY)
            node = self._ports.cluster.change_node(fresh, change)
        self._complete(node, slot)
        Announcer(self._ports).say(registered(node), initialized(node))
        return dataclasses.replace(report, initialized=True)

    def _remember(self, node: Node, slot: Slot | None) -> None:
        """Keep what the node has shown: that its image works, and what it has less than thought."""
        ImageRollout(self._ports).registered(node)
        missing = learn(self._ports, node, slot) if slot is not None else {}
        if missing:
            named = ", ".join(
                f"{name} {format_amount(name, amount)}" for name, amount in sorted(missing.items())
            )
            text = f"has less allocatable than planned: {named}; its type is planned with that now"
            event = node_event(node, "LessThanPlanned", text)
            Announcer(self._ports).tell([event])

    def _complete(self, node: Node, slot: Slot | None) -> None:
        """Keep the promise of the slot, and pass from registration to expiration."""
        if slot is not None:
            self._ports.ledger.drop_slot(slot)
        name = self._ports.cluster.name
        self._ports.ledger.drop_timer(name, node.uid, TimerKind.REGISTRATION)
        self._expire(node)

    def _slot_of(self, node: Node) -> Slot | None:
        slots = self._ports.ledger.slots(self._ports.cluster.name)
        return slot_of(slots, node.instance_id)

    def _not_ready(self, node: Node, slot: Slot | None) -> str:
        if node.ready is not True:
            return "the kubelet to be Ready"
        starting = self._startup_taints(node)
        for taint in node.taints:
            if taint.key in _CLOUD_TAINTS or (taint.key, taint.effect) in starting:
                return f"startup taint {taint.key} to go"
        expected = slot.capacity if slot is not None else ()
        for name in expected:
            if name not in _PLAIN and not node.allocatable[name]:
                return f"resource {name} to be shown"
        return ""

    def _startup_taints(self, node: Node) -> frozenset[tuple[str, Effect]]:
        provisioners, _ = self._ports.cluster.provisioners()
        return frozenset(
            (taint.key, taint.effect)
            for one in provisioners
            if one.name == node.provisioner
            for taint in one.startup_taints
        )

    def _bind(self, node: Node, slot: Slot | None) -> BindReport | None:
        """Bind the nominated pods and close the promise; say how many, and how many are left.

        Returns:
            None when somebody changed the promise meanwhile.
        """
        if slot is None or self._policy.binding == BindingPolicy.SCHEDULER:
            promised = len(slot.pods) if slot is not None else 0
            return BindReport(node=node.name, pods_left_to_scheduler=promised)
        bindings: list[tuple[Pod, str]] = []
        left: list[PodRef] = []
        for ref in slot.pods:
            pod = self._ports.cluster.pod(ref.namespace, ref.name)
            if pod is None or pod.uid != ref.uid or pod.node_name or pod.is_terminating:
                continue
            if needs_scheduler(pod):
                left.append(ref)
            else:
                bindings.append((pod, node.name))
        bound = len(self._ports.cluster.bind_all(bindings))
        # A planner that read the slot before this can promise nothing more of it.
        kept = dataclasses.replace(slot, pods=tuple(left), bound=True)
        if not self._ports.ledger.change_slot(kept):
            return None
        return BindReport(
            node=node.name,
            pods_bound=bound,
            pods_left_to_scheduler=len(left),
            pods_refused=len(bindings) - bound,
        )

    def _expire(self, node: Node) -> None:
        """Start the expiration timer of a node whose maker could not; its name is taken once."""
        provisioners, _ = self._ports.cluster.provisioners()
        for one in provisioners:
            if one.name == node.provisioner and one.ttl_until_expired is not None:
                now = self._ports.clock.now()
                start_expiration(self._ports, node, one.ttl_until_expired, now)

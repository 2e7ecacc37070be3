"""Termination: cordon, drain, release volumes, end the machine, let the Node go."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.disruption.drain import DrainStep, drain_step
from shared.model import labels as keys
from shared.model.errors import (
    EvictionRefusedError,
    InvalidMessageError,
    NotFoundError,
    ThrottledError,
)
from shared.model.launch import Instance
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.ports import ClusterPorts, Happening, NodeChange, Severity, TimerKind
from shared.services.removing import is_voluntary
from shared.services.timers import (
    again,
    done,
    payload,
    start_termination,
    text_of,
    timer_name,
)

# In a timer's state: how many pods held the drain back at its last step; absent for none.
BLOCKED: Final = "blocked"
_POLL: Final = timedelta(seconds=2)
_ENDING: Final = "ending"
_BLOCKED_POLL: Final = timedelta(seconds=10)
_ENDED: Final = frozenset({"shutting-down", "terminated"})
# An execution may have 25,000 events and a step makes about ten: go on in a new one before.
_MAX_STEPS: Final = 1500
# EC2 may not yet show a machine that is younger than this.
_SHOWN_AFTER: Final = timedelta(minutes=5)


class Terminating:
    """Takes nodes of one cluster down, step by step; every step reads the world anew."""

    def __init__(self, ports: ClusterPorts, drain_deadline: timedelta | None) -> None:
        """Prepare for one cluster.

        Args:
            drain_deadline: After this long pods are no longer asked; None for never.
        """
        self._ports = ports
        self._drain_deadline = drain_deadline

    def begin(self, node_name: str) -> str:
        """Start the termination of a node that is being deleted; return what was done."""
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        if not node.is_ours or node.deletion_at is None:
            return "not ours or not being deleted"
        start_termination(self._ports, node, self._ports.clock.now())
        return "timer started"

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Take the next step of a termination.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the world could not be read or changed now.
        """
        state = {**state, "steps": int(state.get("steps", 0)) + 1}
        uid = text_of(state, "uid")
        self._ports.ledger.note_timer(
            self._ports.cluster.name, uid, TimerKind.TERMINATION, self._ports.clock.now()
        )
        name = text_of(state, "node")
        node = self._ports.cluster.node(name) if name else None
        if node is None or node.uid != uid:
            return self._without_node(state)
        if not node.is_ours:
            return self._end(state, "not ours")
        if node.deletion_at is None:
            return self._end(state, "not being deleted")
        if state["steps"] >= _MAX_STEPS:
            return self._continue(node, state)
        try:
            return self._with_node(node, state)
        except NotFoundError:
            # It went away between two calls: the next look says so.
            return again(state, _POLL)

    def _with_node(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        if state.get(_ENDING):
            return self._terminate(node.instance_id, state)
        now = self._ports.clock.now()
        instances = self._ports.cloud.instances([node.instance_id]) if node.instance_id else ()
        if _is_gone(node, instances, now):
            # Nothing on it can be drained any more.
            return self._let_go(node, state)
        node = self._cordon(node)
        pods = self._ports.cluster.pods_on(node.name)
        step = drain_step(pods, now, voluntary=is_voluntary(node), deadline=self._deadline(state))
        if not step.drained:
            refused = self._ask_to_leave(step)
            blocked = (*step.blocked_by, *refused)
            self._say_blocked(node, blocked, now)
            state = {**state, BLOCKED: len(blocked)} if blocked else _unblocked(state)
            return again(state, _BLOCKED_POLL if blocked and not step.waiting else _POLL)
        state = _unblocked(state)
        # Only a kubelet that lives can unmount; otherwise ending the machine releases them.
        if node.ready is True and self._ports.cluster.volume_attachments(node.name):
            return again(state, _POLL)
        if not self._are_ours(instances):
            self._say(node, "NotOurMachine", f"{node.instance_id} has not our tags: it is left")
            return self._let_go(node, state)
        return self._terminate(node.instance_id, state)

    def _terminate(self, instance_id: str, state: Mapping[str, Any]) -> dict[str, Any]:
        """End a machine of ours; without a lease, for ending it twice is harmless."""
        state = {key: value for key, value in state.items() if key != _ENDING}
        try:
            self._ports.cloud.terminate([instance_id])
        except ThrottledError as error:
            # The next step goes on right here, without asking for all the rest again.
            return again({**state, _ENDING: True}, error.delay or _POLL)
        return again(state, _POLL)

    def _are_ours(self, instances: Sequence[Instance]) -> bool:
        """Return whether the tags prove that the machines were bought for this cluster."""
        name = self._ports.cluster.name
        return all(one.tags.get(keys.TAG_CLUSTER) == name for one in instances)

    def _without_node(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The Node is gone: make sure that its machine is, too."""
        instance_id = text_of(state, "instance_id")
        if state.get(_ENDING):
            return self._terminate(instance_id, state)
        shown = self._ports.cloud.instances([instance_id]) if instance_id else ()
        if all(one.state in _ENDED for one in shown):
            return self._end(state, "gone")
        if not self._are_ours(shown):
            return self._end(state, "not ours")
        return self._terminate(instance_id, state)

    def _let_go(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        finalizers = tuple(one for one in node.finalizers if one != keys.TERMINATION_FINALIZER)
        self._ports.cluster.change_node(node, NodeChange(finalizers=finalizers))
        return self._end(state, "terminated")

    def _cordon(self, node: Node) -> Node:
        if node.unschedulable and keys.EXCLUDE_FROM_LOAD_BALANCERS in node.labels:
            return node
        return self._ports.cluster.change_node(
            node,
            NodeChange(
                unschedulable=True, set_labels={keys.EXCLUDE_FROM_LOAD_BALANCERS: "dovetail"}
            ),
        )

    def _ask_to_leave(self, step: DrainStep) -> tuple[Pod, ...]:
        """Evict, or delete past the deadline; return the pods a budget holds back."""
        refused = []
        for pod in step.evict:
            try:
                self._ports.cluster.evict(pod)
            except EvictionRefusedError:
                refused.append(pod)
        for pod in step.delete:
            self._ports.cluster.delete_pod(pod)
        return tuple(refused)

    def _say_blocked(self, node: Node, blocked: Sequence[Pod], now: datetime) -> None:
        """Write on the node what holds its drain and since when; take it back when nothing does."""
        written = node.annotations.get(keys.DRAIN_BLOCKED)
        if not blocked:
            if written is not None:
                self._ports.cluster.change_node(
                    node, NodeChange(set_annotations={keys.DRAIN_BLOCKED: None})
                )
            return
        who = ", ".join(pod.key for pod in blocked[:3]) + (" …" if len(blocked) > 3 else "")
        if written is None:
            text = f"since {now.isoformat(timespec='seconds')} by {who}"
            self._ports.cluster.change_node(
                node, NodeChange(set_annotations={keys.DRAIN_BLOCKED: text})
            )
        self._say(
            node,
            "DrainBlocked",
            f"drain waits for {who}: a PodDisruptionBudget or do-not-evict holds",
        )

    def _say(self, node: Node, reason: str, text: str) -> None:
        self._ports.cluster.happened(
            [
                Happening(
                    kind="Node",
                    namespace="",
                    name=node.name,
                    uid=node.uid,
                    severity=Severity.WARNING,
                    reason=reason,
                    message=text,
                )
            ]
        )

    def _deadline(self, state: Mapping[str, Any]) -> datetime | None:
        if self._drain_deadline is None:
            return None
        try:
            since = datetime.fromisoformat(text_of(state, "since"))
        except ValueError as error:
            raise InvalidMessageError(f"since: {state.get('since')!r}: expected a time") from error
        return since + self._drain_deadline

    def _continue(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        now = self._ports.clock.now()
        more = {key: state[key] for key in ("instance_id", "since")}
        self._ports.outbox.start_timer(
            TimerKind.TERMINATION,
            timer_name(self._ports.cluster.name, node.uid, TimerKind.TERMINATION, now),
            payload(self._ports, node.name, node.uid, timedelta(0), **more, steps=0),
        )
        return done(state, "continued in another execution")

    def _end(self, state: Mapping[str, Any], result: str) -> dict[str, Any]:
        instance_id = state.get("instance_id")
        if result in ("terminated", "gone") and isinstance(instance_id, str) and instance_id:
            for slot in self._ports.ledger.slots(self._ports.cluster.name):
                if slot.instance_id == instance_id:
                    self._ports.ledger.drop_slot(slot)
            self._ports.ledger.drop_instance(instance_id)
        self._ports.ledger.drop_timer(
            self._ports.cluster.name, text_of(state, "uid"), TimerKind.TERMINATION
        )
        return done(state, result)


def _unblocked(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != BLOCKED}


def _is_gone(node: Node, instances: Sequence[Instance], now: datetime) -> bool:
    """Return whether a node's machine has ended; one that EC2 does not show may be too young."""
    if instances or not node.instance_id:
        return all(one.state in _ENDED for one in instances)
    return node.created_at is None or now - node.created_at >= _SHOWN_AFTER

"""Registration: an instance that does not join in time is terminated."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import Trial
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.timer_state import TimerState
from shared.model.values import replace
from shared.nodes.brakes.runaway import all_subjects, plan_of
from shared.nodes.events.node_events import CONSOLE, event_on
from shared.nodes.launch.refusals.registration_health import save_never_joined
from shared.nodes.leave.node_deletion import remove_node
from shared.nodes.timers.node_timer import SOON, NodeTimer
from shared.ports import TimerKind

NEVER_JOINED: Final = "never joined"
_CHECK_EVERY = timedelta(seconds=30)
_REASON: Final = "registration"
# The state reason of an instance that a caller terminated, not EC2 itself.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html (2026-11).
_CALLED: Final = "Client.UserInitiatedShutdown"


class Registration(NodeTimer):
    """Terminates instances of one cluster that do not join."""

    kind = TimerKind.REGISTRATION

    def _act_on_deleted(self, node: Node, state: TimerState) -> TimerState:
        removed_here = node.annotations.get(keys.REMOVAL_REASON) == _REASON
        if not removed_here or self._slot_of(node) is None:
            return super()._act_on_deleted(node, state)
        # An earlier step removed the node and failed before the rest was done.
        bound = self._ports.cluster.pods_on(node.name)
        return self._on_never_joined(node, self._trial_of(node, bound), state)

    def _act(self, node: Node, state: TimerState) -> TimerState:
        if not node.is_ours or node.is_open or node.was_initialized:
            # A node that has joined and is not Ready now is not terminated by this timer.
            return self._finish_and_forget(state, "joined")
        if node.ready is True:
            # It has joined and is being completed: bind is invoked once more in case a message was
            # lost.
            self._ports.outbox.invoke_bind(self._ports.cluster.name, [node.name])
            return self._check_again(state, _CHECK_EVERY, "looked for long")
        return self._time_out(node, state)

    def _time_out(self, node: Node, state: TimerState) -> TimerState:
        """Remove the node as it was read; no pod is bound to it from then on."""
        bound = self._ports.cluster.pods_on(node.name)
        if any(pod.phase == "Running" and not pod.is_terminating for pod in bound):
            # A kubelet runs them: it has joined since the node was read. If the kubelet has stopped
            # since, its pods are being deleted and do not end.
            return self._check_again(state, _CHECK_EVERY, "looked for long")
        trial = self._trial_of(node, bound)
        if not remove_node(self._ports, node, _REASON):
            return state.wait_again(SOON)
        return self._on_never_joined(node, trial, state)

    def _on_never_joined(self, node: Node, trial: Trial | None, state: TimerState) -> TimerState:
        """Record that the node did not join; free its nominated pods. Its drain frees the others.

        The slot is dropped last: while it exists, this is not complete.
        """
        if save_never_joined(self._ports, node, _offering_of(node), trial):
            state = replace(state, image_stopped=True)
        text = (
            f"{node.instance_id} did not join the cluster in time and is terminated; look for "
            f"'Unable to register node' in its kubelet's log: {CONSOLE} {node.instance_id}"
        )
        self._ports.cluster.record_events([event_on(node, "NeverJoined", text)])
        slot = self._slot_of(node)
        if slot is not None:
            self._ports.ledger.drop_slot(slot)
        # The pods nominated to it are planned again.
        self._ports.outbox.wake(self._ports.cluster.name, timedelta(0))
        return self._finish_and_forget(state, NEVER_JOINED)

    def _trial_of(self, node: Node, bound: Sequence[Pod]) -> Trial | None:
        """Return what the instance was launched for, None if EC2 has terminated it.

        The drain of a node that an earlier step removed may have terminated the instance by now.
        """
        ports, removed = self._ports, node.deletion_at is not None
        shown = ports.cloud.instances([node.instance_id]) if node.instance_id else ()
        if not any(
            instance.is_alive or (removed and instance.state_reason == _CALLED)
            for instance in shown
        ):
            return None
        slot = self._slot_of(node)
        refs = slot.pods if slot is not None else ()
        promised = [ports.cluster.pod(ref.namespace, ref.name) for ref in refs]
        return Trial(
            plan_id=plan_of(node),
            launched_at=node.created_at or ports.clock.now(),
            subjects=all_subjects(
                pod for pod in (*promised, *bound) if pod is not None and pod.counts_for_emptiness
            ),
            provisioners=frozenset({node.provisioner}),
        )


def _offering_of(node: Node) -> OfferingKey | None:
    instance_type = node.labels.get(keys.INSTANCE_TYPE)
    zone = node.labels.get(keys.ZONE)
    capacity_type = node.labels.get(keys.CAPACITY_TYPE)
    if not instance_type or not zone or capacity_type not in set(CapacityType):
        return None
    return OfferingKey(
        instance_type=instance_type, zone=zone, capacity_type=CapacityType(capacity_type)
    )

"""Registration: a machine that does not join in time is terminated."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared.brakes.runaway import plan_of, subjects_of
from shared.events.node_events import CONSOLE, event_on
from shared.launching.never_joined import note_never_joined
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import Slot, Trial
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.timer_state import TimerState
from shared.node_lifecycle.node_deletion import remove
from shared.node_lifecycle.node_timer import MAX_STEPS, SOON, NodeTimer
from shared.ports import TimerKind

NEVER_JOINED: Final = "never joined"
_LOOK_AGAIN = timedelta(seconds=30)
_REASON: Final = "registration"
# Why an instance ended that a caller terminated, and EC2 did not.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html (2026-11).
_CALLED: Final = "Client.UserInitiatedShutdown"


class Registration(NodeTimer):
    """Terminates machines of one cluster that do not join."""

    kind = TimerKind.REGISTRATION

    def _act_on_deleted(self, node: Node, state: TimerState) -> TimerState:
        removed_here = node.annotations.get(keys.REMOVAL_REASON) == _REASON
        if not removed_here or self._slot_of(node) is None:
            return super()._act_on_deleted(node, state)
        # A step removed the node and failed before it had done the rest.
        bound = self._ports.cluster.pods_on(node.name)
        return self._give_up(node, self._trial_of(node, bound), state)

    def _act(self, node: Node, state: TimerState) -> TimerState:
        if not node.is_ours or node.is_open or node.has_joined:
            # A node that has joined and is not Ready now is not this timer's to terminate.
            return self._finish_and_forget(state, "joined")
        if node.ready is True:
            # Joined, and being completed: the bind function is woken once more to be sure.
            self._ports.outbox.invoke_bind(self._ports.cluster.name, [node.name])
            return self._look_again(node, state)
        return self._time_out(node, state)

    def _look_again(self, node: Node, state: TimerState) -> TimerState:
        steps = (state.steps or 0) + 1
        self._heartbeat(node.uid)
        if steps >= MAX_STEPS:
            # Its row stays: sweep finds it silent and starts another.
            return state.finish("looked for long")
        return replace(state, steps=steps).wait_again(_LOOK_AGAIN)

    def _time_out(self, node: Node, state: TimerState) -> TimerState:
        """Remove the node as it was read; nothing is bound to it from then on."""
        bound = self._ports.cluster.pods_on(node.name)
        if any(pod.phase == "Running" and not pod.is_terminating for pod in bound):
            # A kubelet runs them: it has joined since the node was read. Of one that stopped since,
            # pods leave and none ends.
            return self._look_again(node, state)
        failed = self._trial_of(node, bound)
        if not remove(self._ports, node, _REASON):
            return state.wait_again(SOON)
        return self._give_up(node, failed, state)

    def _give_up(self, node: Node, failed: Trial | None, state: TimerState) -> TimerState:
        """Record what did not join, and free what was promised to it; its drain frees the others.

        The slot is dropped last: while it is there, this is not done.
        """
        if note_never_joined(self._ports, node, _offering_of(node), failed):
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

    def _slot_of(self, node: Node) -> Slot | None:
        return self._ports.ledger.slot_with(self._ports.cluster.name, node.instance_id)

    def _trial_of(self, node: Node, bound: Sequence[Pod]) -> Trial | None:
        """Return what the machine was launched for in vain, None when EC2 has terminated it.

        The drain of a node that an earlier step removed may have terminated it by now.
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
            subjects=frozenset(
                subject
                for pod in (*promised, *bound)
                if pod is not None and pod.counts_for_emptiness
                for subject in subjects_of(pod)
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

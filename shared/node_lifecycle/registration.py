"""Registration: a machine that does not join in time is given up."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from shared.brakes.runaway import note_failure, plan_of, subjects_of
from shared.events.node_events import CONSOLE, event_on
from shared.launching.ami_canary import ImageRollout
from shared.launching.offering_facts import Fact, note
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, OfferingKey
from shared.model.ec2.launches import Trial
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.node_lifecycle.node_deletion import remove, with_reason
from shared.ports import NodePorts, TimerKind
from shared.scheduling.binding import binds_early
from shared.timers.timers import again, ended, text_of

# In the state of a timer: its machine was the trial of a new image.
IMAGE_STOPPED: Final = "image_stopped"
_LOOK_AGAIN = timedelta(seconds=30)
_SOON = timedelta(seconds=1)
_REASON: Final = "registration"


class Registration:
    """Gives up machines of one cluster that never join."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Take the timer's next step, first when the patience is over.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the world could not be read or changed now.
        """
        node = self._ports.cluster.node(text_of(state, "node"))
        if node is None or node.uid != text_of(state, "uid") or node.deletion_at is not None:
            return self._end(state, "gone")
        if not node.is_ours or node.is_open or node.has_joined:
            # One that has joined and is not ready now is not ours to give up.
            return self._end(state, "joined")
        if node.ready is True:
            # Joined, and being completed: the bind function is woken once more to be sure.
            name = self._ports.cluster.name
            self._ports.outbox.invoke_bind(name, [node.name])
            self._ports.ledger.note_timer(
                name, node.uid, TimerKind.REGISTRATION, self._ports.clock.now()
            )
            return again(state, _LOOK_AGAIN)
        return self._give_up(node, state)

    def _give_up(self, node: Node, state: Mapping[str, Any]) -> dict[str, Any]:
        """Free the pods that come back by themselves, remove the node, remember the offering."""
        standing = self._ports.cluster.pods_on(node.name)
        if any(pod.phase == "Running" for pod in standing):
            # Somebody runs them: the kubelet has joined since the node was read.
            return again(state, _LOOK_AGAIN)
        failed = self._trial_of(node, standing)
        try:
            node = with_reason(self._ports, node, _REASON)
        except (ConflictError, NotFoundError):
            return again(state, _SOON)
        # Nobody has written to it since it was read: what follows is said of a machine whose
        # kubelet has not come.
        if failed is not None:
            name, now = self._ports.cluster.name, self._ports.clock.now()
            note_failure(self._ports.ledger, name, failed, self._ports.ledger.trials(name, now))
        if ImageRollout(self._ports).failed(node):
            state = {**state, IMAGE_STOPPED: True}
        self._free(node, standing)
        if not remove(self._ports, node, _REASON):
            return again(state, _SOON)
        offering = _offering_of(node)
        if offering is not None:
            note(self._ports, Fact.NEVER_JOINED, [offering])
        text = (
            f"{node.instance_id} did not join the cluster in time and is terminated; look for "
            f"'Unable to register node' in its kubelet's log: {CONSOLE} {node.instance_id}"
        )
        self._ports.cluster.record_events([event_on(node, "NeverJoined", text)])
        # What was promised to it is free to be planned again.
        self._ports.outbox.wake(self._ports.cluster.name, timedelta(0))
        return self._end(state, "never joined")

    def _free(self, node: Node, standing: Sequence[Pod]) -> None:
        """Let go of the pods on a node and of those promised to it."""
        for pod in standing:
            if pod.counts_for_emptiness and not pod.is_terminating and not binds_early(pod):
                # A kubelet that joins just now may run it: then its budget has a say.
                self._ports.cluster.evict(pod)
        for slot in self._ports.ledger.slots(self._ports.cluster.name):
            if slot.instance_id == node.instance_id:
                self._ports.ledger.drop_slot(slot)

    def _trial_of(self, node: Node, standing: Sequence[Pod]) -> Trial | None:
        """Return for whom the machine was bought in vain, None when EC2 has taken it meanwhile."""
        ports, name = self._ports, self._ports.cluster.name
        shown = ports.cloud.instances([node.instance_id]) if node.instance_id else ()
        if not any(instance.is_alive for instance in shown):
            return None
        promised = [
            ports.cluster.pod(ref.namespace, ref.name)
            for slot in ports.ledger.slots(name)
            if slot.instance_id == node.instance_id
            for ref in slot.pods
        ]
        return Trial(
            plan_id=plan_of(node),
            launched_at=node.created_at or ports.clock.now(),
            subjects=frozenset(
                subject
                for pod in (*promised, *standing)
                if pod is not None and pod.counts_for_emptiness
                for subject in subjects_of(pod)
            ),
            provisioners=frozenset({node.provisioner}),
        )

    def _end(self, state: Mapping[str, Any], result: str) -> dict[str, Any]:
        return ended(self._ports, state, TimerKind.REGISTRATION, result)


def _offering_of(node: Node) -> OfferingKey | None:
    instance_type = node.labels.get(keys.INSTANCE_TYPE)
    zone = node.labels.get(keys.ZONE)
    capacity_type = node.labels.get(keys.CAPACITY_TYPE)
    if not instance_type or not zone or capacity_type not in set(CapacityType):
        return None
    return OfferingKey(
        instance_type=instance_type, zone=zone, capacity_type=CapacityType(capacity_type)
    )

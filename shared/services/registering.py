"""Registration: a machine that does not join in time is given up."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from shared.model import labels as keys
from shared.model.instance_types import CapacityType, OfferingKey
from shared.model.launch import Trial
from shared.model.nodes import Node
from shared.ports import ClusterPorts, TimerKind
from shared.scheduling.binding import binds_early
from shared.services.announcing import node_event
from shared.services.image_rollout import ImageRollout
from shared.services.removing import remove
from shared.services.runaway import note_failure, plan_of, subject_of
from shared.services.timers import again, ended, text_of

# In the state of a timer: its machine was the trial of a new image.
IMAGE_STOPPED: Final = "image_stopped"
_LOOK_AGAIN = timedelta(seconds=30)
_SOON = timedelta(seconds=1)


class Registering:
    """Gives up machines of one cluster that never join."""

    def __init__(self, ports: ClusterPorts) -> None:
        """Prepare for one cluster."""
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
        if not node.is_ours or node.is_initialized or node.has_joined:
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
        self._remember_whom(node)
        if ImageRollout(self._ports).failed(node):
            state = {**state, IMAGE_STOPPED: True}
        standing = self._ports.cluster.pods_on(node.name)
        if any(pod.phase == "Running" for pod in standing):
            # Somebody runs them: the kubelet has joined since the node was read.
            return again(state, _LOOK_AGAIN)
        for pod in standing:
            if pod.counts_for_emptiness and not pod.is_terminating and not binds_early(pod):
                # A kubelet that joins just now may run it: then its budget has a say.
                self._ports.cluster.evict(pod)
        for slot in self._ports.ledger.slots(self._ports.cluster.name):
            if slot.instance_id == node.instance_id:
                self._ports.ledger.drop_slot(slot)
        if not remove(self._ports, node, "registration"):
            return again(state, _SOON)
        offering = _offering_of(node)
        if offering is not None:
            self._ports.ledger.mark_unavailable([offering], self._ports.clock.now())
        text = f"{node.instance_id} did not join the cluster in time: given up"
        self._ports.cluster.happened([node_event(node, "NeverJoined", text)])
        # What was promised to it is free to be planned again.
        self._ports.outbox.wake(self._ports.cluster.name, timedelta(0))
        return self._end(state, "given up")

    def _remember_whom(self, node: Node) -> None:
        """Write down for whom the machine was bought, unless EC2 has taken it meanwhile."""
        ports, name = self._ports, self._ports.cluster.name
        shown = ports.cloud.instances([node.instance_id]) if node.instance_id else ()
        if not any(one.is_alive for one in shown):
            return
        promised = [
            ports.cluster.pod(ref.namespace, ref.name)
            for slot in ports.ledger.slots(name)
            if slot.instance_id == node.instance_id
            for ref in slot.pods
        ]
        pods = [*promised, *ports.cluster.pods_on(node.name)]
        now = ports.clock.now()
        failed = Trial(
            plan_id=plan_of(node),
            launched_at=node.created_at or now,
            subjects=frozenset(
                subject_of(pod) for pod in pods if pod is not None and pod.counts_for_emptiness
            ),
        )
        note_failure(ports.ledger, name, failed, ports.ledger.trials(name, now))

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

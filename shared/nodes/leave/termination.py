"""Termination: cordon, drain, detach volumes, terminate the instance, remove the finalizer."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.drain import drain_step, needs_no_eviction
from shared.disruption.expiration import parse_age
from shared.model import labels as keys
from shared.model.dollars_and_counts import first_names
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    NotFoundError,
    RetryableError,
    ThrottledError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import owner_among
from shared.model.timer_state import TimerState
from shared.model.values import replace
from shared.nodes.events.node_events import (
    cordoned,
    drained,
    event_on,
    price_of,
    terminated,
)
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.leave.instance_terminator import InstanceStatus, InstanceTerminator
from shared.nodes.leave.node_deletion import drain_deadline_of, is_voluntary, termination_time_of
from shared.nodes.leave.pod_eviction import (
    EvictionResults,
    delete_orphaned_pods,
    evict_pods,
    force_delete_pods,
    record_refused_deletions,
)
from shared.nodes.node_editor import change_node, cordon_for_removal
from shared.nodes.timers.heartbeats import last_heartbeat, last_heartbeats
from shared.nodes.timers.node_timer import MAX_STEPS, BaseTimer
from shared.nodes.timers.timers import ensure_termination
from shared.ports import NodeChange, NodePorts, TimerKind

_POLL: Final = timedelta(seconds=2)
# A blocked drain is tried again after 2, 4, 8, then every 10 seconds.
_MOST_TRIED: Final = 3
_LONGEST_POLL: Final = timedelta(seconds=10)
# After how long a wait for volumes to be detached is reported, and when it ends.
# Source: Kubernetes itself detaches by force after 6 minutes (maxWaitForUnmountDuration of the
# attach-detach controller),
# https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-08).
_VOLUMES_REPORTED_AFTER: Final = timedelta(seconds=30)
_VOLUMES_WAIT: Final = timedelta(minutes=6)
# How often the API server is tried while it is unavailable and a deadline has passed.
_UNSEEN_POLL: Final = timedelta(seconds=30)
# After the deadline, how long calls to the API server may fail before the instance is terminated
# anyway: an API server that is updated, or a webhook whose pod moves, answers again within minutes.
_FAILS_FOR: Final = timedelta(minutes=5)
# In how many first steps the node's owner is read, which limits how long the drain may last; an
# owner that cannot be read in these steps counts as gone.
_OWNER_READS: Final = 2
# Before a longer wait, the heartbeat is set to the time of the next step.
_LONG_WAIT: Final = timedelta(seconds=4)
# A binding that began before a starting node was deleted may still arrive: a call takes up to 15 s.
_BINDING_WINDOW: Final = timedelta(seconds=30)
# EC2 may not yet show an instance that is younger than this.
_SHOWN_AFTER: Final = timedelta(minutes=5)


class Termination(BaseTimer):
    """Drains and removes nodes of one cluster; each step reads the cluster and EC2 again.

    Args:
        drain_deadline: Time after which pods are deleted instead of evicted; None for never.
    """

    kind = TimerKind.TERMINATION

    def __init__(self, ports: NodePorts, drain_deadline: timedelta | None) -> None:
        super().__init__(ports)
        self._drain_deadline = drain_deadline
        self._terminator = InstanceTerminator(ports)
        self._recorder = EventRecorder(ports)

    def begin(self, node_name: str) -> str:
        """Start the termination of a node that is being deleted; return what was done.

        A running termination with a recent heartbeat is not started again.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        if not node.is_ours or node.deletion_at is None:
            return "not ours or not being deleted"
        ledger, name, now = self._ports.ledger, self._ports.cluster.name, self._ports.clock.now()
        last = last_heartbeat(ledger, name, node.uid, TimerKind.TERMINATION)
        started = ensure_termination(
            self._ports, node, last, now, running=lambda: last_heartbeats(ledger, name)
        )
        return "timer started" if started else "timer runs"

    def _step(self, state: TimerState) -> TimerState:
        self._heartbeat(state.uid)
        after = self._drain(replace(state, steps=(state.steps or 0) + 1))
        wait = timedelta(seconds=after.wait_seconds)
        if wait > _LONG_WAIT:
            self._heartbeat(state.uid, wait)
        return after

    def _drain(self, state: TimerState) -> TimerState:
        name = state.node
        try:
            node = self._ports.cluster.node(name) if name else None
        except RetryableError as error:
            if not self._is_past_deadline(state):
                raise
            return self._on_unreadable(state, error)
        state = replace(state, unread_since=None)
        if node is None or node.uid != state.uid:
            return self._without_node(state)
        if not node.is_ours:
            return self._end(state, "not ours")
        if node.deletion_at is None:
            return self._end(state, "not being deleted")
        run = state.run or ""
        if node.annotations.get(keys.DRAIN_RUN, run) != run:
            return state.finish("another execution continues")
        if (state.steps or 0) >= MAX_STEPS:
            new = TimerState(
                cluster=state.cluster,
                node=state.node,
                uid=state.uid,
                instance_id=state.text("instance_id"),
                since=state.text("since"),
            )
            return self._continue_as_new(state, new, node)
        try:
            return self._with_node(node, state)
        except (ConflictError, NotFoundError):
            # The node was deleted between two calls, or other controllers write to it.
            return state.wait_again(_POLL)

    def _on_unreadable(self, state: TimerState, error: RetryableError) -> TimerState:
        """Terminate the instance of a node that cannot be read for minutes after its deadline.

        An API server that throttles is available, and knows the pods.
        """
        if isinstance(error, ThrottledError):
            return replace(state, unread_since=None).wait_again(error.delay or _LONGEST_POLL)
        now = self._ports.clock.now()
        since, wait = state.time("unread_since") or now, _UNSEEN_POLL
        if now - since >= _FAILS_FOR:
            _, wait = self._terminator.describe(state.text("instance_id"), terminate=True)
        state = replace(state, unread_since=since.isoformat())
        return state.wait_again(max(wait, _UNSEEN_POLL))

    def _with_node(self, node: Node, state: TimerState) -> TimerState:
        if not node.instance_id:
            return self._remove_finalizer(node, state)
        now, node = self._ports.clock.now(), self._cordoned(node, state)
        pods = self._ports.cluster.pods_on(node.name)
        deadline, ends_at = self._deadline(node), termination_time_of(node)
        step = drain_step(
            pods, now, voluntary=is_voluntary(node), deadline=deadline, ends_at=ends_at
        )
        attached = self._ports.cluster.volume_attachments(node.name) if step.drained else ()
        waits = bool(attached) and self._waits_for_volumes(node, attached, state)
        binding_window = _binding_window(node, now)
        is_over = ends_at is not None and now >= ends_at
        end = is_over or (step.drained and not waits and not binding_window)
        if end and step.drained and not state.drained:
            self._recorder.record_each(drained(node))
            state = replace(state, drained=True)
        status, wait = self._terminator.describe(node.instance_id, terminate=end, node=node)
        if _is_off(node, status, now):
            return self._force_delete(node, status, state)
        if end:
            clean = step.drained and not attached
            return self._end_instance(node, status, state, wait, clean=clean)
        if step.drained and binding_window:
            return _unblocked(state).wait_again(binding_window)
        if step.drained:
            since = state.volumes_since or now.isoformat()
            return replace(_unblocked(state), volumes_since=since).wait_again(_POLL)
        blocked = {
            pod: pod.blocking_annotation_at(now).partition("/")[2] for pod in step.blocked_by
        }
        results = evict_pods(self._ports, step, ends_at, now)
        if deadline is None or now < deadline:
            results.raise_if_all_failed()
        else:
            since = state.undeleted_since or now.isoformat()
            state = replace(state, undeleted_since=since if results.failed else None)
            if not step.waiting and not results.leaving:
                return self._end_by_force(node, results, state)
        blocked |= results.staying
        self._annotate_blocked(node, blocked, now)
        # Pods that were just removed start elsewhere soon, and then the budget allows the next.
        if not blocked or step.waiting or results.leaving:
            return _unblocked(state).wait_again(_POLL)
        tried = state.tried or 0
        wait = min(_POLL * 2**tried, _LONGEST_POLL)
        return replace(state, blocked=len(blocked), tried=min(tried + 1, _MOST_TRIED)).wait_again(
            wait
        )

    def _cordoned(self, node: Node, state: TimerState) -> Node:
        """Cordon the node and return it, with its termination time if its owner limits drains."""
        if cordon_for_removal(node) is not None:
            node = change_node(self._ports, node, cordon_for_removal)
            self._recorder.record_each(cordoned(node))
        return node if termination_time_of(node) is not None else self._with_end(node, state)

    def _with_end(self, node: Node, state: TimerState) -> Node:
        """Return the node with the termination time that its owner sets, or set at its launch."""
        span = parse_age(node.annotations.get(keys.TERMINATION_GRACE_PERIOD, ""))
        begins = (state.steps or 0) <= _OWNER_READS
        if not begins and span is None:
            return node
        try:
            owners, _ = self._ports.cluster.provisioners()
        except AutoscalerError:
            if begins:
                # The drain continues: the next step may learn how long it may last.
                return node
            owners = ()
        owner = owner_among(node, {owner.name: owner for owner in owners})
        span = owner.termination_grace_period if owner is not None else span
        if span is None or node.deletion_at is None:
            return node
        ends_at = (node.deletion_at + span).isoformat(timespec="seconds")
        text = f"ends at {ends_at} at the latest, whatever is on it then"
        self._record_event(node, "TerminationGracePeriodExpiring", text)
        return change_node(
            self._ports, node, NodeChange(set_annotations={keys.TERMINATION_TIMESTAMP: ends_at})
        )

    def _waits_for_volumes(self, node: Node, attached: Sequence[str], state: TimerState) -> bool:
        """Return whether to wait until volumes of drained pods are detached.

        Only a running kubelet can unmount; otherwise terminating the instance detaches them.
        """
        if node.ready is not True:
            return False
        since = state.time("volumes_since")
        waited = self._ports.clock.now() - since if since is not None else timedelta(0)
        if waited > _VOLUMES_REPORTED_AFTER:
            text = f"{first_names(attached)}: still attached to a drained node"
            self._record_event(node, "VolumesAttached", text)
        return waited < _VOLUMES_WAIT

    def _end_instance(
        self,
        node: Node,
        status: InstanceStatus | None,
        state: TimerState,
        wait: timedelta,
        *,
        clean: bool,
    ) -> TimerState:
        """Remove the finalizer once the instance runs no more pods, or is not Dovetail's.

        Args:
            clean: Whether no volume is attached and no pod was left. If no pod was bound since
                either, the Node need not stay until EC2 shows `terminated`.
        """
        if status is not None and status.state and not status.ours:
            self._record_event(
                node, "NotOurInstance", f"{node.instance_id} lacks Dovetail's tags: not terminated"
            )
            return self._remove_finalizer(node, state)
        if status is not None and status.is_terminating and clean and not self._runs_pods(node):
            return self._remove_finalizer(node, state)
        return _unblocked(state).wait_again(wait)

    def _end_by_force(self, node: Node, results: EvictionResults, state: TimerState) -> TimerState:
        """Terminate the instance although the API server does not delete its pods (hard deadline).

        A deletion that failed may succeed soon. Nothing is written until then, because that may
        fail, too.
        """
        since = state.time("undeleted_since")
        if since is not None and self._ports.clock.now() - since < _FAILS_FOR:
            return _unblocked(state).wait_again(_LONGEST_POLL)
        status, wait = self._terminator.describe(node.instance_id, terminate=True, node=node)
        record_refused_deletions(self._ports, node, results.staying)
        return self._end_instance(node, status, state, wait, clean=False)

    def _runs_pods(self, node: Node) -> bool:
        """Return whether pods are on a node now that must be removed before its instance ends.

        The pods are read again: a binding that was under way may have arrived after the drain.
        """
        pods = self._ports.cluster.pods_on(node.name)
        return not all(needs_no_eviction(pod) for pod in pods)

    def _force_delete(
        self, node: Node, status: InstanceStatus | None, state: TimerState
    ) -> TimerState:
        """Delete the pods on a Node whose instance no longer runs, then release the Node.

        A stopped instance is terminated before.
        """
        left = force_delete_pods(self._ports, node)
        stopped = status is not None and status.state == "stopped" and status.ours
        if stopped:
            self._terminator.describe(node.instance_id, terminate=True, node=node)
        now = self._ports.clock.now()
        waited = now - (state.time("freed_since") or now)
        if stopped or (left and waited < _VOLUMES_WAIT):
            since = state.freed_since or now.isoformat()
            return replace(_unblocked(state), freed_since=since).wait_again(_POLL)
        result = self._remove_finalizer(node, state)
        delete_orphaned_pods(self._ports, node.name)
        return result

    def _without_node(self, state: TimerState) -> TimerState:
        """Ensure that the instance of a Node that is gone ends, too."""
        instance_id = state.text("instance_id")
        if not instance_id:
            return self._end(state, "gone")
        status, wait = self._terminator.describe(instance_id, terminate=True)
        if status is None or (status.state and not status.is_terminating and status.ours):
            return state.wait_again(wait)
        name = state.node
        if name and status.ours and self._ports.cluster.pods_on(name):
            if status.state and not status.is_terminated:
                return state.wait_again(wait)
            delete_orphaned_pods(self._ports, name)
        return self._end(state, "gone" if status.ours else "not ours")

    def _remove_finalizer(self, node: Node, state: TimerState) -> TimerState:
        change_node(self._ports, node, _without_finalizer)
        self._recorder.record_each(terminated(node))
        return self._end(replace(state, released_micros_per_hour=price_of(node)), "terminated")

    def _annotate_blocked(self, node: Node, blocked: Mapping[Pod, str], now: datetime) -> None:
        """Annotate the node with what blocks its drain and since when, or remove the annotation."""
        written = node.annotations.get(keys.DRAIN_BLOCKED)
        if not blocked:
            if written is not None:
                change = NodeChange(set_annotations={keys.DRAIN_BLOCKED: None})
                change_node(self._ports, node, change)
            return
        who = first_names(f"{pod.key} ({why})" for pod, why in blocked.items())
        if written is None:
            written = f"since {now.isoformat(timespec='seconds')} by {who}"
            change = NodeChange(set_annotations={keys.DRAIN_BLOCKED: written})
            change_node(self._ports, node, change)
        self._record_event(
            node, "DrainBlocked", f"drain is held by {who}, {written.split(' by ')[0]}"
        )

    def _record_event(self, node: Node, reason: str, text: str) -> None:
        self._recorder.record([event_on(node, reason, text)])

    def _is_past_deadline(self, state: TimerState) -> bool:
        """Return whether the drain has lasted longer than the user's deadline allows."""
        since = state.time("since") if self._drain_deadline is not None else None
        if since is None or self._drain_deadline is None or not state.instance_id:
            return False
        return self._ports.clock.now() >= since + self._drain_deadline

    def _deadline(self, node: Node) -> datetime | None:
        """Return from when pods are deleted: by the user's setting or the instance's own end."""
        ends = [drain_deadline_of(node)]
        if self._drain_deadline is not None and node.deletion_at is not None:
            ends.append(node.deletion_at + self._drain_deadline)
        return min((end for end in ends if end is not None), default=None)

    def _end(self, state: TimerState, result: str) -> TimerState:
        instance_id = state.instance_id
        if instance_id:
            self._terminator.forget(instance_id)
        if result in ("terminated", "gone") and instance_id:
            slot = self._ports.ledger.slot_with(self._ports.cluster.name, instance_id)
            if slot is not None:
                self._ports.ledger.drop_slot(slot)
            self._ports.ledger.drop_instance(instance_id)
        return self._finish_and_forget(state, result)


def _unblocked(state: TimerState) -> TimerState:
    return replace(state, blocked=None, tried=None)


def _without_finalizer(node: Node) -> NodeChange | None:
    if keys.TERMINATION_FINALIZER not in node.finalizers:
        return None
    left = tuple(
        finalizer for finalizer in node.finalizers if finalizer != keys.TERMINATION_FINALIZER
    )
    return NodeChange(finalizers=left)


def _binding_window(node: Node, now: datetime) -> timedelta:
    """Return how long Dovetail may still bind pods to a node that is being deleted."""
    if not node.is_closed or node.deletion_at is None:
        return timedelta(0)
    return max(node.deletion_at + _BINDING_WINDOW - now, timedelta(0))


def _is_off(node: Node, status: InstanceStatus | None, now: datetime) -> bool:
    """Return whether a node's instance no longer runs; if EC2 does not show it, it may be new."""
    if status is None or status.state:
        return status is not None and status.is_off
    return node.created_at is None or now - node.created_at >= _SHOWN_AFTER

"""Termination: cordon, drain, detach volumes, terminate the instance, remove the finalizer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.drain import drain_step, is_left_behind
from shared.disruption.expiration import read_age
from shared.events.node_events import (
    cordoned,
    drained,
    event_on,
    first_names,
    price_of,
    terminated,
)
from shared.events.recorder import EventRecorder
from shared.model import labels as keys
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
from shared.node_lifecycle.force_deletion import (
    Asked,
    ask_to_leave,
    delete_orphaned_pods,
    free_node,
    tell_refused,
)
from shared.node_lifecycle.instance_terminator import Ending, Seen
from shared.node_lifecycle.node_deletion import deadline_of, end_of, is_voluntary
from shared.node_lifecycle.node_editor import change_node, cordon_for_removal
from shared.node_lifecycle.node_timer import CONTINUED, MAX_STEPS, Timer
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.timers.heartbeats import running_timers, timer_seen
from shared.timers.timers import continue_as_new, keep_termination

_POLL: Final = timedelta(seconds=2)
# A refused drain is tried again after 2, 4, 8, then every 10 seconds.
_MOST_TRIED: Final = 3
_LONGEST_POLL: Final = timedelta(seconds=10)
# When waiting for volumes to be detached began, and for how long that is told and gone on with.
# Source: Kubernetes itself detaches by force after 6 minutes (maxWaitForUnmountDuration of the
# attach-detach controller),
# https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/ (2026-08).
_VOLUMES_TOLD: Final = timedelta(seconds=30)
_VOLUMES_WAIT: Final = timedelta(minutes=6)
# While the API server is away and a deadline has passed, its return is looked for this often.
_UNSEEN_POLL: Final = timedelta(seconds=30)
# Past a deadline, for how long calls to the API server may fail before the machine ends all the
# same: an API server that is updated, or a webhook whose pod moves, answers again within minutes.
_FAILS_FOR: Final = timedelta(minutes=5)
# In how many first steps the node's owner is read, for how long the drain may last; one that
# cannot be read in these counts as gone.
_OWNER_READS: Final = 2
# A step that waits longer records beforehand when the next one comes.
_LONG_WAIT: Final = timedelta(seconds=4)
# Pods may be on their way to a node that was still starting when it was deleted: who binds them
# read it before, and a call takes 15 s at most.
_SETTLED_AFTER: Final = timedelta(seconds=30)
# EC2 may not yet show a machine that is younger than this.
_SHOWN_AFTER: Final = timedelta(minutes=5)


class Termination(Timer):
    """Drains and removes nodes of one cluster; each step reads cluster and EC2 again.

    Args:
        drain_deadline: Drains are forced after this long; None for never.
    """

    kind = TimerKind.TERMINATION

    def __init__(self, ports: NodePorts, drain_deadline: timedelta | None) -> None:
        super().__init__(ports)
        self._drain_deadline = drain_deadline
        self._machines = Ending(ports)
        self._recorder = EventRecorder(ports)

    def begin(self, node_name: str) -> str:
        """Start the termination of a node that is being deleted; return what was done.

        One that runs and is heard of is left alone.
        """
        node = self._ports.cluster.node(node_name)
        if node is None:
            return "gone"
        if not node.is_ours or node.deletion_at is None:
            return "not ours or not being deleted"
        ledger, name, now = self._ports.ledger, self._ports.cluster.name, self._ports.clock.now()
        last = timer_seen(ledger, name, node.uid, TimerKind.TERMINATION)
        started = keep_termination(
            self._ports, node, last, now, running=lambda: running_timers(ledger, name)
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
            return self._unread(state, error)
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
            return self._continue_as_new(node, state)
        try:
            return self._with_node(node, state)
        except (ConflictError, NotFoundError):
            # It was deleted between two calls, or other controllers write to it.
            return state.wait_again(_POLL)

    def _unread(self, state: TimerState, error: RetryableError) -> TimerState:
        """End the machine of a node that cannot be read for minutes: its deadline has passed.

        An API server that asks to slow down is there, and so is what it knows of pods.
        """
        if isinstance(error, ThrottledError):
            return replace(state, unread_since=None).wait_again(error.delay or _LONGEST_POLL)
        now = self._ports.clock.now()
        since, wait = state.time("unread_since") or now, _UNSEEN_POLL
        if now - since >= _FAILS_FOR:
            _, wait = self._machines.look(state.text("instance_id"), end=True)
        state = replace(state, unread_since=since.isoformat())
        return state.wait_again(max(wait, _UNSEEN_POLL))

    def _with_node(self, node: Node, state: TimerState) -> TimerState:
        if not node.instance_id:
            return self._remove_finalizer(node, state)
        now, node = self._ports.clock.now(), self._begun(node, state)
        pods = self._ports.cluster.pods_on(node.name)
        deadline, ends_at = self._deadline(node), end_of(node)
        step = drain_step(
            pods, now, voluntary=is_voluntary(node), deadline=deadline, ends_at=ends_at
        )
        attached = self._ports.cluster.volume_attachments(node.name) if step.drained else ()
        waits = bool(attached) and self._waits_for_volumes(node, attached, state)
        settles = _settles_in(node, now)
        is_over = ends_at is not None and now >= ends_at
        end = is_over or (step.drained and not waits and not settles)
        if end and step.drained and not state.drained:
            self._recorder.record_each(drained(node))
            state = replace(state, drained=True)
        seen, wait = self._machines.look(node.instance_id, end=end, node=node)
        if _is_off(node, seen, now):
            return self._free(node, seen, state)
        if end:
            clean = step.drained and not attached
            return self._end_machine(node, seen, state, wait, clean=clean)
        if step.drained and settles:
            return _unblocked(state).wait_again(settles)
        if step.drained:
            since = state.volumes_since or now.isoformat()
            return replace(_unblocked(state), volumes_since=since).wait_again(_POLL)
        held = {pod: pod.hold_at(now).partition("/")[2] for pod in step.blocked_by}
        asked = ask_to_leave(self._ports, step, ends_at, now)
        if deadline is None or now < deadline:
            asked.raise_if_all_failed()
        else:
            since = state.undeleted_since or now.isoformat()
            state = replace(state, undeleted_since=since if asked.failed else None)
            if not step.waiting and not asked.leaving:
                return self._end_by_force(node, asked, state)
        held |= asked.staying
        self._say_blocked(node, held, now)
        # Who left just now comes back elsewhere soon, and the budget allows the next.
        if not held or step.waiting or asked.leaving:
            return _unblocked(state).wait_again(_POLL)
        tried = state.tried or 0
        wait = min(_POLL * 2**tried, _LONGEST_POLL)
        return replace(state, blocked=len(held), tried=min(tried + 1, _MOST_TRIED)).wait_again(wait)

    def _begun(self, node: Node, state: TimerState) -> Node:
        """Return the node cordoned, with the time when it ends if its owner gives drains one."""
        if cordon_for_removal(node) is not None:
            node = change_node(self._ports, node, cordon_for_removal)
            self._recorder.record_each(cordoned(node))
        return node if end_of(node) is not None else self._with_end(node, state)

    def _with_end(self, node: Node, state: TimerState) -> Node:
        """Return the node with the end that its owner gives it, or gave it at its launch."""
        span = read_age(node.annotations.get(keys.TERMINATION_GRACE_PERIOD, ""))
        begins = (state.steps or 0) <= _OWNER_READS
        if not begins and span is None:
            return node
        try:
            owners, _ = self._ports.cluster.provisioners()
        except AutoscalerError:
            if begins:
                # The drain goes on: the next step may know how long it may last.
                return node
            owners = ()
        owner = owner_among(node, {owner.name: owner for owner in owners})
        span = owner.termination_grace_period if owner is not None else span
        if span is None or node.deletion_at is None:
            return node
        ends_at = (node.deletion_at + span).isoformat(timespec="seconds")
        text = f"ends at {ends_at} at the latest, whatever is on it then"
        self._say(node, "TerminationGracePeriodExpiring", text)
        return change_node(
            self._ports, node, NodeChange(set_annotations={keys.TERMINATION_TIMESTAMP: ends_at})
        )

    def _waits_for_volumes(self, node: Node, attached: Sequence[str], state: TimerState) -> bool:
        """Return whether to wait until volumes of drained pods are detached.

        Only a running kubelet can unmount; otherwise terminating the machine detaches them.
        """
        if node.ready is not True:
            return False
        since = state.time("volumes_since")
        waited = self._ports.clock.now() - since if since is not None else timedelta(0)
        if waited > _VOLUMES_TOLD:
            text = f"{first_names(attached)}: still attached to a drained node"
            self._say(node, "VolumesAttached", text)
        return waited < _VOLUMES_WAIT

    def _end_machine(
        self,
        node: Node,
        seen: Seen | None,
        state: TimerState,
        wait: timedelta,
        *,
        clean: bool,
    ) -> TimerState:
        """Remove the finalizer once the machine can do no more harm.

        Args:
            clean: Whether no volume is attached and no pod was left. If none was bound since
                either, the Node need not stay until EC2 says `terminated`.
        """
        if seen is not None and seen.state and not seen.ours:
            self._say(
                node, "NotOurInstance", f"{node.instance_id} lacks Dovetail's tags: not terminated"
            )
            return self._remove_finalizer(node, state)
        if seen is not None and seen.is_ending and clean and not self._runs_pods(node):
            return self._remove_finalizer(node, state)
        return _unblocked(state).wait_again(wait)

    def _end_by_force(self, node: Node, asked: Asked, state: TimerState) -> TimerState:
        """End the machine with pods that the API server does not delete: the deadline is hard.

        A deletion that failed may succeed soon. Nothing is written until then: that may fail, too.
        """
        since = state.time("undeleted_since")
        if since is not None and self._ports.clock.now() - since < _FAILS_FOR:
            return _unblocked(state).wait_again(_LONGEST_POLL)
        seen, wait = self._machines.look(node.instance_id, end=True, node=node)
        tell_refused(self._ports, node, asked.staying)
        return self._end_machine(node, seen, state, wait, clean=False)

    def _runs_pods(self, node: Node) -> bool:
        """Return whether pods are on a node now that do not end with its machine.

        They are read again: a binding that was under way may have arrived after the drain.
        """
        pods = self._ports.cluster.pods_on(node.name)
        return not all(is_left_behind(pod) for pod in pods)

    def _free(self, node: Node, seen: Seen | None, state: TimerState) -> TimerState:
        """Delete what is left on a Node whose machine does not run any more, then the Node.

        A machine that was stopped is terminated before.
        """
        left = free_node(self._ports, node)
        stopped = seen is not None and seen.state == "stopped" and seen.ours
        if stopped:
            self._machines.look(node.instance_id, end=True, node=node)
        now = self._ports.clock.now()
        waited = now - (state.time("freed_since") or now)
        if stopped or (left and waited < _VOLUMES_WAIT):
            since = state.freed_since or now.isoformat()
            return replace(_unblocked(state), freed_since=since).wait_again(_POLL)
        result = self._remove_finalizer(node, state)
        delete_orphaned_pods(self._ports, node.name)
        return result

    def _without_node(self, state: TimerState) -> TimerState:
        """The Node is gone: make sure that its machine is, too."""
        instance_id = state.text("instance_id")
        if not instance_id:
            return self._end(state, "gone")
        seen, wait = self._machines.look(instance_id, end=True)
        if seen is None or (seen.state and not seen.is_ending and seen.ours):
            return state.wait_again(wait)
        name = state.node
        if name and seen.ours and self._ports.cluster.pods_on(name):
            if seen.state and not seen.has_ended:
                return state.wait_again(wait)
            delete_orphaned_pods(self._ports, name)
        return self._end(state, "gone" if seen.ours else "not ours")

    def _remove_finalizer(self, node: Node, state: TimerState) -> TimerState:
        change_node(self._ports, node, _without_finalizer)
        self._recorder.record_each(terminated(node))
        return self._end(replace(state, released_micros_per_hour=price_of(node)), "terminated")

    def _say_blocked(self, node: Node, held: Mapping[Pod, str], now: datetime) -> None:
        """Write on the node what holds its drain and since when; take it back when nothing does."""
        written = node.annotations.get(keys.DRAIN_BLOCKED)
        if not held:
            if written is not None:
                change = NodeChange(set_annotations={keys.DRAIN_BLOCKED: None})
                change_node(self._ports, node, change)
            return
        who = first_names(f"{pod.key} ({why})" for pod, why in held.items())
        if written is None:
            written = f"since {now.isoformat(timespec='seconds')} by {who}"
            change = NodeChange(set_annotations={keys.DRAIN_BLOCKED: written})
            change_node(self._ports, node, change)
        self._say(node, "DrainBlocked", f"drain is held by {who}, {written.split(' by ')[0]}")

    def _say(self, node: Node, reason: str, text: str) -> None:
        self._recorder.record([event_on(node, reason, text)])

    def _is_past_deadline(self, state: TimerState) -> bool:
        """Return whether the deadline that users set has passed for a drain that began then."""
        since = state.time("since") if self._drain_deadline is not None else None
        if since is None or self._drain_deadline is None or not state.instance_id:
            return False
        return self._ports.clock.now() >= since + self._drain_deadline

    def _deadline(self, node: Node) -> datetime | None:
        """Return from when pods are deleted: by the user's setting or the machine's own end."""
        ends = [deadline_of(node)]
        if self._drain_deadline is not None and node.deletion_at is not None:
            ends.append(node.deletion_at + self._drain_deadline)
        return min((end for end in ends if end is not None), default=None)

    def _continue_as_new(self, node: Node, state: TimerState) -> TimerState:
        instance_id, since = state.text("instance_id"), state.text("since")
        if not continue_as_new(self._ports, node, instance_id, since=since):
            return state.wait_again(_POLL)
        return state.finish(CONTINUED)

    def _end(self, state: TimerState, result: str) -> TimerState:
        instance_id = state.instance_id
        if instance_id:
            self._machines.forget(instance_id)
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


def _settles_in(node: Node, now: datetime) -> timedelta:
    """Return how long Dovetail may still bind pods to a node that is being deleted."""
    if not node.is_closed or node.deletion_at is None:
        return timedelta(0)
    return max(node.deletion_at + _SETTLED_AFTER - now, timedelta(0))


def _is_off(node: Node, seen: Seen | None, now: datetime) -> bool:
    """Return whether a node's machine runs no more; one that EC2 does not show may be too young."""
    if seen is None or seen.state:
        return seen is not None and seen.is_off
    return node.created_at is None or now - node.created_at >= _SHOWN_AFTER

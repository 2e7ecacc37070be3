"""Replacement: old nodes are removed once their replacements are ready."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.expiration import ignores_blockers, time_to_expiration
from shared.disruption.simulate import fits_without, with_leaving
from shared.model import labels as keys
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    InvalidMessageError,
    NotFoundError,
    UnavailableError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.policy import LaunchPolicy
from shared.model.provisioner import Provisioner, owner_among
from shared.model.snapshot import ClusterSnapshot
from shared.model.timer_state import TimerState, whole_seconds
from shared.model.values import replace
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.nodes.leave.voluntary_removal import (
    RemovalOutcome,
    cordon_voluntarily,
    record_blockers,
    remove_voluntarily,
    uncordon,
)
from shared.nodes.node_editor import change_node, read_again
from shared.nodes.timers.heartbeats import drop_heartbeat, nodes_being_replaced, save_heartbeat
from shared.nodes.timers.node_timer import MAX_STEPS, BaseTimer
from shared.nodes.timers.timers import start_execution
from shared.packing.problem import PackingSettings
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.snapshot.namespaces import namespaces_for

# Heartbeat kind in the ledger: when a change of the node ended, successful or not.
REPLACED: Final = "replaced"
# The result of a replacement that removed all its nodes.
REPLACED_ALL: Final = "replaced"
_EXPIRATION: Final = "expiration"
_POLL: Final = timedelta(seconds=5)
_DRAIN_POLL: Final = timedelta(seconds=10)
# How long a new node that has joined may take to be initialized.
_INITIALIZATION: Final = LaunchPolicy().initialization_timeout
# A launch that yields no Node within this time has failed.
_LAUNCHED_BY: Final = timedelta(minutes=6)
# The same if nothing is being launched: the launch yielded nothing.
_LAUNCHING: Final = timedelta(minutes=1)
# How long pods may block the old nodes once the new nodes are ready.
_BLOCKED_FOR: Final = timedelta(minutes=12)


def start_replacement(
    ports: NodePorts,
    plan_id: str,
    remove: Sequence[Node],
    new_nodes: int,
    cause: str,
    *,
    registration: timedelta,
) -> None:
    """Start the timer that replaces nodes; called before anything is launched.

    Args:
        remove: The old nodes, at least one.
        new_nodes: How many nodes the plan launches; the timer waits for them.
        cause: One of `shared.disruption.evaluation.DisruptionCause`.
        registration: How long an instance may take to join.
    """
    now, name, first = ports.clock.now(), ports.cluster.name, remove[0]
    state = TimerState(
        cluster=name,
        node=first.name,
        uid=first.uid,
        wait_seconds=whole_seconds(_POLL) if new_nodes else 0,
        since=now.isoformat(),
        plan_id=plan_id,
        new_nodes=new_nodes,
        registration_seconds=whole_seconds(registration),
        remove=tuple((node.name, node.uid) for node in remove),
        reason=cause,
        steps=0,
    )
    for node in remove:
        save_heartbeat(ports.ledger, name, node.uid, TimerKind.REPLACEMENT, now)
    try:
        start_execution(ports, TimerKind.REPLACEMENT, state, now)
    except UnavailableError:
        # The timer may run, and writes a heartbeat within seconds then; otherwise these expire
        # soon.
        raise
    except AutoscalerError:
        for node in remove:
            drop_heartbeat(ports.ledger, name, node.uid, TimerKind.REPLACEMENT)
        raise


class Replacement(BaseTimer):
    """Removes nodes of one cluster step by step; each step reads the cluster and EC2 again."""

    kind = TimerKind.REPLACEMENT

    def _step(self, state: TimerState) -> TimerState:
        """Take the next step: the timer ends with the last of its old nodes."""
        steps = (state.steps or 0) + 1
        state = replace(state, steps=steps)
        nodes = self._ports.cluster.nodes()
        old = _old_nodes(state, nodes)
        self._ports.executor.each(lambda node: self._heartbeat(node.uid), old)
        if not old:
            # Another change may be possible now: do not wait for the evaluation of the next minute.
            self._ports.outbox.evaluate(self._ports.cluster.name)
            return self._end(state, nodes, REPLACED_ALL)
        if steps >= MAX_STEPS:
            return self._continue_as_new(state, state.wait_again(timedelta(0)))
        staying = [node for node in old if node.deletion_at is None]
        if not staying:
            return state.wait_again(_DRAIN_POLL)
        acting = self._acting_owners()
        owners = [owner_among(node, acting) if node.is_ours else None for node in staying]
        known = {node.name: owner for node, owner in zip(staying, owners, strict=True) if owner}
        if len(known) < len(staying):
            return self._abandon(state, nodes, "held back")
        return self._wait(state, nodes, staying, known)

    def _wait(
        self,
        state: TimerState,
        nodes: Sequence[Node],
        staying: Sequence[Node],
        owners: Mapping[str, Provisioner],
    ) -> TimerState:
        """Wait for the new nodes and until no pod blocks the old; then cordon, check again, remove.

        Nodes that are not removed in this step are checked in the same way in the next.

        Nodes that expire by force are removed once they have expired, whatever blocks them.
        """
        plan_id, wanted = state.text("plan_id"), state.new_nodes or 0
        new_nodes = [
            node for node in nodes if _is_of_plan(node, plan_id) and node.deletion_at is None
        ]
        now, since = self._ports.clock.now(), _since(state)
        if sum(1 for node in new_nodes if node.is_initialized) < wanted:
            if self._is_overdue(state, new_nodes):
                return self._abandon(state, nodes, "new nodes did not come")
            return state.wait_again(_POLL)
        reason = state.text("reason")
        if any(self._is_early(node, owners[node.name], reason) for node in staying):
            return state.wait_again(_DRAIN_POLL)
        try:
            blockers = self._ports.executor.each(
                lambda node: record_blockers(self._ports, node, reason),
                [n for n in staying if not ignores_blockers(n, owners[n.name], reason, now)],
            )
            if any(blockers):
                self._ports.executor.each(lambda node: uncordon(self._ports, node), staying)
                ready = max((since, *(node.ready_changed_at or since for node in new_nodes)))
                if now - ready > _BLOCKED_FOR:
                    return self._abandon(state, nodes, "pods hold it")
                return state.wait_again(_DRAIN_POLL)
            # Before the cordon: reading a large cluster may exhaust this function's time, and the
            # cordon would stay.
            fitting = self._fits(staying)
            if fitting is None:
                return self._abandon(state, nodes, "pods came that fit nowhere else")
            cordoned = self._ports.executor.each(
                lambda node: cordon_voluntarily(self._ports, read_again(self._ports, node), reason),
                staying,
            )
        except (ConflictError, NotFoundError):
            return state.wait_again(timedelta(seconds=1))
        if not self._pods_on(cordoned) <= fitting and self._fits(cordoned) is None:
            return self._abandon(state, nodes, "pods came that fit nowhere else")
        return self._remove(state, cordoned, owners)

    def _is_overdue(self, state: TimerState, new_nodes: Sequence[Node]) -> bool:
        """Return whether a new node cannot be expected, or takes longer than nodes may.

        A node that does not join in time is removed by another timer, and is missing then.
        """
        now, since = self._ports.clock.now(), _since(state)
        if len(new_nodes) < (state.new_nodes or 0):
            age = now - since
            lost = age > _LAUNCHING and not self._is_launching(state.text("plan_id"))
            return lost or age > _LAUNCHED_BY
        joins = state.span("registration_seconds")
        return any(
            now - (node.created_at or since) > node.registration_timeout(joins) + _INITIALIZATION
            for node in new_nodes
            if not node.is_initialized
        )

    def _is_early(self, node: Node, owner: Provisioner, reason: str) -> bool:
        """Return whether a node expires by force but has not expired yet."""
        if reason != _EXPIRATION or not owner.dialect.expires_by_force:
            return False
        left = time_to_expiration(node, owner, self._ports.clock.now())
        return left is not None and left > timedelta(0)

    def _remove(
        self,
        state: TimerState,
        staying: Sequence[Node],
        owners: Mapping[str, Provisioner],
    ) -> TimerState:
        """Delete the old nodes, which another timer drains; a blocked node is kept."""
        reason, now = state.text("reason"), self._ports.clock.now()
        outcomes = self._ports.executor.each(
            lambda node: remove_voluntarily(
                self._ports,
                node,
                reason,
                despite_blockers=ignores_blockers(node, owners[node.name], reason, now),
            ),
            staying,
        )
        if RemovalOutcome.CHANGED in outcomes:
            return state.wait_again(timedelta(seconds=1))
        return state.wait_again(_DRAIN_POLL)

    def _fits(self, leaving: Sequence[Node]) -> frozenset[str] | None:
        """Return the UIDs of the pods on leaving nodes, None if some do not fit on other nodes."""
        cluster, now = self._ports.cluster, self._ports.clock.now()
        # Nodes before pods: otherwise a node that is added in between would appear without its
        # pods.
        nodes = cluster.nodes()
        bound = cluster.bound_pods()
        names = frozenset(node.name for node in leaving)
        snapshot = ClusterSnapshot(
            cluster=cluster.name,
            taken_at=now,
            pending=(),
            bound=bound,
            nodes=nodes,
            provisioners=(),
            sites=(),
            daemonsets=(),
            slots=(),
            intents=(),
            namespaces=namespaces_for(cluster, bound),
            instance_types=(),
        )
        changing = nodes_being_replaced(self._ports.ledger, cluster.name, now)
        others = changing - {node.uid for node in leaving}
        snapshot = with_leaving(snapshot, others)
        if not fits_without(snapshot, sorted(names), PackingSettings()):
            return None
        return frozenset(pod.uid for pod in snapshot.bound if pod.node_name in names)

    def _pods_on(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Return the UIDs of the pods that are on nodes now and have not ended."""
        on_each = self._ports.executor.each(self._ports.cluster.pods_on, [n.name for n in nodes])
        return frozenset(pod.uid for pods in on_each for pod in pods if not pod.is_terminal)

    def _is_launching(self, plan_id: str) -> bool:
        ledger, name = self._ports.ledger, self._ports.cluster.name
        return any(
            open_intent.plan_id == plan_id for open_intent in ledger.open_intents(name)
        ) or any(slot.plan_id == plan_id and not slot.node_name for slot in ledger.slots(name))

    def _abandon(self, state: TimerState, nodes: Sequence[Node], result: str) -> TimerState:
        """Leave the old nodes as they were; the new nodes are like all others from now on."""
        for node in _old_nodes(state, nodes):
            if node.deletion_at is None:
                fresh = self._ports.cluster.node(node.name)
                if fresh is not None and fresh.uid == node.uid:
                    uncordon(self._ports, fresh)
        return self._end(state, nodes, result)

    def _end(self, state: TimerState, nodes: Sequence[Node], result: str) -> TimerState:
        ledger, cluster = self._ports.ledger, self._ports.cluster
        plan_id, now = state.text("plan_id"), self._ports.clock.now()
        for node in nodes:
            if _is_of_plan(node, plan_id) and keys.REPLACES in node.annotations:
                self._remove_mark(node)
                # Its pods may never have come: it did not count as empty while it was marked.
                Emptiness(self._ports).begin(node.name)
        for _, uid in state.remove or ():
            save_heartbeat(ledger, cluster.name, uid, REPLACED, now)
            drop_heartbeat(ledger, cluster.name, uid, self.kind)
        return state.finish(result)

    def _remove_mark(self, node: Node) -> None:
        """Remove the mark of a new node; sweep does it if other controllers write all the time."""
        change = NodeChange(set_annotations={keys.REPLACES: None})
        with contextlib.suppress(ConflictError, NotFoundError):
            change_node(self._ports, node, change)


def _old_nodes(state: TimerState, nodes: Sequence[Node]) -> list[Node]:
    removed = frozenset(state.remove or ())
    return [node for node in nodes if (node.name, node.uid) in removed]


def _is_of_plan(node: Node, plan_id: str) -> bool:
    return node.annotations.get(keys.SLOT, "").startswith(f"{plan_id}/")


def _since(state: TimerState) -> datetime:
    since = state.time("since")
    if since is None:
        raise InvalidMessageError("since: None: expected a time")
    return since

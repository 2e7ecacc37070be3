"""Replacement: nodes are given up once those stand that take over their pods."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.disruption.simulation import fits_without
from shared.model import labels as keys
from shared.model.errors import ConflictError, InvalidMessageError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.snapshot import ClusterSnapshot
from shared.node_lifecycle.emptiness import Emptiness
from shared.node_lifecycle.node_editor import change_node
from shared.node_lifecycle.voluntary_removal import (
    Removal,
    cordon_by_choice,
    look_first,
    remove_by_choice,
    uncordon,
)
from shared.packing.problem import PackingSettings
from shared.ports import NodeChange, NodePorts, TimerKind
from shared.timers.timers import again, done, payload, text_of, timer_name

# In the ledger: a change of the node ended, well or not, and when.
REPLACED: Final = "replaced"
# Results of a timer for which nobody has to do anything.
GIVEN_AWAY: Final = "replaced"
CONTINUED: Final = "continued in another execution"
# In the state: how far it has come; absent at first.
_PHASE: Final = "phase"
_GOING: Final = "going"
_POLL: Final = timedelta(seconds=5)
_DRAIN_POLL: Final = timedelta(seconds=10)
# A machine is given up when it has not joined in five minutes; then nothing comes any more.
_PATIENCE: Final = timedelta(minutes=6)
# Sooner when nothing is being launched for it: the launch came to nothing.
_LAUNCHED_BY: Final = timedelta(minutes=1)
# An execution may have 25,000 events and a step makes about ten: go on in a new one before.
_MAX_STEPS: Final = 1500


def start_replacement(
    ports: NodePorts, plan_id: str, remove: Sequence[Node], new_nodes: int, cause: str
) -> None:
    """Start giving nodes up, before anything is launched: the timer is what remembers it.

    Args:
        remove: At least one.
        new_nodes: How many nodes the plan launches, which are waited for.
        cause: Of `shared.disruption.selection.Cause`.
    """
    now, name, first = ports.clock.now(), ports.cluster.name, remove[0]
    for node in remove:
        ports.ledger.note_timer(name, node.uid, TimerKind.REPLACEMENT, now)
    ports.outbox.start_timer(
        TimerKind.REPLACEMENT,
        timer_name(name, first.uid, TimerKind.REPLACEMENT, now),
        payload(
            ports,
            first.name,
            first.uid,
            _POLL if new_nodes else timedelta(0),
            since=now.isoformat(),
            plan_id=plan_id,
            new_nodes=new_nodes,
            remove=[[node.name, node.uid] for node in remove],
            reason=cause,
            steps=0,
        ),
    )


class Replacement:
    """Gives nodes of one cluster up, step by step; every step reads the world anew."""

    def __init__(self, ports: NodePorts) -> None:
        self._ports = ports

    def step(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Take the next step of a replacement.

        Raises:
            InvalidMessageError: If the state lacks a field.
            RetryableError: If the world could not be read or changed now.
        """
        state = {**state, "steps": int(state.get("steps", 0)) + 1}
        nodes = self._ports.cluster.nodes()
        old = _old(state, nodes)
        for node in old:
            self._ports.ledger.note_timer(
                self._ports.cluster.name, node.uid, TimerKind.REPLACEMENT, self._ports.clock.now()
            )
        if not old:
            # What is left may allow another change: no need to wait for the minute's look.
            self._ports.outbox.look(self._ports.cluster.name)
            return self._end(state, nodes, GIVEN_AWAY)
        if state["steps"] >= _MAX_STEPS:
            return self._continue(state)
        staying = [node for node in old if node.deletion_at is None]
        if not staying:
            return again(state, _DRAIN_POLL)
        if self._is_held(staying):
            return self._give_up(state, nodes, "held back")
        if state.get(_PHASE) == _GOING:
            return self._remove(state, nodes, staying)
        return self._wait(state, nodes, staying)

    def _wait(
        self, state: Mapping[str, Any], nodes: Sequence[Node], staying: Sequence[Node]
    ) -> dict[str, Any]:
        """Wait for the new nodes and for whoever holds the old ones; then cordon and look again."""
        plan_id, wanted = text_of(state, "plan_id"), int(state.get("new_nodes", 0))
        fresh = [node for node in nodes if _is_of(node, plan_id) and node.deletion_at is None]
        age = self._ports.clock.now() - _since(state)
        if sum(1 for node in fresh if node.is_initialized) < wanted:
            lost = age > _LAUNCHED_BY and len(fresh) < wanted and not self._is_launching(plan_id)
            if lost or age > _PATIENCE:
                return self._give_up(state, nodes, "new nodes did not come")
            return again(state, _POLL)
        reason = text_of(state, "reason")
        try:
            held = [look_first(self._ports, node, reason) for node in staying]
            if any(held):
                if age > 2 * _PATIENCE:
                    return self._give_up(state, nodes, "pods hold it")
                return again(state, _DRAIN_POLL)
            cordoned = [cordon_by_choice(self._ports, self._read(node), reason) for node in staying]
        except (ConflictError, NotFoundError):
            return again(state, timedelta(seconds=1))
        if not self._fits(cordoned):
            return self._give_up(state, nodes, "pods came that fit nowhere else")
        return self._remove({**state, _PHASE: _GOING}, nodes, cordoned)

    def _remove(
        self, state: Mapping[str, Any], nodes: Sequence[Node], staying: Sequence[Node]
    ) -> dict[str, Any]:
        """Delete the old nodes, whose drain is another timer's; one that is held is left alone."""
        reason = text_of(state, "reason")
        outcomes = {node: remove_by_choice(self._ports, node, reason) for node in staying}
        if Removal.CHANGED in outcomes.values():
            return again(state, timedelta(seconds=1))
        if (
            Removal.BLOCKED in outcomes.values()
            and self._ports.clock.now() - _since(state) > 2 * _PATIENCE
        ):
            return self._give_up(state, nodes, "pods hold it")
        return again(state, _DRAIN_POLL)

    def _fits(self, leaving: Sequence[Node]) -> bool:
        """Return whether all pods that are on them now have a place elsewhere."""
        cluster = self._ports.cluster
        snapshot = ClusterSnapshot(
            cluster=cluster.name,
            taken_at=self._ports.clock.now(),
            pending=(),
            bound=cluster.bound_pods(),
            nodes=cluster.nodes(),
            provisioners=(),
            sites=(),
            daemonsets=(),
            slots=(),
            intents=(),
            instance_types=(),
        )
        return fits_without(snapshot, [node.name for node in leaving], PackingSettings())

    def _read(self, node: Node) -> Node:
        fresh = self._ports.cluster.node(node.name)
        if fresh is None or fresh.uid != node.uid:
            raise NotFoundError(f"node {node.name} is gone")
        return fresh

    def _is_held(self, staying: Sequence[Node]) -> bool:
        """Return whether a brake, or an owner that is gone or paused, forbids to go on."""
        provisioners, _ = self._ports.cluster.provisioners()
        acting = {
            provisioner.name
            for provisioner in provisioners
            if not (provisioner.paused or provisioner.shadow)
        }
        return self._ports.brakes.holds or any(
            not node.is_ours or node.provisioner not in acting for node in staying
        )

    def _is_launching(self, plan_id: str) -> bool:
        ledger, name = self._ports.ledger, self._ports.cluster.name
        return any(
            open_intent.plan_id == plan_id for open_intent in ledger.open_intents(name)
        ) or any(slot.plan_id == plan_id and not slot.node_name for slot in ledger.slots(name))

    def _give_up(
        self, state: Mapping[str, Any], nodes: Sequence[Node], result: str
    ) -> dict[str, Any]:
        """Leave the old nodes as they were; new ones are like all others from now on."""
        for node in _old(state, nodes):
            if node.deletion_at is None:
                fresh = self._ports.cluster.node(node.name)
                if fresh is not None and fresh.uid == node.uid:
                    uncordon(self._ports, fresh)
        return self._end(state, nodes, result)

    def _end(self, state: Mapping[str, Any], nodes: Sequence[Node], result: str) -> dict[str, Any]:
        ledger, cluster = self._ports.ledger, self._ports.cluster
        plan_id, now = text_of(state, "plan_id"), self._ports.clock.now()
        for node in nodes:
            if _is_of(node, plan_id) and keys.REPLACES in node.annotations:
                self._release(node)
                # If its pods never came: it was not called empty while it was marked.
                Emptiness(self._ports).begin(node.name)
        for _, uid in _removed(state):
            ledger.note_timer(cluster.name, uid, REPLACED, now)
            ledger.drop_timer(cluster.name, uid, TimerKind.REPLACEMENT)
        return done(state, result)

    def _release(self, node: Node) -> None:
        """Take the mark of a new node back; sweep does it where somebody else writes just now."""
        change = NodeChange(set_annotations={keys.REPLACES: None})
        with contextlib.suppress(ConflictError, NotFoundError):
            change_node(self._ports, node, change)

    def _continue(self, state: Mapping[str, Any]) -> dict[str, Any]:
        uid, now = text_of(state, "uid"), self._ports.clock.now()
        name = timer_name(self._ports.cluster.name, uid, TimerKind.REPLACEMENT, now)
        more = {**state, "steps": 0, "next": "wait", "wait_seconds": 0}
        self._ports.outbox.start_timer(TimerKind.REPLACEMENT, name, more)
        return done(state, CONTINUED)


def _removed(state: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return name and uid of each node that is given up.

    Raises:
        InvalidMessageError: If that is not what stands there.
    """
    listed = state.get("remove")
    try:
        return tuple((str(name), str(uid)) for name, uid in listed or ())
    except (TypeError, ValueError) as error:
        raise InvalidMessageError(f"remove: {listed!r}: expected pairs of name and uid") from error


def _old(state: Mapping[str, Any], nodes: Sequence[Node]) -> list[Node]:
    removed = frozenset(_removed(state))
    return [node for node in nodes if (node.name, node.uid) in removed]


def _is_of(node: Node, plan_id: str) -> bool:
    return node.annotations.get(keys.SLOT, "").startswith(f"{plan_id}/")


def _since(state: Mapping[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(text_of(state, "since"))
    except ValueError as error:
        raise InvalidMessageError(f"since: {state.get('since')!r}: expected a time") from error

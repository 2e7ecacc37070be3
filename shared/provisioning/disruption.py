"""Disruption: this decides and launches replacements; the timer it starts removes the nodes."""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from shared.brakes.ceilings import affordable, as_machines, under_ceilings
from shared.decisions.bases import DecisionWriter
from shared.disruption.drift import is_judged, long_unsold, new_stamp, unsold_since
from shared.disruption.fingerprint import fingerprint
from shared.disruption.outdated import outdated_stories
from shared.disruption.quiet_nodes import pods_seen, restless
from shared.disruption.selection import (
    DisruptionCommand,
    DisruptionInput,
    Look,
    OngoingChanges,
    as_simulated,
    blocked_in,
    look,
)
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulation import (
    simulate,
    with_claims_of,
    with_closed,
    with_drained,
    without,
)
from shared.events.node_events import MOST_PODS, event_on
from shared.events.provisioner_conditions import ProvisionerConditions
from shared.events.recorder import EventRecorder
from shared.launching.current_images import current_images
from shared.launching.shallow_spot_pools import passed_over
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.memo import Memo
from shared.model.provisioner import Provisioner, owner_among
from shared.model.snapshot import ClusterSnapshot
from shared.node_lifecycle.node_editor import change_node
from shared.node_lifecycle.replacement import REPLACED, start_replacement
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, KubernetesEvent, NodeChange, Severity
from shared.provisioning.evaluation_budget import EvaluationBudget
from shared.provisioning.planning_session import Turn
from shared.provisioning.sightings import Sightings, sighted
from shared.snapshot.gather import Gathered
from shared.snapshot.volumes import with_volumes
from shared.timers.heartbeats import changes_under_way, running_timers
from shared.timers.removal_permits import permitted, read_permits, take_permits

# What consolidation saw when it last found nothing to do, and for how long that is not tried again.
_FRUITLESS: Final = "fruitless-look"
_LOOK_AGAIN: Final = timedelta(minutes=5)
# The pods of nodes at the last look.
_PODS_SEEN: Final = "pods-seen-since"
# Nodes that the catalogue lacks.
_UNSOLD: Final = "unsold-since"
# Nodes that one look writes a new hash on: each is a call to the API server.
_MOST_STAMPED: Final = 50
# A look that was broken off is tried again at once with half of the tries, but not with fewer.
_FEWEST_TRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Disrupted:
    """The outcome of an evaluation of all nodes.

    Attributes:
        cause: Why nodes are removed, empty when none are.
        nodes: The number of removed nodes.
        launched: Whether new nodes are launched first.
        broken_off: Whether a plan was requested meanwhile, which comes first.
    """

    cause: str = ""
    nodes: int = 0
    launched: bool = False
    broken_off: bool = False


class Disrupting:
    """Looks over the nodes of one cluster, under its lease."""

    def __init__(
        self,
        ports: ClusterPorts,
        settings: DisruptionSettings,
        packing: PackingSettings,
        registration: timedelta,
        writer: DecisionWriter,
        conditions: ProvisionerConditions,
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._packing = packing
        self._registration = registration
        self._writer = writer
        self._conditions = conditions
        self._recorder = EventRecorder(ports)

    def run(self, turn: Turn, gathered: Gathered, plan_id: str, until: datetime) -> Disrupted:
        """Choose one change of nodes and begin it: timer first, then the launch.

        Args:
            gathered: With everything in it, pods waiting or not.
            until: When choosing must end; what was found by then is done.

        Raises:
            ConflictError: If the lease was lost.
        """
        ceiling = turn.brakes.ceiling
        snapshot = under_ceilings(with_claims(self._ports, gathered.snapshot), ceiling)
        if not any(node.is_ours for node in snapshot.nodes):
            self._conditions.outdated(snapshot.provisioners, {})
            return Disrupted()
        self._say_told(snapshot)
        permits = read_permits(self._ports)
        judged = [
            owner
            for owner in snapshot.provisioners
            if is_judged(owner, otherwise=self._settings.drift)
        ]
        disruption_input = self._input(turn, snapshot, gathered.snapshot, permits, judged)
        if not turn.held_back:
            self._stamp_anew(snapshot, judged)
        evaluation_budget = EvaluationBudget(turn, self._ports.clock, until)
        found = self._look(disruption_input, evaluation_budget)
        if evaluation_budget.broken_off:
            tries = max(_FEWEST_TRIES, disruption_input.settings.max_simulations // 2)
            self._settings = dataclasses.replace(self._settings, max_simulations=tries)
            return Disrupted(broken_off=True)
        self._say_held(snapshot, found)
        self._conditions.outdated(snapshot.provisioners, outdated_stories(disruption_input, found))
        if found.change is None:
            return Disrupted()
        change = found.change
        nodes = {node.name: node for node in gathered.snapshot.nodes}
        remove = [nodes[name] for name in change.remove]
        wanted = as_machines(change.plan.nodes)
        kept, over = affordable(gathered.snapshot, wanted, ceiling)
        shadowed = {provisioner.name for provisioner in snapshot.provisioners if provisioner.shadow}
        if over or any(planned_node.provisioner in shadowed for planned_node in kept):
            text = over[0].reason if over else "its replacement would be bought in shadow mode"
            self._say(remove[0], "DisruptionBlocked", f"{change.cause.value}: {text}")
            return Disrupted()
        self._record(disruption_input, change, plan_id)
        if turn.held_back:
            self._say(remove[0], "ShadowDisruption", f"would be removed: {_story(change)}")
            return Disrupted(cause=change.cause.value)
        turn.keep_lease()
        budgeted = [node.uid for node in remove if _has_budget(node, snapshot)]
        if budgeted and not take_permits(self._ports, permits, budgeted, self._ports.clock.now()):
            # A timer removes a node at this moment: what budgets leave is counted again.
            return Disrupted()
        start_replacement(
            self._ports,
            plan_id,
            remove,
            len(kept),
            change.cause.value,
            registration=self._registration,
        )
        for node in remove:
            self._say(node, "Disrupted", _story(change))
        if kept:
            turn.launches.launch(gathered, plan_id, kept, replaces=",".join(change.remove))
            turn.make_nodes(gathered, turn.slots(gathered.snapshot, launched=True))
        # Another change may be independent of it.
        self._ports.outbox.look(self._ports.cluster.name)
        return Disrupted(cause=change.cause.value, nodes=len(remove), launched=bool(kept))

    def _input(
        self,
        turn: Turn,
        snapshot: ClusterSnapshot,
        whole: ClusterSnapshot,
        permits: Memo,
        judged: Sequence[Provisioner],
    ) -> DisruptionInput:
        """Read what a look needs besides its snapshot.

        Args:
            whole: With what ceilings leave no room for.
            judged: Owners whose nodes may be outdated.
        """
        restless = self._restless(snapshot)
        pace = self._pace(snapshot.taken_at, permitted(permits, snapshot.taken_at))
        turn.keep()
        read = DisruptionInput(
            snapshot=snapshot,
            budgets=self._ports.cluster.disruption_budgets(),
            settings=self._settings.within_reason(len(snapshot.bound)),
            # As the simulation decides, so that what is written down is decided again the same.
            packing=dataclasses.replace(self._packing, growth_percent=0, fewer_nodes_permille=0),
            restless=restless,
            pace=pace,
            images=current_images(self._ports, judged, snapshot.nodes, whole.instance_types),
            unsold=self._unsold(snapshot) if judged else frozenset(),
            passed_over=passed_over(self._ports, snapshot.taken_at),
        )
        turn.keep()
        return read

    def _look(self, disruption_input: DisruptionInput, evaluation_budget: EvaluationBudget) -> Look:
        """Look, but not for what was not found in the very same scene a few minutes ago."""
        name, now = self._ports.cluster.name, disruption_input.snapshot.taken_at
        memo = self._ports.ledger.memo(name, _FRUITLESS)
        seen = fingerprint(disruption_input)
        known = memo.value.get("seen") == seen and now.isoformat() < str(memo.value.get("until"))
        found = look(disruption_input, consolidating=not known, go_on=evaluation_budget.lasts)
        if found.change is None and not known and not evaluation_budget.broken_off:
            until = now + _LOOK_AGAIN
            value = {"seen": seen, "until": until.isoformat()}
            # A later writer has seen something newer.
            self._ports.ledger.change_memo(name, dataclasses.replace(memo, value=value), until)
        return found

    def _restless(self, snapshot: ClusterSnapshot) -> frozenset[str]:
        """Return the nodes whose pods have just changed, and remember what was seen of them."""
        see = functools.partial(pods_seen, snapshot)
        return restless(snapshot, sighted(self._ports.ledger, _PODS_SEEN, snapshot, see))

    def _unsold(self, snapshot: ClusterSnapshot) -> frozenset[str]:
        """Return the nodes that are what EC2 has not sold for long, and remember since when."""

        def see(before: Sightings) -> Sightings:
            known = {uid: since for uid, (_, since) in before.items()}
            return {uid: ("", since) for uid, since in unsold_since(snapshot, known).items()}

        seen = sighted(self._ports.ledger, _UNSOLD, snapshot, see)
        return long_unsold({uid: since for uid, (_, since) in seen.items()}, snapshot.taken_at)

    def _stamp_anew(self, snapshot: ClusterSnapshot, judged: Sequence[Provisioner]) -> None:
        """Write the hash of this version on nodes with another, so that none drifts for that."""
        owners = {owner.name: owner for owner in judged}
        stamps = (
            (node, new_stamp(node, owner))
            for node in snapshot.nodes
            if node.is_ours and (owner := owner_among(node, owners)) is not None
        )
        for node, stamp in itertools.islice(((n, s) for n, s in stamps if s), _MOST_STAMPED):
            with contextlib.suppress(ConflictError, NotFoundError):
                change_node(self._ports, node, NodeChange(set_annotations=stamp))

    def _pace(self, now: datetime, permits: frozenset[str]) -> OngoingChanges:
        ledger, name = self._ports.ledger, self._ports.cluster.name
        rested = frozenset(
            uid
            for (uid, kind), last in running_timers(ledger, name).items()
            if kind == REPLACED and now - last <= self._settings.window
        )
        running = changes_under_way(ledger, name, now)
        return OngoingChanges(running=running, rested=rested, permitted=permits)

    def _record(
        self, disruption_input: DisruptionInput, change: DisruptionCommand, plan_id: str
    ) -> None:
        """Write down what was simulated, so that it can be decided again, and what came of it."""
        seen = as_simulated(disruption_input, change.cause)
        snapshot = with_closed(with_drained(seen.snapshot), change.closed)
        plan = simulate(snapshot, change.remove, seen.packing) or change.plan
        why: Mapping[str, Any] = {
            "cause": change.cause.value,
            "method": change.method.value,
            "remove": list(change.remove),
            "why": change.why,
        }
        self._writer.write(
            self._ports.decisions,
            plan_id,
            without(snapshot, change.remove),
            plan,
            seen.packing,
            why,
        )

    def _say_told(self, snapshot: ClusterSnapshot) -> None:
        """Tell users what their budgets and annotations mean now, where that is easily missed."""
        told = [
            event_on(
                owner,
                "DisruptionBlocked",
                "its disruption budgets allow no node to be disrupted now as "
                + " or ".join(reason.value for reason in reasons),
                severity=Severity.NORMAL,
            )
            for owner, reasons in blocked_in(snapshot).items()
        ]
        ours = {node.name for node in snapshot.nodes if node.is_ours}
        misread = [pod for pod in snapshot.bound if pod.node_name in ours and _misread(pod)]
        for pod in misread[:MOST_PODS]:
            text = (
                f"{keys.DO_NOT_DISRUPT}: {_misread(pod)!r} is neither true nor a span above zero, "
                "such as 30m: the pod is not protected"
            )
            told.append(event_on(pod, "InvalidDoNotDisruptAnnotation", text))
        self._recorder.record(told)

    def _say_held(self, snapshot: ClusterSnapshot, found: Look) -> None:
        nodes = {node.name: node for node in snapshot.nodes}
        self._recorder.record(
            _event(nodes[name], "DisruptionBlocked", f"it is due to be replaced, but {text}")
            for name, text in sorted(found.held.items())
        )

    def _say(self, node: Node, reason: str, text: str) -> None:
        self._recorder.record([_event(node, reason, text)])


def _has_budget(node: Node, snapshot: ClusterSnapshot) -> bool:
    return any(owner.budgets for owner in snapshot.provisioners if owner.owns(node))


def _misread(pod: Pod) -> str:
    """Return what do-not-disrupt says that is neither a truth value nor a span, empty for none."""
    written = pod.annotations.get(keys.DO_NOT_DISRUPT, "")
    return "" if pod.kept_for or written in ("true", "false") else written


def _story(change: DisruptionCommand) -> str:
    new = len(change.plan.nodes)
    first = f"{new} new node{'' if new == 1 else 's'} first" if new else "none is launched"
    removed = f"{len(change.remove)} node{'' if len(change.remove) == 1 else 's'} removed"
    return f"{change.cause.value}: {change.why}; {removed}, {first}"


def _event(node: Node, reason: str, text: str) -> KubernetesEvent:
    return event_on(node, reason, text, severity=Severity.NORMAL)


def with_claims(ports: ClusterPorts, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with what volumes ask of pods on Dovetail's nodes, were they to move."""
    ours = {node.name for node in snapshot.nodes if node.is_ours}
    moving = {pod.uid for pod in snapshot.bound if pod.node_name in ours}
    return with_claims_of(snapshot, moving, lambda asking: with_volumes(ports.cluster, asking))

"""Evaluates the nodes of a cluster, chooses one change and launches the replacements.

The timer that it starts removes the old nodes.
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from shared.disruption.drift import long_unsold, new_stamp, reports_drift, unsold_since
from shared.disruption.evaluation import (
    DisruptionCommand,
    DisruptionInput,
    Evaluation,
    OngoingChanges,
    as_simulated,
    blocked_in,
    evaluate,
)
from shared.disruption.fingerprint import fingerprint
from shared.disruption.outdated import outdated_texts
from shared.disruption.pod_changes import pod_digests, recently_changed
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulate import (
    simulate,
    with_claims_of,
    with_cordoned,
    with_drained,
    without_nodes,
)
from shared.model import labels as keys
from shared.model.dollars_and_counts import counted
from shared.model.errors import ConflictError, NotFoundError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.note import Note
from shared.model.provisioner import Provisioner, owner_among
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.brakes.ceilings import affordable, under_ceilings, with_kubelet_resources
from shared.nodes.events.node_events import MOST_PODS, event_on
from shared.nodes.events.provisioner_conditions import ProvisionerConditions
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.launch.current_images import current_images
from shared.nodes.launch.refusals.offering_facts import skipped_spot_pools
from shared.nodes.leave.replacement import REPLACED, start_replacement
from shared.nodes.node_editor import change_node
from shared.nodes.timers.heartbeats import last_heartbeats, nodes_being_replaced
from shared.nodes.timers.removal_permits import permitted, read_permits, take_permits
from shared.packing.problem import PackingSettings
from shared.ports import ClusterPorts, KubernetesEvent, NodeChange, Severity
from shared.provisioning.decisions.bases import DecisionWriter
from shared.provisioning.evaluation_budget import EvaluationBudget
from shared.provisioning.node_observations import NodeObservations, update_observations
from shared.provisioning.session import ProvisioningSession
from shared.snapshot.gather import Gathered
from shared.snapshot.volumes import with_volumes

# The input for which consolidation last found nothing, and for how long it is not tried again.
_FRUITLESS_EVALUATION: Final = "fruitless-look"
_EVALUATE_AGAIN: Final = timedelta(minutes=5)
# Digests of the pods of each node at the last evaluation.
_PODS_SEEN: Final = "pods-seen-since"
# Since when each node's offering is missing from the catalog.
_UNSOLD: Final = "unsold-since"
# The most nodes that get a new hash in one evaluation: each is a call to the API server.
_MOST_STAMPED: Final = 50
# An aborted evaluation is repeated at once with half of the simulations, but at least this many.
_FEWEST_TRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionOutcome:
    """The outcome of an evaluation of all nodes.

    Attributes:
        cause: Why nodes are removed, empty when none are.
        nodes: The number of removed nodes.
        launched: Whether new nodes are launched first.
        aborted: Whether a plan was requested meanwhile, which comes first.
    """

    cause: str = ""
    nodes: int = 0
    launched: bool = False
    aborted: bool = False


class DisruptionLoop:
    """Evaluates the nodes of one cluster, under its lease."""

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

    def run(
        self, session: ProvisioningSession, gathered: Gathered, plan_id: str, until: datetime
    ) -> DisruptionOutcome:
        """Choose one change of nodes and start it: first the timer, then the launch.

        Args:
            gathered: Everything in the cluster (gathered with `read_all`), whether or not pods are
                pending.
            until: When the choice must end; the best change found by then is made.

        Raises:
            ConflictError: If the lease was lost.
        """
        ceiling = session.brakes.ceiling
        snapshot = under_ceilings(with_claims(self._ports, gathered.snapshot), ceiling)
        if not any(node.is_ours for node in snapshot.nodes):
            self._conditions.outdated(snapshot.provisioners, {})
            return DisruptionOutcome()
        self._record_warnings(snapshot)
        permits = read_permits(self._ports)
        drift_owners = [
            owner
            for owner in snapshot.provisioners
            if reports_drift(owner, otherwise=self._settings.drift)
        ]
        disruption_input = self._input(session, snapshot, gathered.snapshot, permits, drift_owners)
        if not session.held_back:
            self._update_hash_stamps(snapshot, drift_owners)
        evaluation_budget = EvaluationBudget(session, self._ports.clock, until)
        evaluation = self._evaluate(disruption_input, evaluation_budget)
        if evaluation_budget.aborted:
            tries = max(_FEWEST_TRIES, disruption_input.settings.max_simulations // 2)
            self._settings = dataclasses.replace(self._settings, max_simulations=tries)
            return DisruptionOutcome(aborted=True)
        self._record_blocked(snapshot, evaluation)
        self._conditions.outdated(
            snapshot.provisioners, outdated_texts(disruption_input, evaluation)
        )
        if evaluation.change is None:
            return DisruptionOutcome()
        change = evaluation.change
        nodes = {node.name: node for node in gathered.snapshot.nodes}
        remove = [nodes[name] for name in change.remove]
        wanted = with_kubelet_resources(change.plan.nodes)
        kept, over = affordable(gathered.snapshot, wanted, ceiling)
        shadowed = {provisioner.name for provisioner in snapshot.provisioners if provisioner.shadow}
        if over or any(planned_node.provisioner in shadowed for planned_node in kept):
            text = over[0].reason if over else "its replacement would be bought in shadow mode"
            self._record_event(remove[0], "DisruptionBlocked", f"{change.cause.value}: {text}")
            return DisruptionOutcome()
        self._write_decision(disruption_input, change, plan_id)
        if session.held_back:
            self._record_event(
                remove[0], "ShadowDisruption", f"would be removed: {_change_text(change)}"
            )
            return DisruptionOutcome(cause=change.cause.value)
        session.renew_lease()
        budgeted = [node.uid for node in remove if _has_budget(node, snapshot)]
        if budgeted and not take_permits(self._ports, permits, budgeted, self._ports.clock.now()):
            # A timer removes a node at the same time: the next evaluation counts the budgets again.
            return DisruptionOutcome()
        start_replacement(
            self._ports,
            plan_id,
            remove,
            len(kept),
            change.cause.value,
            registration=self._registration,
        )
        for node in remove:
            self._record_event(node, "Disrupted", _change_text(change))
        if kept:
            session.plan_launcher.launch(gathered, plan_id, kept, replaces=",".join(change.remove))
            session.make_nodes(gathered, session.current_slots(gathered.snapshot, launched=True))
        # Another change may be possible independently of this one.
        self._ports.outbox.evaluate(self._ports.cluster.name)
        return DisruptionOutcome(cause=change.cause.value, nodes=len(remove), launched=bool(kept))

    def _input(
        self,
        session: ProvisioningSession,
        snapshot: ClusterSnapshot,
        gathered_snapshot: ClusterSnapshot,
        permits: Note,
        drift_owners: Sequence[Provisioner],
    ) -> DisruptionInput:
        """Read what an evaluation needs in addition to its snapshot.

        Args:
            gathered_snapshot: The snapshot before ceilings were applied.
            drift_owners: Owners whose nodes may be outdated.
        """
        changed = self._recently_changed(snapshot)
        ongoing = self._ongoing_changes(snapshot.taken_at, permitted(permits, snapshot.taken_at))
        session.renew_lease_if_due()
        read = DisruptionInput(
            snapshot=snapshot,
            budgets=self._ports.cluster.disruption_budgets(),
            settings=self._settings.within_reason(len(snapshot.bound)),
            # The settings of the simulation, so that a replay of the recorded decision gives the
            # same result.
            packing=dataclasses.replace(self._packing, growth_percent=0, fewer_nodes_permille=0),
            recently_changed=changed,
            ongoing=ongoing,
            images=current_images(
                self._ports, drift_owners, snapshot.nodes, gathered_snapshot.instance_types
            ),
            unsold=self._unsold(snapshot) if drift_owners else frozenset(),
            skipped_spot_pools=skipped_spot_pools(self._ports, snapshot.taken_at),
        )
        session.renew_lease_if_due()
        return read

    def _evaluate(
        self, disruption_input: DisruptionInput, evaluation_budget: EvaluationBudget
    ) -> Evaluation:
        """Evaluate the cluster; skip consolidation if it lately found nothing for this input."""
        name, now = self._ports.cluster.name, disruption_input.snapshot.taken_at
        note = self._ports.ledger.note(name, _FRUITLESS_EVALUATION)
        seen = fingerprint(disruption_input)
        known = note.value.get("seen") == seen and now.isoformat() < str(note.value.get("until"))
        evaluation = evaluate(
            disruption_input, consolidating=not known, may_continue=evaluation_budget.may_continue
        )
        if evaluation.change is None and not known and not evaluation_budget.aborted:
            until = now + _EVALUATE_AGAIN
            value = {"seen": seen, "until": until.isoformat()}
            # If the write fails, a concurrent writer has saved something newer.
            self._ports.ledger.change_note(name, dataclasses.replace(note, value=value), until)
        return evaluation

    def _recently_changed(self, snapshot: ClusterSnapshot) -> frozenset[str]:
        """Return the nodes whose pods have just changed; save the digests of their pods."""
        observe = functools.partial(pod_digests, snapshot)
        return recently_changed(
            snapshot, update_observations(self._ports.ledger, _PODS_SEEN, snapshot, observe)
        )

    def _unsold(self, snapshot: ClusterSnapshot) -> frozenset[str]:
        """Return the nodes whose offering has long been missing in the catalog; save the times."""

        def observe(before: NodeObservations) -> NodeObservations:
            known = {uid: since for uid, (_, since) in before.items()}
            return {uid: ("", since) for uid, since in unsold_since(snapshot, known).items()}

        seen = update_observations(self._ports.ledger, _UNSOLD, snapshot, observe)
        return long_unsold({uid: since for uid, (_, since) in seen.items()}, snapshot.taken_at)

    def _update_hash_stamps(
        self, snapshot: ClusterSnapshot, drift_owners: Sequence[Provisioner]
    ) -> None:
        """Write this version's hash on nodes with an older one, so that it causes no drift."""
        owners = {owner.name: owner for owner in drift_owners}
        stamps = (
            (node, new_stamp(node, owner))
            for node in snapshot.nodes
            if node.is_ours and (owner := owner_among(node, owners)) is not None
        )
        for node, stamp in itertools.islice(((n, s) for n, s in stamps if s), _MOST_STAMPED):
            with contextlib.suppress(ConflictError, NotFoundError):
                change_node(self._ports, node, NodeChange(set_annotations=stamp))

    def _ongoing_changes(self, now: datetime, permits: frozenset[str]) -> OngoingChanges:
        ledger, name = self._ports.ledger, self._ports.cluster.name
        rested = frozenset(
            uid
            for (uid, kind), last in last_heartbeats(ledger, name).items()
            if kind == REPLACED and now - last <= self._settings.window
        )
        running = nodes_being_replaced(ledger, name, now)
        return OngoingChanges(running=running, rested=rested, permitted=permits)

    def _write_decision(
        self, disruption_input: DisruptionInput, change: DisruptionCommand, plan_id: str
    ) -> None:
        """Save the simulated input and its result, so that the decision can be replayed."""
        seen = as_simulated(disruption_input, change.cause)
        snapshot = with_cordoned(with_drained(seen.snapshot), change.cordoned)
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
            without_nodes(snapshot, change.remove),
            plan,
            seen.packing,
            why,
        )

    def _record_warnings(self, snapshot: ClusterSnapshot) -> None:
        """Record Events about effects of budgets and annotations that users easily miss."""
        kube_events = [
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
            kube_events.append(event_on(pod, "InvalidDoNotDisruptAnnotation", text))
        self._recorder.record(kube_events)

    def _record_blocked(self, snapshot: ClusterSnapshot, evaluation: Evaluation) -> None:
        nodes = {node.name: node for node in snapshot.nodes}
        self._recorder.record(
            _event(nodes[name], "DisruptionBlocked", f"it is due to be replaced, but {text}")
            for name, text in sorted(evaluation.skipped.items())
        )

    def _record_event(self, node: Node, reason: str, text: str) -> None:
        self._recorder.record([_event(node, reason, text)])


def _has_budget(node: Node, snapshot: ClusterSnapshot) -> bool:
    return any(owner.budgets for owner in snapshot.provisioners if owner.owns(node))


def _misread(pod: Pod) -> str:
    """Return a do-not-disrupt value that is neither true or false nor a duration, else empty."""
    written = pod.annotations.get(keys.DO_NOT_DISRUPT, "")
    return "" if pod.kept_for or written in ("true", "false") else written


def _change_text(change: DisruptionCommand) -> str:
    new = len(change.plan.nodes)
    first = f"{counted(new, 'new node')} first" if new else "none is launched"
    removed = f"{counted(len(change.remove), 'node')} removed"
    return f"{change.cause.value}: {change.why}; {removed}, {first}"


def _event(node: Node, reason: str, text: str) -> KubernetesEvent:
    return event_on(node, reason, text, severity=Severity.NORMAL)


def with_claims(ports: ClusterPorts, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with the volume constraints of pods on Dovetail's nodes if they moved."""
    ours = {node.name for node in snapshot.nodes if node.is_ours}
    moving = {pod.uid for pod in snapshot.bound if pod.node_name in ours}
    return with_claims_of(snapshot, moving, lambda asking: with_volumes(ports.cluster, asking))

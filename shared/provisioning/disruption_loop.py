"""Evaluates the nodes of a cluster, chooses one change and launches the replacements.

The timer that it starts removes the old nodes.
"""

import contextlib
import functools
import itertools
from collections.abc import Mapping, Sequence
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
from shared.disruption.simulate import (
    simulate,
    with_claims_of,
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
from shared.model.values import replace
from shared.nodes.brakes.ceilings import affordable, with_kubelet_resources
from shared.nodes.events.node_events import MOST_PODS, event_on
from shared.nodes.events.recorded import ONE_HOUR
from shared.nodes.events.recorder import EventRecorder
from shared.nodes.launch.current_images import current_images
from shared.nodes.launch.refusals.offering_facts import skipped_spot_pools
from shared.nodes.leave.replacement import REPLACED, start_replacement
from shared.nodes.node_editor import change_node
from shared.nodes.timers.heartbeats import last_heartbeats, nodes_being_replaced
from shared.nodes.timers.removal_permits import permitted, read_permits, take_permits
from shared.ports import ClusterPorts, KubernetesEvent, NodeChange, Severity
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
# The most nodes of which one evaluation says why they are not consolidated.
_MOST_KEPT: Final = 200


def disrupt_nodes(session: ProvisioningSession, gathered: Gathered, plan_id: str) -> None:
    """Choose one change of nodes and start it: first the timer, then the launch.

    Args:
        gathered: Everything in the cluster (gathered with `read_all`), whether or not pods are
            pending.

    Raises:
        ConflictError: If the lease was lost.
    """
    ports = session.ports
    snapshot = replace(with_claims(ports, gathered.snapshot), ceiling=session.brakes.ceiling)
    if not any(node.is_ours for node in snapshot.nodes):
        session.conditions.outdated(snapshot.provisioners, {})
        return
    _record_warnings(ports, snapshot)
    permits = read_permits(ports)
    drift_owners = [
        owner
        for owner in snapshot.provisioners
        if reports_drift(owner, otherwise=session.disruption.drift)
    ]
    disruption_input = _input(session, snapshot, permits, drift_owners)
    if not session.held_back:
        _update_hash_stamps(ports, snapshot, drift_owners)
    evaluation = _evaluate(session, disruption_input)
    if session.evaluate_next:
        # Another plan was requested meanwhile, which comes first.
        tries = max(_FEWEST_TRIES, disruption_input.settings.max_simulations // 2)
        session.disruption = replace(session.disruption, max_simulations=tries)
        return
    _record_blocked(ports, snapshot, evaluation)
    session.conditions.outdated(snapshot.provisioners, outdated_texts(disruption_input, evaluation))
    if evaluation.change is not None:
        _carry_out(session, gathered, disruption_input, evaluation.change, permits, plan_id)


def _carry_out(
    session: ProvisioningSession,
    gathered: Gathered,
    disruption_input: DisruptionInput,
    change: DisruptionCommand,
    permits: Note,
    plan_id: str,
) -> None:
    """Start a change within the ceilings; in shadow mode only record it."""
    ports, snapshot = session.ports, disruption_input.snapshot
    nodes = {node.name: node for node in gathered.snapshot.nodes}
    remove = [nodes[name] for name in change.remove]
    wanted = with_kubelet_resources(change.plan.nodes)
    kept, over = affordable(gathered.snapshot, wanted, session.brakes.ceiling)
    shadowed = {provisioner.name for provisioner in snapshot.provisioners if provisioner.shadow}
    if over or any(planned_node.provisioner in shadowed for planned_node in kept):
        text = over[0].reason if over else "its replacement would be bought in shadow mode"
        _record(ports, remove[0], "DisruptionBlocked", f"{change.cause.value}: {text}")
        return
    _write_decision(session, disruption_input, change, plan_id)
    if session.held_back:
        text = f"would be removed: {_change_text(change)}"
        _record(ports, remove[0], "ShadowDisruption", text)
        return
    budgeted = [node.uid for node in remove if _has_budget(node, snapshot)]
    if budgeted and not take_permits(ports, permits, budgeted, ports.clock.now()):
        # A timer removes a node at the same time: the next evaluation counts the budgets again.
        return
    start_replacement(
        ports,
        plan_id,
        remove,
        len(kept),
        change.cause.value,
        registration=session.policy.registration_timeout,
    )
    for node in remove:
        _record(ports, node, "Disrupted", _change_text(change))
    if kept:
        session.plan_launcher.launch(gathered, plan_id, kept, replaces=",".join(change.remove))
        session.make_nodes(gathered, session.current_slots(gathered.snapshot, launched=True))
    # Another change may be possible independently of this one.
    ports.outbox.evaluate(ports.cluster.name)
    session.report.nodes_disrupted += len(remove)


def _input(
    session: ProvisioningSession,
    snapshot: ClusterSnapshot,
    permits: Note,
    drift_owners: Sequence[Provisioner],
) -> DisruptionInput:
    """Read what an evaluation needs in addition to its snapshot.

    Args:
        drift_owners: Owners whose nodes may be outdated.
    """
    ports, now = session.ports, snapshot.taken_at
    changed = _recently_changed(ports, snapshot)
    ongoing = _ongoing_changes(session, now, permitted(permits, now))
    return DisruptionInput(
        snapshot=snapshot,
        budgets=ports.cluster.disruption_budgets(),
        settings=session.disruption.within_reason(len(snapshot.bound)),
        # The settings of the simulation, so that a replay of the recorded decision gives the same
        # result.
        packing=replace(session.packing, growth_percent=0, fewer_nodes_permille=0),
        recently_changed=changed,
        ongoing=ongoing,
        images=current_images(ports, drift_owners, snapshot.nodes, snapshot.instance_types),
        unsold=_unsold(ports, snapshot) if drift_owners else frozenset(),
        skipped_spot_pools=skipped_spot_pools(ports, now),
    )


def _evaluate(session: ProvisioningSession, disruption_input: DisruptionInput) -> Evaluation:
    """Evaluate the cluster; skip consolidation if it lately found nothing for this input."""
    may_continue = session.may_evaluate()
    ledger, name = session.ports.ledger, session.ports.cluster.name
    now = disruption_input.snapshot.taken_at
    note = ledger.note(name, _FRUITLESS_EVALUATION)
    seen = fingerprint(disruption_input)
    known = note.value.get("seen") == seen and now.isoformat() < str(note.value.get("until"))
    evaluation = evaluate(disruption_input, consolidating=not known, may_continue=may_continue)
    if evaluation.change is None and not known and not session.evaluate_next:
        until = now + _EVALUATE_AGAIN
        value = {"seen": seen, "until": until.isoformat()}
        # If the write fails, a concurrent writer has saved something newer.
        ledger.change_note(name, replace(note, value=value), until)
    return evaluation


def _recently_changed(ports: ClusterPorts, snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the nodes whose pods have just changed; save the digests of their pods."""
    observe = functools.partial(pod_digests, snapshot)
    return recently_changed(
        snapshot, update_observations(ports.ledger, _PODS_SEEN, snapshot, observe)
    )


def _unsold(ports: ClusterPorts, snapshot: ClusterSnapshot) -> frozenset[str]:
    """Return the nodes whose offering has long been missing in the catalog; save the times."""

    def observe(before: NodeObservations) -> NodeObservations:
        known = {uid: since for uid, (_, since) in before.items()}
        return {uid: ("", since) for uid, since in unsold_since(snapshot, known).items()}

    seen = update_observations(ports.ledger, _UNSOLD, snapshot, observe)
    return long_unsold({uid: since for uid, (_, since) in seen.items()}, snapshot.taken_at)


def _update_hash_stamps(
    ports: ClusterPorts, snapshot: ClusterSnapshot, drift_owners: Sequence[Provisioner]
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
            change_node(ports, node, NodeChange(set_annotations=stamp))


def _ongoing_changes(
    session: ProvisioningSession, now: datetime, permits: frozenset[str]
) -> OngoingChanges:
    ledger, name = session.ports.ledger, session.ports.cluster.name
    rested = frozenset(
        uid
        for (uid, kind), last in last_heartbeats(ledger, name).items()
        if kind == REPLACED and now - last <= session.disruption.window
    )
    running = nodes_being_replaced(ledger, name, now)
    return OngoingChanges(running=running, rested=rested, permitted=permits)


def _write_decision(
    session: ProvisioningSession,
    disruption_input: DisruptionInput,
    change: DisruptionCommand,
    plan_id: str,
) -> None:
    """Save the simulated input and its result, so that the decision can be replayed."""
    seen = as_simulated(disruption_input, change.cause)
    snapshot = with_drained(seen.snapshot)
    plan = simulate(snapshot, change.remove, seen.packing) or change.plan
    why: Mapping[str, Any] = {
        "cause": change.cause.value,
        "method": change.method.value,
        "remove": list(change.remove),
        "why": change.why,
    }
    session.writer.write(
        session.ports.decisions,
        plan_id,
        without_nodes(snapshot, change.remove),
        plan,
        seen.packing,
        why,
    )


def _record_warnings(ports: ClusterPorts, snapshot: ClusterSnapshot) -> None:
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
    EventRecorder(ports).record(kube_events)


def _record_blocked(ports: ClusterPorts, snapshot: ClusterSnapshot, evaluation: Evaluation) -> None:
    nodes = {node.name: node for node in snapshot.nodes}
    blocked = (
        _event(nodes[name], "DisruptionBlocked", f"it is due to be replaced, but {text}")
        for name, text in sorted(evaluation.skipped.items())
    )
    EventRecorder(ports).record(blocked)
    kept = (
        _event(nodes[name], "Unconsolidatable", text)
        for name, text in sorted(evaluation.kept.items())
    )
    EventRecorder(ports).record(kept, ONE_HOUR, _MOST_KEPT)


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


def _record(ports: ClusterPorts, node: Node, reason: str, text: str) -> None:
    EventRecorder(ports).record([_event(node, reason, text)])


def _event(node: Node, reason: str, text: str) -> KubernetesEvent:
    return event_on(node, reason, text, severity=Severity.NORMAL)


def with_claims(ports: ClusterPorts, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with the volume constraints of pods on Dovetail's nodes if they moved."""
    ours = {node.name for node in snapshot.nodes if node.is_ours}
    moving = {pod.uid for pod in snapshot.bound if pod.node_name in ours}
    return with_claims_of(snapshot, moving, lambda asking: with_volumes(ports.cluster, asking))

"""What a look over all nodes chooses to change: one change, most pressing first."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from shared.disruption.allowances import Allowances, allowances
from shared.disruption.candidates import Candidate, find_candidates
from shared.disruption.consolidation import Method, consolidate
from shared.disruption.drift import drift_of
from shared.disruption.evaluation_due import ignores_holds, is_forced, replaced_in
from shared.disruption.option_prices import within_price
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulation import (
    UNDER_WAY,
    by_price,
    simulate,
    with_closed,
    with_drained,
    with_leaving,
)
from shared.model import labels as keys
from shared.model.ec2.instance_types import OfferingKey
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason
from shared.model.plan import Plan
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner, owner_among
from shared.model.scheduled_changes import scheduled_change
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings


class Cause(StrEnum):
    """Why nodes are changed by choice: the removal reason contains the word."""

    MAINTENANCE = "maintenance"  # AWS has scheduled a change of its instance
    REBALANCE = "rebalance"  # EC2 expects to interrupt it
    EXPIRATION = "expiration"
    DRIFT = "drift"
    CONSOLIDATION = "consolidation"


# In this order one node at a time is replaced; consolidation comes last, when nothing else is due.
_ONE_BY_ONE: Final = (Cause.MAINTENANCE, Cause.REBALANCE, Cause.EXPIRATION, Cause.DRIFT)
# Nodes that expire by force are replaced together; more of them would make too large a plan.
_MOST_TOGETHER: Final = 20
# What budgets call them; those that name no reasons limit the others.
_REASONS: Final = {Cause.DRIFT: DisruptionReason.DRIFTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingChanges:
    """How far changes have come that were begun before.

    Attributes:
        running: Uids of nodes that are being replaced.
        rested: Uids of nodes whose change ended within the window, well or not.
        permitted: Uids of nodes that timers are about to remove.
    """

    running: frozenset[str] = frozenset()
    rested: frozenset[str] = frozenset()
    permitted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionCommand:
    """Nodes to remove, and the nodes that must be ready before they are removed.

    Attributes:
        remove: Names, sorted.
        plan: New nodes to launch first, and rooms on others.
        why: For people.
        closed: Names of nodes that were no room for their pods.
    """

    cause: Cause
    method: Method
    remove: tuple[str, ...]
    plan: Plan
    why: str
    closed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The result of an evaluation of the cluster.

    Attributes:
        change: What to do, None when nothing is to be done now.
        reason: Why nothing is done, for people; empty otherwise.
        held: Why nodes that are due were skipped, by name.
    """

    change: DisruptionCommand | None = None
    reason: str = ""
    held: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """What machines boot from.

    Attributes:
        of_instance: AMI by instance id.
        current: The AMI that new machines of the same type and owner boot from, by instance id;
            none where that is not known now.
        waits: Why a machine with another AMI is left alone for now, by instance id.
    """

    of_instance: Mapping[str, str] = field(default_factory=dict, hash=False)
    current: Mapping[str, str] = field(default_factory=dict, hash=False)
    waits: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionInput:
    """The input of an evaluation.

    Attributes:
        restless: Uids of nodes whose pods changed less than consolidateAfter ago.
        images: For drift.
        unsold: Uids of nodes that are what EC2 has not sold for long.
        passed_over: Spot pools that consolidation does not count on: EC2 was offered them lately
            and chose more expensive ones.
    """

    snapshot: ClusterSnapshot
    budgets: tuple[PodDisruptionBudget, ...]
    settings: DisruptionSettings
    packing: PackingSettings
    restless: frozenset[str] = frozenset()
    pace: OngoingChanges = OngoingChanges()
    images: Images = Images()
    unsold: frozenset[str] = frozenset()
    passed_over: frozenset[OfferingKey] = frozenset()


def look(
    disruption_input: DisruptionInput,
    *,
    consolidating: bool = True,
    go_on: Callable[[], bool] = lambda: True,
) -> Look:
    """Return what to change now, if anything.

    The room that the pods of earlier changes need is left to them, from when these are begun. The
    same scene always gives the same answer.

    Args:
        consolidating: False when consolidation found nothing in the very same scene before.
        go_on: Asked before each simulation whether there may be another.
    """
    nodes, pace = disruption_input.snapshot.nodes, disruption_input.pace
    going = {node.uid for node in nodes if node.deletion_at is not None}
    held: dict[str, str] = {}
    for cause in _ONE_BY_ONE:
        change, refused = _one_by_one(as_simulated(disruption_input, cause), cause, go_on)
        held.update(refused)
        if change is not None:
            return Look(change=change, held=held)
    if not consolidating:
        return Look(reason="nothing has changed", held=held)
    disruption_input = as_simulated(disruption_input, Cause.CONSOLIDATION)
    ours = {node.uid for node in nodes if node.is_ours}
    used = len((going & ours) | pace.rested | pace.running)
    outlook = consolidate(
        disruption_input.snapshot,
        disruption_input.budgets,
        disruption_input.settings,
        disruption_input.packing,
        most_nodes=disruption_input.settings.most_nodes(len(ours)) - used,
        allowances=allowances_in(disruption_input),
        resting=pace.running | pace.rested,
        restless=disruption_input.restless,
        go_on=go_on,
    )
    best = outlook.best
    if best is None:
        return Look(reason=outlook.reason, held=held)
    change = DisruptionCommand(
        cause=Cause.CONSOLIDATION,
        method=best.method,
        remove=best.remove,
        plan=best.plan,
        why=f"saves {_dollars(best.saving_micros_per_hour)}",
        closed=best.closed,
    )
    return Look(change=change, held=held)


def allowances_in(disruption_input: DisruptionInput) -> Allowances:
    """Return what the budgets of the owners allow in a scene."""
    snapshot, pace = disruption_input.snapshot, disruption_input.pace
    going = pace.running | pace.permitted
    return allowances(snapshot.provisioners, snapshot.nodes, snapshot.taken_at, going)


def blocked_in(snapshot: ClusterSnapshot) -> dict[Provisioner, list[DisruptionReason]]:
    """Return the owners with nodes whose budgets allow none to be disrupted now, and as what.

    Budgets that are only used up block nothing.
    """
    nodes = [
        dataclasses.replace(node, ready=True, deletion_at=None)
        for node in snapshot.nodes
        if node.is_ours and node.has_joined
    ]
    owners = [owner for owner in snapshot.provisioners if any(map(owner.owns, nodes))]
    left = allowances(owners, nodes, snapshot.taken_at, frozenset()).left
    found = {
        owner: [reason for reason in DisruptionReason if left.get((owner.name, reason)) == 0]
        for owner in owners
    }
    return {owner: reasons for owner, reasons in found.items() if reasons}


def closed(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which replacement nodes take only the pods they were bought for."""
    return with_closed(
        snapshot, {node.name for node in snapshot.nodes if keys.REPLACES in node.annotations}
    )


def as_simulated(disruption_input: DisruptionInput, cause: Cause) -> DisruptionInput:
    """Return the scene as changes of a cause are simulated in it.

    Nodes whose change is under way are as good as being deleted. Nodes that were bought to replace
    others are closed. Consolidation, which is about money, does
    not count on pools that EC2 passes over, and moves no pods to nodes whose pods have just
    changed; whatever must go takes what there is.
    """
    seen = closed(with_leaving(disruption_input.snapshot, disruption_input.pace.running))
    packing = disruption_input.packing
    if cause == Cause.CONSOLIDATION:
        packing = by_price(packing)
        restless = {node.name for node in seen.nodes if node.uid in disruption_input.restless}
        unavailable = seen.unavailable | disruption_input.passed_over
        seen = dataclasses.replace(with_closed(seen, restless), unavailable=unavailable)
    return dataclasses.replace(disruption_input, snapshot=seen, packing=packing)


def _due(
    disruption_input: DisruptionInput, cause: Cause
) -> tuple[dict[str, tuple[datetime, str]], dict[str, str]]:
    """Return the nodes a cause wants replaced: since when and why, or what forbids it, by name."""
    snapshot = disruption_input.snapshot
    owners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
    found: dict[str, tuple[datetime, str]] = {}
    held: dict[str, str] = {}
    for node in snapshot.nodes:
        owner = owner_among(node, owners)
        if not node.is_ours or owner is None or node.deletion_at is not None:
            continue
        since, text = _wanted(disruption_input, cause, node, owner)
        if text and _is_kept(node, owner, cause, snapshot.taken_at):
            held[node.name] = f"its annotation {keys.DO_NOT_DISRUPT} forbids it"
        elif text and cause == Cause.DRIFT and (waits := _waits(disruption_input, node, owner)):
            held[node.name] = waits
        elif text:
            found[node.name] = (since, text)
    return found, held


def _wanted(
    disruption_input: DisruptionInput, cause: Cause, node: Node, owner: Provisioner
) -> tuple[datetime, str]:
    """Return since when and why a cause wants a node replaced, no reason where it does not."""
    now, drift = disruption_input.snapshot.taken_at, disruption_input.settings.drift
    since, text = node.created_at or now, ""
    if cause == Cause.MAINTENANCE:
        change = scheduled_change(node)
        if change is not None and owner.acts_on(Trigger.SCHEDULED_CHANGE):
            since, text = change.starts_at or since, change.text
    elif cause == Cause.REBALANCE:
        if keys.REBALANCE_RECOMMENDED in node.annotations and owner.acts_on(Trigger.REBALANCE):
            text = "EC2 recommends to leave it"
    elif cause == Cause.EXPIRATION:
        left = replaced_in(node, owner, now)
        if left is not None and left <= timedelta(0):
            how = "will soon be" if left > -owner.replaced_ahead else "is"
            since, text = now + left, f"it {how} older than {owner.dialect.expiry_field}"
    elif owner.acts_on(Trigger.DRIFT, otherwise=drift):
        text = drifted(disruption_input, node, owner)
    return since, text


def drifted(disruption_input: DisruptionInput, node: Node, owner: Provisioner) -> str:
    """Return how a node differs from what its owner asks for now, empty when it does not."""
    images = disruption_input.images
    return drift_of(
        node,
        owner,
        images.of_instance.get(node.instance_id, ""),
        images.current.get(node.instance_id, ""),
        unsold=node.uid in disruption_input.unsold,
    )


def _waits(disruption_input: DisruptionInput, node: Node, owner: Provisioner) -> str:
    """Return why a drifted node keeps its image for now, if that is all in which it differs."""
    waits = disruption_input.images.waits.get(node.instance_id, "")
    bare = dataclasses.replace(disruption_input, images=Images())
    return "" if waits and drifted(bare, node, owner) else waits


def _is_kept(node: Node, owner: Provisioner, cause: Cause, now: datetime) -> bool:
    """Return whether do-not-disrupt on a node keeps it from a change.

    It does not delay an expiration. Where a lowered expireAfter alone wants the node replaced, it
    does: in Karpenter such a node has drifted, and lives by the age of its launch.
    """
    expires = not owner.dialect.expires_by_force or is_forced(node, owner, now)
    if cause == Cause.EXPIRATION and expires:
        return False
    return bool(keys.held_by(node.annotations, (keys.DO_NOT_DISRUPT,)))


def _one_by_one(
    disruption_input: DisruptionInput, cause: Cause, go_on: Callable[[], bool]
) -> tuple[DisruptionCommand | None, dict[str, str]]:
    """Choose among the nodes a cause wants: all empty ones, else the one due longest.

    A node whose pods would not fit elsewhere is skipped.
    """
    due, held = _due(disruption_input, cause)
    if not due:
        return None, held
    snapshot, settings = disruption_input.snapshot, disruption_input.settings
    owners = {owner.name: owner for owner in snapshot.provisioners}
    found, refused = find_candidates(
        snapshot,
        disruption_input.budgets,
        settings,
        snapshot.taken_at,
        among=[owner.name for owner in snapshot.provisioners],
        despite_holds=[
            node.uid
            for node in snapshot.nodes
            if node.name in due
            and (owner := owner_among(node, owners)) is not None
            and ignores_holds(node, owner, cause, snapshot.taken_at)
        ],
        resting=disruption_input.pace.running | disruption_input.pace.rested,
    )
    held.update((name, text) for name, text in refused.items() if name in due)
    ready = sorted(
        (candidate for candidate in found if candidate.node.name in due),
        key=lambda candidate: (due[candidate.node.name][0], candidate.node.name),
    )
    left, reason = allowances_in(disruption_input), _REASONS.get(cause)
    allowed = [candidate for candidate in ready if left.within((candidate,), reason)]
    held.update(
        (candidate.node.name, f"the disruption budgets of {candidate.node.provisioner} allow none")
        for candidate in ready
        if candidate not in allowed
    )
    empty = left.within((candidate for candidate in allowed if candidate.is_empty), reason)
    if empty:
        names = sorted(candidate.node.name for candidate in empty)[: settings.most_at_once]
        why = due[names[0]][1]
        change = DisruptionCommand(
            cause=cause, method=Method.EMPTY, remove=tuple(names), plan=Plan(), why=why
        )
        return change, held
    if _still_draining(snapshot, cause) >= settings.at_a_time:
        # Budgets count the nodes that are drained.
        waiting = [entry for entry in allowed if (entry.node.provisioner, reason) not in left.left]
        held.update((entry.node.name, "another node is drained first") for entry in waiting)
        allowed = [entry for entry in allowed if entry not in waiting]
    together = left.within(
        (
            entry
            for entry in allowed
            if cause == Cause.EXPIRATION
            and is_forced(entry.node, owners[entry.node.provisioner], snapshot.taken_at)
        ),
        reason,
    )[:_MOST_TOGETHER]
    tries = [together] if len(together) > 1 else []
    tries += [(entry,) for entry in allowed]
    if tries:
        disruption_input = dataclasses.replace(disruption_input, snapshot=with_drained(snapshot))
    for group in tries[: settings.max_simulations]:
        if not go_on():
            break
        replaced = _replaced(disruption_input, cause, group, due[group[0].node.name][1])
        if isinstance(replaced, DisruptionCommand):
            return replaced, held
        if len(group) == 1:
            held[group[0].node.name] = replaced
    return None, held


def _still_draining(snapshot: ClusterSnapshot, cause: Cause) -> int:
    """Return how many nodes are drained for a cause, or are about to be for any."""
    return sum(
        1
        for node in snapshot.nodes
        if node.deletion_at is not None
        and node.annotations.get(keys.REMOVAL_REASON) in (cause, UNDER_WAY)
    )


def _replaced(
    disruption_input: DisruptionInput, cause: Cause, group: tuple[Candidate, ...], why: str
) -> DisruptionCommand | str:
    """Return how a group is replaced, or why it cannot be now."""
    names = tuple(sorted(candidate.node.name for candidate in group))
    plan = simulate(disruption_input.snapshot, names, disruption_input.packing)
    if plan is None:
        return "its pods would find no place that they may take"
    if cause == Cause.REBALANCE:
        price = sum(candidate.price_micros_per_hour for candidate in group)
        most = price + disruption_input.settings.rebalance_micros_per_hour
        cost = plan.cost_micros_per_hour
        plan = within_price(plan, most, disruption_input.settings, disruption_input.snapshot)
        if plan is None and cost > most:
            return f"its pods would cost {_dollars(cost)} elsewhere, and it costs {_dollars(price)}"
        if plan is None:
            return "too few offerings that cost no more are left for minValues"
    method = Method.REPLACE if plan.nodes else Method.DELETE
    return DisruptionCommand(cause=cause, method=method, remove=names, plan=plan, why=why)


def _dollars(micros_per_hour: int) -> str:
    return f"${micros_per_hour / 1_000_000:.4f}/h"

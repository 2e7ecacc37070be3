"""What an evaluation of the cluster chooses: at most one change of nodes, the most urgent first."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from shared.disruption.allowances import Allowances, allowances
from shared.disruption.candidates import PASSING, Candidate, find_candidates
from shared.disruption.consolidation import DisruptionMethod, consolidate
from shared.disruption.drift import drift_of
from shared.disruption.evaluation_due import replacement_due_in
from shared.disruption.expiration import ignores_blockers, is_forced
from shared.disruption.option_prices import within_price
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulate import (
    UNDER_WAY,
    by_price,
    simulate,
    with_cordoned,
    with_drained,
    with_leaving,
)
from shared.model import labels as keys
from shared.model.dollars_and_counts import hourly
from shared.model.ec2.instance_types import OfferingKey
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.node_budgets import DisruptionReason
from shared.model.plan import Plan
from shared.model.policy import Trigger
from shared.model.provisioner import Provisioner, owner_among
from shared.model.scheduled_changes import scheduled_change
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings

SAVES_TOO_LITTLE: Final = (
    "its pods have no place on other nodes, or moving them to cheaper ones saves too little"
)


class DisruptionCause(StrEnum):
    """Why nodes are disrupted voluntarily: the removal reason contains the word."""

    MAINTENANCE = "maintenance"  # AWS has scheduled a change of its instance
    REBALANCE = "rebalance"  # EC2 expects to interrupt it
    EXPIRATION = "expiration"
    DRIFT = "drift"
    CONSOLIDATION = "consolidation"


# In this order one node at a time is replaced; consolidation comes last, when nothing else is due.
_ONE_BY_ONE: Final = (
    DisruptionCause.MAINTENANCE,
    DisruptionCause.REBALANCE,
    DisruptionCause.EXPIRATION,
    DisruptionCause.DRIFT,
)
# Nodes that expire by force are replaced together; more of them would make too large a plan.
_MOST_TOGETHER: Final = 20
# The reasons by which budgets name causes; budgets without reasons limit the other causes.
_REASONS: Final = {DisruptionCause.DRIFT: DisruptionReason.DRIFTED}


class OngoingChanges(Struct, frozen=True, kw_only=True):
    """Progress of the changes that began earlier.

    Attributes:
        running: Uids of nodes that are being replaced.
        rested: Uids of nodes whose change ended within the window, successfully or not.
        permitted: Uids of nodes that timers are about to remove.
    """

    running: frozenset[str] = frozenset()
    rested: frozenset[str] = frozenset()
    permitted: frozenset[str] = frozenset()


class DisruptionCommand(Struct, frozen=True, kw_only=True):
    """Nodes to remove, and the nodes that must be ready before they are removed.

    Attributes:
        remove: Names, sorted.
        plan: New nodes to launch first, and placements on others.
        why: For people.
    """

    cause: DisruptionCause
    method: DisruptionMethod
    remove: tuple[str, ...]
    plan: Plan
    why: str


class Evaluation(Struct, frozen=True, kw_only=True):
    """The result of an evaluation of the cluster.

    Attributes:
        change: What to do, None when nothing is to be done now.
        reason: Why nothing is done, for people; empty otherwise.
        skipped: Why nodes that are due were skipped, by name.
        kept: Why nodes are not consolidated, by name, where that does not pass by itself.
    """

    change: DisruptionCommand | None = None
    reason: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)


class InstanceImages(Struct, frozen=True, kw_only=True):
    """AMIs that instances boot from.

    Attributes:
        of_instance: AMI by instance id.
        current: The AMI that new instances of the same type and owner boot from, by instance id;
            absent where it is not known now.
        waiting_reasons: Why an instance with another AMI is not replaced for now, by instance id.
    """

    of_instance: Mapping[str, str] = field(default_factory=dict)
    current: Mapping[str, str] = field(default_factory=dict)
    waiting_reasons: Mapping[str, str] = field(default_factory=dict)


class DisruptionInput(Struct, frozen=True, kw_only=True):
    """The input of an evaluation.

    Attributes:
        recently_changed: Uids of nodes whose pods changed less than consolidateAfter ago.
        images: For drift.
        unsold: Uids of nodes whose offering EC2 has not sold for a long time.
        skipped_spot_pools: Spot pools that consolidation does not rely on: EC2 was recently offered
            them and chose more expensive ones.
    """

    snapshot: ClusterSnapshot
    budgets: tuple[PodDisruptionBudget, ...]
    settings: DisruptionSettings
    packing: PackingSettings
    recently_changed: frozenset[str] = frozenset()
    ongoing: OngoingChanges = OngoingChanges()
    images: InstanceImages = InstanceImages()
    unsold: frozenset[str] = frozenset()
    skipped_spot_pools: frozenset[OfferingKey] = frozenset()


def evaluate(
    disruption_input: DisruptionInput,
    *,
    consolidating: bool = True,
    may_continue: Callable[[], bool] = lambda: True,
) -> Evaluation:
    """Return what to change now, if anything.

    Capacity that the pods of earlier changes need is reserved for them from the start of those
    changes. The same input always gives the same result.

    Args:
        consolidating: False when consolidation found nothing for the same input a short while ago.
        may_continue: Called before each simulation; returns whether it may run.
    """
    nodes, ongoing = disruption_input.snapshot.nodes, disruption_input.ongoing
    going = {node.uid for node in nodes if node.deletion_at is not None}
    skipped: dict[str, str] = {}
    for cause in _ONE_BY_ONE:
        change, refused = _one_by_one(as_simulated(disruption_input, cause), cause, may_continue)
        skipped.update(refused)
        if change is not None:
            return Evaluation(change=change, skipped=skipped)
    if not consolidating:
        return Evaluation(reason="nothing has changed", skipped=skipped)
    disruption_input = as_simulated(disruption_input, DisruptionCause.CONSOLIDATION)
    ours = {node.uid for node in nodes if node.is_ours}
    used = len((going & ours) | ongoing.rested | ongoing.running)
    result = consolidate(
        disruption_input.snapshot,
        disruption_input.budgets,
        disruption_input.settings,
        disruption_input.packing,
        most_nodes=disruption_input.settings.most_nodes(len(ours)) - used,
        allowances=allowances_in(disruption_input),
        resting=ongoing.running | ongoing.rested,
        recently_changed=disruption_input.recently_changed,
        may_continue=may_continue,
    )
    best = result.best
    kept = {name: why for name, why in result.skipped if why not in PASSING}
    kept |= dict.fromkeys(result.unchanged, SAVES_TOO_LITTLE)
    if best is None:
        return Evaluation(reason=result.reason, skipped=skipped, kept=kept)
    # EC2 may choose any offering of a new node.
    at_least = "at least " if best.plan.nodes else ""
    change = DisruptionCommand(
        cause=DisruptionCause.CONSOLIDATION,
        method=best.method,
        remove=best.remove,
        plan=best.plan,
        why=f"saves {at_least}{hourly(best.saving_micros_per_hour)}",
    )
    return Evaluation(change=change, skipped=skipped, kept=kept)


def allowances_in(disruption_input: DisruptionInput) -> Allowances:
    """Return what the budgets of the owners allow for an input."""
    snapshot, ongoing = disruption_input.snapshot, disruption_input.ongoing
    going = ongoing.running | ongoing.permitted
    return allowances(snapshot.provisioners, snapshot.nodes, snapshot.taken_at, going)


def blocked_in(snapshot: ClusterSnapshot) -> dict[Provisioner, list[DisruptionReason]]:
    """Return the owners with nodes whose budgets allow no disruption now, with the reasons.

    Budgets that are only used up block nothing.
    """
    nodes = [
        replace(node, ready=True, deletion_at=None)
        for node in snapshot.nodes
        if node.is_ours and node.was_initialized
    ]
    owners = [owner for owner in snapshot.provisioners if any(map(owner.owns, nodes))]
    left = allowances(owners, nodes, snapshot.taken_at, frozenset()).left
    found = {
        owner: [reason for reason in DisruptionReason if left.get((owner.name, reason)) == 0]
        for owner in owners
    }
    return {owner: reasons for owner, reasons in found.items() if reasons}


def with_replacements_cordoned(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot in which replacement nodes take only the pods they were launched for."""
    return with_cordoned(
        snapshot, {node.name for node in snapshot.nodes if keys.REPLACES in node.annotations}
    )


def as_simulated(disruption_input: DisruptionInput, cause: DisruptionCause) -> DisruptionInput:
    """Return the input as changes for a cause are simulated in it.

    A node whose change is under way counts as being deleted. A node launched to replace others is
    cordoned for other pods. Consolidation, which only saves money, does not rely on spot pools that
    EC2 skips and moves no pods to nodes whose pods have just changed; the other causes use every
    node.
    """
    seen = with_replacements_cordoned(
        with_leaving(disruption_input.snapshot, disruption_input.ongoing.running)
    )
    packing = disruption_input.packing
    if cause == DisruptionCause.CONSOLIDATION:
        packing = by_price(packing)
        recently_changed = {
            node.name for node in seen.nodes if node.uid in disruption_input.recently_changed
        }
        unavailable = seen.unavailable | disruption_input.skipped_spot_pools
        seen = replace(with_cordoned(seen, recently_changed), unavailable=unavailable)
    return replace(disruption_input, snapshot=seen, packing=packing)


def _due(
    disruption_input: DisruptionInput, cause: DisruptionCause
) -> tuple[dict[str, tuple[datetime, str]], dict[str, str]]:
    """Return nodes to replace for a cause (since when, why) and nodes to skip (why), by name."""
    snapshot = disruption_input.snapshot
    owners = {provisioner.name: provisioner for provisioner in snapshot.provisioners}
    found: dict[str, tuple[datetime, str]] = {}
    skipped: dict[str, str] = {}
    for node in snapshot.nodes:
        owner = owner_among(node, owners)
        if not node.is_ours or owner is None or node.deletion_at is not None:
            continue
        since, text = _wanted(disruption_input, cause, node, owner)
        if text and _is_kept(node, owner, cause, snapshot.taken_at):
            skipped[node.name] = f"its annotation {keys.DO_NOT_DISRUPT} forbids it"
        elif (
            text
            and cause == DisruptionCause.DRIFT
            and (waits := _waiting_reason(disruption_input, node, owner))
        ):
            skipped[node.name] = waits
        elif text:
            found[node.name] = (since, text)
    return found, skipped


def _wanted(
    disruption_input: DisruptionInput, cause: DisruptionCause, node: Node, owner: Provisioner
) -> tuple[datetime, str]:
    """Return since when and why a cause wants to replace a node; the reason is empty if not."""
    now, drift = disruption_input.snapshot.taken_at, disruption_input.settings.drift
    since, text = node.created_at or now, ""
    if cause == DisruptionCause.MAINTENANCE:
        change = scheduled_change(node)
        if change is not None and owner.acts_on(Trigger.SCHEDULED_CHANGE):
            since, text = change.starts_at or since, change.text
    elif cause == DisruptionCause.REBALANCE:
        if keys.REBALANCE_RECOMMENDED in node.annotations and owner.acts_on(Trigger.REBALANCE):
            text = "EC2 recommends to leave it"
    elif cause == DisruptionCause.EXPIRATION:
        left = replacement_due_in(node, owner, now)
        if left is not None and left <= timedelta(0):
            how = "will soon be" if left > -owner.replacement_lead_time else "is"
            since, text = now + left, f"it {how} older than {owner.dialect.expiry_field}"
    elif owner.acts_on(Trigger.DRIFT, otherwise=drift):
        text = drift_reason(disruption_input, node, owner)
    return since, text


def drift_reason(disruption_input: DisruptionInput, node: Node, owner: Provisioner) -> str:
    """Return how a node differs from what its owner asks for now, empty when it does not."""
    images = disruption_input.images
    return drift_of(
        node,
        owner,
        images.of_instance.get(node.instance_id, ""),
        images.current.get(node.instance_id, ""),
        unsold=node.uid in disruption_input.unsold,
    )


def _waiting_reason(disruption_input: DisruptionInput, node: Node, owner: Provisioner) -> str:
    """Return why a drifted node keeps its image for now, if it differs only in that."""
    waits = disruption_input.images.waiting_reasons.get(node.instance_id, "")
    bare = replace(disruption_input, images=InstanceImages())
    return "" if waits and drift_reason(bare, node, owner) else waits


def _is_kept(node: Node, owner: Provisioner, cause: DisruptionCause, now: datetime) -> bool:
    """Return whether do-not-disrupt on a node prevents its change.

    It does not delay an expiration, unless the node expires only because expireAfter was lowered:
    in Karpenter such a node has drifted, and keeps the expireAfter of its launch.
    """
    expires = not owner.dialect.expires_by_force or is_forced(node, owner, now)
    if cause == DisruptionCause.EXPIRATION and expires:
        return False
    return bool(keys.first_true_annotation(node.annotations, (keys.DO_NOT_DISRUPT,)))


def _one_by_one(
    disruption_input: DisruptionInput, cause: DisruptionCause, may_continue: Callable[[], bool]
) -> tuple[DisruptionCommand | None, dict[str, str]]:
    """Choose among the nodes due for a cause: all empty ones together, else the one due longest.

    A node whose pods would not fit elsewhere is skipped.
    """
    due, skipped = _due(disruption_input, cause)
    if not due:
        return None, skipped
    snapshot, settings = disruption_input.snapshot, disruption_input.settings
    owners = {owner.name: owner for owner in snapshot.provisioners}
    found, refused = find_candidates(
        snapshot,
        disruption_input.budgets,
        snapshot.taken_at,
        among=[owner.name for owner in snapshot.provisioners],
        despite_blockers=[
            node.uid
            for node in snapshot.nodes
            if node.name in due
            and (owner := owner_among(node, owners)) is not None
            and ignores_blockers(node, owner, cause, snapshot.taken_at)
        ],
        resting=disruption_input.ongoing.running | disruption_input.ongoing.rested,
    )
    skipped.update((name, text) for name, text in refused.items() if name in due)
    ready = sorted(
        (candidate for candidate in found if candidate.node.name in due),
        key=lambda candidate: (due[candidate.node.name][0], candidate.node.name),
    )
    left, reason = allowances_in(disruption_input), _REASONS.get(cause)
    allowed = [candidate for candidate in ready if left.within((candidate,), reason)]
    skipped.update(
        (candidate.node.name, f"the disruption budgets of {candidate.node.provisioner} allow none")
        for candidate in ready
        if candidate not in allowed
    )
    empty = left.within((candidate for candidate in allowed if candidate.is_empty), reason)
    if empty:
        names = sorted(candidate.node.name for candidate in empty)[: settings.most_at_once]
        why = due[names[0]][1]
        change = DisruptionCommand(
            cause=cause, method=DisruptionMethod.EMPTY, remove=tuple(names), plan=Plan(), why=why
        )
        return change, skipped
    if _still_draining(snapshot, cause) >= settings.at_a_time:
        # Nodes whose owner has a budget do not wait: budgets count the nodes that are drained.
        waiting = [entry for entry in allowed if (entry.node.provisioner, reason) not in left.left]
        skipped.update((entry.node.name, "another node is drained first") for entry in waiting)
        allowed = [entry for entry in allowed if entry not in waiting]
    together = left.within(
        (
            entry
            for entry in allowed
            if cause == DisruptionCause.EXPIRATION
            and is_forced(entry.node, owners[entry.node.provisioner], snapshot.taken_at)
        ),
        reason,
    )[:_MOST_TOGETHER]
    tries = [together] if len(together) > 1 else []
    tries += [(entry,) for entry in allowed]
    if tries:
        disruption_input = replace(disruption_input, snapshot=with_drained(snapshot))
    for group in tries[: settings.max_simulations]:
        if not may_continue():
            break
        replaced = _replaced(disruption_input, cause, group, due[group[0].node.name][1])
        if isinstance(replaced, DisruptionCommand):
            return replaced, skipped
        if len(group) == 1:
            skipped[group[0].node.name] = replaced
    return None, skipped


def _still_draining(snapshot: ClusterSnapshot, cause: DisruptionCause) -> int:
    """Return how many nodes are drained for a cause, or have a change under way for any."""
    return sum(
        1
        for node in snapshot.nodes
        if node.deletion_at is not None
        and node.annotations.get(keys.REMOVAL_REASON) in (cause, UNDER_WAY)
    )


def _replaced(
    disruption_input: DisruptionInput,
    cause: DisruptionCause,
    group: tuple[Candidate, ...],
    why: str,
) -> DisruptionCommand | str:
    """Return how a group is replaced, or why it cannot be now."""
    names = tuple(sorted(candidate.node.name for candidate in group))
    plan = simulate(disruption_input.snapshot, names, disruption_input.packing)
    if plan is None:
        return "its pods would find no place that they may take"
    if cause == DisruptionCause.REBALANCE:
        price = sum(candidate.price_micros_per_hour for candidate in group)
        most = price + disruption_input.settings.rebalance_micros_per_hour
        cost = plan.cost_micros_per_hour
        plan = within_price(plan, most, disruption_input.settings, disruption_input.snapshot)
        if plan is None and cost > most:
            return f"its pods would cost {hourly(cost)} elsewhere, and it costs {hourly(price)}"
        if plan is None:
            return "too few offerings that cost no more are left for minValues"
    method = DisruptionMethod.REPLACE if plan.nodes else DisruptionMethod.DELETE
    return DisruptionCommand(cause=cause, method=method, remove=names, plan=plan, why=why)

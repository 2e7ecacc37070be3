"""What to do: the edits of pools and workloads that save most, each with its plan."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from msgspec import Struct

from functions.cli.plan.cost_of_rules import RuleKind
from functions.cli.plan.reading.running_cluster import Manifests
from functions.cli.report.edited_manifests import (
    consolidating,
    manifest_yaml,
    patch_without,
    with_requirements,
)
from functions.cli.report.edits import PoolEdit, edits_of, with_edits
from functions.cli.report.repacking import Outcome, Repacking, cheaper_of, on_spot_prices
from functions.cli.report.rules import RuleInPool, RulesCost
from shared.manifests.raw_json import Raw
from shared.model import labels as keys
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS, counted, first_names
from shared.model.ec2.instance_types import CapacityType
from shared.model.policy import PreferencePolicy
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.provisioning.savings.inventory import FilledNode, by_pool, cost
from shared.provisioning.savings.pools import Pool, PoolKind

# More than these nobody reads in one sitting; what is left out saves less than each of them.
_MOST_ACTIONS: Final = 10
# Each edit is a plan of its pool. Cheaper pools than these could save little beside them.
_MOST_POOLS: Final = 8
# Each is consolidated once more.
_MOST_BLOCKED: Final = 2
_LEAST_PERCENT: Final = 1
_NAMED: Final = 3
_PINS: Final = frozenset(
    {
        keys.INSTANCE_TYPE,
        keys.INSTANCE_FAMILY,
        keys.INSTANCE_CATEGORY,
        keys.INSTANCE_GENERATION,
        keys.INSTANCE_SIZE,
        keys.INSTANCE_CPU,
        keys.INSTANCE_MEMORY,
        keys.CAPACITY_TYPE,
        keys.ZONE,
        keys.HOSTNAME,
    }
)
_APPLY: Final = "Apply it with kubectl apply -f FILE."
_ELSEWHERE: Final = {
    PoolKind.MANAGED: "Nothing in the cluster declares it: change {pool} where it is defined.",
    PoolKind.EKSCTL: "Nothing in the cluster declares it: change {pool} where it is defined.",
    PoolKind.AUTO_MODE: "Auto Mode's own NodePools cannot be edited: declare another.",
}
_NOT_READ: Final = "The report could not read {pool}: edit it where it is declared."
_DRAIN: Final = {
    PoolKind.MANAGED: "Drain them one by one; {pool} gets the size {size} where it is defined.",
    PoolKind.EKSCTL: "Drain them one by one; {pool} gets the size {size} where it is defined.",
    PoolKind.NONE: "Drain them one by one, and terminate their instances.",
}
_SPREAD_RISK: Final = {
    keys.HOSTNAME: "More of its pods may share a node, and end with it.",
    keys.ZONE: "More of its pods may be in one zone, and end with it.",
}
_RISKS: Final = {
    RuleKind.AFFINITY: "Its pods may be far from those that they ask for: slower, or dearer.",
    RuleKind.NODES: "It may run on any instance type and in any zone of its pool.",
    RuleKind.PREFERENCES: "Its pods run wherever it is cheapest.",
}
_KEPT_PREFERENCE: Final = (
    "It is taken out, as Karpenter keeps a preference as if it were required, unless its "
    "preference policy is Ignore."
)


class CostAction(Struct, frozen=True, kw_only=True):
    """One thing to do.

    Attributes:
        saving_micros_per_hour: Of this alone; those of several actions must not be added.
        on_spot_prices: Whether spot prices are part of the saving.
        risk: In plain words.
        how: What to do with the manifest, or instead of it.
        manifest: YAML; empty where no object of the cluster is to edit.
    """

    pool: Pool
    title: str
    saving_micros_per_hour: int
    on_spot_prices: bool
    risk: str
    how: str
    manifest: str = ""


class Actions(Struct, frozen=True, kw_only=True):
    """What to do, what saves most first.

    Attributes:
        edited_pools: The number of pools that an action edits.
        together_micros_per_hour: What all pools cost, repacked, with all edits of pools.
        by_themselves: Pools whose autoscaler consolidates already, so that nobody has to.
        by_themselves_micros_per_hour: What consolidating them saves.
    """

    listed: tuple[CostAction, ...] = ()
    edited_pools: int = 0
    together_micros_per_hour: int = 0
    by_themselves: tuple[Pool, ...] = ()
    by_themselves_micros_per_hour: int = 0


class _Edited(Struct, frozen=True, kw_only=True):
    """An action that edits a pool, and the edit."""

    action: CostAction
    edit: PoolEdit
    after: Outcome


def actions_of(  # noqa: PLR0913 -- six of them by keyword
    snapshot: ClusterSnapshot,
    repack: Repacking,
    owners: Mapping[Pool, Provisioner],
    settings: PackingSettings,
    manifests: Manifests,
    *,
    running: Outcome,
    consolidated: Mapping[Pool, Outcome],
    repacked: Mapping[Pool, Outcome],
    unblocked: Callable[[Pool], Outcome],
    rules: RulesCost,
) -> Actions:
    """Return what saves most.

    The saving of an edit is the difference of two plans: the pool launched anew as it is declared
    now, and with this edit alone. What consolidation saves is the difference to what runs.

    Args:
        owners: What each pool may launch.
        unblocked: Returns a pool, consolidated as if nothing blocked it.
    """
    base = sum(found.cost_micros_per_hour for found in repacked.values())
    # A saving of less than 1 % is within what two plans for the same pods may differ by.
    least = max(base * _LEAST_PERCENT // 100, MICROS // HOURS_A_MONTH)
    dearest = sorted(owners, key=lambda pool: (-repacked[pool].cost_micros_per_hour, pool))
    edited: dict[Pool, list[_Edited]] = {}
    for pool in dearest[:_MOST_POOLS]:
        now = repacked[pool]
        # An edit saves no more than the pool costs; nodes without a pool are launched by nothing.
        if now.cost_micros_per_hour < least or pool.kind == PoolKind.NONE:
            continue
        for edit in edits_of(owners[pool], snapshot):
            plan = repack.of_pool(pool, edit.edited(owners[pool]), settings)
            after = cheaper_of(plan.outcome, now)
            saving = now.cost_micros_per_hour - after.cost_micros_per_hour
            if saving >= least and len(after.held) <= len(now.held):
                action = _edit_action(pool, owners[pool], edit, now, after, manifests)
                one = _Edited(action=action, edit=edit, after=after)
                edited.setdefault(pool, []).append(one)
    own = {pool: manifests.declared.get(pool) for pool in owners}
    before = by_pool(running.nodes)
    saved = {
        pool: saving
        for pool, found in consolidated.items()
        if (saving := cost(before[pool]) - found.cost_micros_per_hour) >= least
    }
    by_themselves = tuple(pool for pool in sorted(saved) if _consolidates(pool, own[pool]))
    found = [
        *(
            _consolidation(pool, before[pool], consolidated[pool], own[pool])
            for pool in saved
            if pool not in by_themselves
        ),
        *_unblocked_actions(consolidated, unblocked, least),
        *(one.action for entries in edited.values() for one in entries),
        *_rule_actions(rules, owners, manifests, least),
    ]
    found.sort(key=lambda one: (-one.saving_micros_per_hour, one.pool, one.title))
    listed = tuple(found[:_MOST_ACTIONS])
    kept = {
        pool: some
        for pool, entries in edited.items()
        if (some := [one for one in entries if one.action in listed])
    }
    together = 0
    for pool in owners:
        some = kept.get(pool, [])
        plan = repack.of_pool(pool, with_edits(owners[pool], [one.edit for one in some]), settings)
        all_of_them = reduce(
            cheaper_of, (repacked[pool], *(one.after for one in some)), plan.outcome
        )
        together += all_of_them.cost_micros_per_hour
    return Actions(
        listed=listed,
        edited_pools=len(kept),
        together_micros_per_hour=together,
        by_themselves=by_themselves,
        by_themselves_micros_per_hour=sum(saved[pool] for pool in by_themselves),
    )


def _edit_action(
    pool: Pool,
    owner: Provisioner,
    edit: PoolEdit,
    now: Outcome,
    after: Outcome,
    manifests: Manifests,
) -> CostAction:
    raw = manifests.declared.get(pool)
    manifest = ""
    if raw is not None:
        required = edit.edited(owner).requirements
        manifest = manifest_yaml(with_requirements(raw, owner.requirements, required))
    return CostAction(
        pool=pool,
        title=f"{pool}: {edit.title}",
        saving_micros_per_hour=now.cost_micros_per_hour - after.cost_micros_per_hour,
        on_spot_prices=on_spot_prices(now, after),
        risk=edit.risk,
        how=_ELSEWHERE.get(pool.kind, _NOT_READ).format(pool=pool) if raw is None else _APPLY,
        manifest=manifest,
    )


def _consolidates(pool: Pool, raw: Raw | None) -> bool:
    """Return whether a pool's autoscaler removes and replaces nodes to save cost already."""
    return pool.kind == PoolKind.AUTO_MODE or (raw is not None and consolidating(raw) is None)


def _consolidation(
    pool: Pool, now: Sequence[FilledNode], then: Outcome, raw: Raw | None
) -> CostAction:
    edited = None if raw is None else consolidating(raw)
    how = _DRAIN.get(pool.kind, _NOT_READ).format(pool=pool, size=len(then.nodes))
    before = Outcome(nodes=tuple(now))
    what = changed_nodes_text(before, then)
    return CostAction(
        pool=pool,
        title=f"{pool}: {what}" if edited is None else f"{pool}: let consolidation {what}",
        saving_micros_per_hour=before.cost_micros_per_hour - then.cost_micros_per_hour,
        on_spot_prices=on_spot_prices(before, then),
        risk="Pods on the nodes that are removed are evicted once and start elsewhere.",
        how=how if edited is None else _APPLY,
        manifest="" if edited is None else manifest_yaml(edited),
    )


def changed_nodes_text(now: Outcome, then: Outcome) -> str:
    """Return what is done to nodes, such as replace 12 of 15 nodes by 4 others.

    Nodes of one instance type and capacity type count as the same.
    """
    before, after = (Counter(map(_node_kind, found.nodes)) for found in (now, then))
    gone, new = (before - after).total(), (after - before).total()
    count = counted(len(now.nodes), "node")
    some = f"{gone:,} of {count}"
    if gone == len(now.nodes):
        some = "its only node" if gone == 1 else f"all {count}"
    if not new:
        return f"remove {some}"
    others = "cheaper ones" if new > gone else "others" if new > 1 else "another"
    return f"replace {some} by {f'{new:,} ' if new > 1 else ''}{others}"


def _node_kind(node: FilledNode) -> tuple[str, CapacityType]:
    return node.instance_type, node.capacity_type


def _unblocked_actions(
    consolidated: Mapping[Pool, Outcome], unblocked: Callable[[Pool], Outcome], least: int
) -> Iterator[CostAction]:
    """Yield what removing all that blocks consolidation saves, of the dearest pools."""
    blocked = [pool for pool, found in consolidated.items() if found.blocked]
    blocked.sort(key=lambda pool: (-consolidated[pool].cost_micros_per_hour, pool))
    for pool in blocked[:_MOST_BLOCKED]:
        now = consolidated[pool]
        then = cheaper_of(unblocked(pool), now)
        if (saving := now.cost_micros_per_hour - then.cost_micros_per_hour) >= least:
            whys = first_names(sorted({why for _, why in now.blocked}), _NAMED)
            nodes = counted(len(now.blocked), "node")
            yield CostAction(
                pool=pool,
                title=f"{pool}: free {nodes} that pods or annotations keep from consolidation",
                saving_micros_per_hour=saving,
                on_spot_prices=on_spot_prices(now, then),
                risk="What these rules protect is evicted once, when its owners agree.",
                how=f"In the way are: {whys}.",
            )


def _rule_actions(
    rules: RulesCost, owners: Mapping[Pool, Provisioner], manifests: Manifests, least: int
) -> Iterator[CostAction]:
    """Yield the dearest rule of each workload that may be edited, for all pools of its pods."""
    found: dict[tuple[str, str], list[RuleInPool]] = {}
    for one in rules.rules:
        found.setdefault((one.rule.workload, one.rule.name), []).append(one)
    saved = {
        name: sum(one.cost.cost_micros_per_hour for one in entries)
        for name, entries in found.items()
        if all(map(_may_drop, entries))
    }
    told: set[str] = set()
    for workload, name in sorted(saved, key=lambda entry: (-saved[entry], entry)):
        if (saving := saved[workload, name]) >= least and workload not in told:
            told.add(workload)
            one = found[workload, name][0]
            yield _rule_action(one, saving, owners[one.pool], manifests)


def _may_drop(one: RuleInPool) -> bool:
    """Return whether a rule is a choice: one on nodes may say where the workload can run at all."""
    if one.rule.kind != RuleKind.NODES:
        return True
    asked = one.pod.scheduling
    terms = (asked.node_selector, *asked.required_terms)
    return all(item.key in _PINS for requirements in terms for item in requirements)


def _rule_action(
    one: RuleInPool, saving: int, owner: Provisioner, manifests: Manifests
) -> CostAction:
    rule = one.rule
    between = rule.kind in (RuleKind.SPREAD, RuleKind.AFFINITY, RuleKind.ANTI_AFFINITY)
    softened = between and owner.preference_policy != PreferencePolicy.RESPECT
    spec, patch = manifests.pod_specs.get(one.pod.key), None
    if spec is not None:
        patch = patch_without(one.pod, spec, rule, softened=softened)
    risk = _RISKS.get(rule.kind) or _SPREAD_RISK.get(
        rule.key, f"More of its pods may share a value of {rule.key}, and end with it."
    )
    if between and not softened:
        risk = f"{risk} {_KEPT_PREFERENCE}"
    what = f"make its {rule.name} a preference" if softened else f"drop its {rule.name}"
    asked = owner.requirements.get(keys.CAPACITY_TYPE)
    return CostAction(
        pool=one.pool,
        title=f"{rule.workload}: {what}",
        saving_micros_per_hour=saving,
        on_spot_prices=asked is None or asked.allows(CapacityType.SPOT.value),
        risk=risk,
        how="Change it where the workload is defined."
        if patch is None
        else f"Save it as FILE: {patch.command}",
        manifest="" if patch is None else patch.manifest,
    )

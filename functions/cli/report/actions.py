"""What to do: the edits of pools and workloads that save most, each with its plan."""

from collections.abc import Callable, Iterator, Mapping
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
from functions.cli.report.repacking import Outcome, Repacking
from functions.cli.report.rules import RuleInPool, RulesCost
from shared.model import labels as keys
from shared.model.dollars_and_counts import HOURS_A_MONTH, MICROS, counted, first_names
from shared.model.policy import PreferencePolicy
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.provisioning.savings.inventory import by_pool, cost
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
_PATCH: Final = "Save it as FILE: kubectl patch KIND NAME -n NAMESPACE --patch-file FILE."
_ELSEWHERE: Final = {
    PoolKind.MANAGED: "Nothing in the cluster declares it: change {pool} where it is defined.",
    PoolKind.EKSCTL: "Nothing in the cluster declares it: change {pool} where it is defined.",
    PoolKind.AUTO_MODE: "Auto Mode's own NodePools cannot be edited: declare another.",
}
_NOT_READ: Final = "The report could not read {pool}: edit it where it is declared."
# A size is lowered by hand; elsewhere an autoscaler removes nodes and launches none.
_SIZED: Final = frozenset({PoolKind.MANAGED, PoolKind.EKSCTL})
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
        risk: In plain words.
        how: What to do with the manifest, or instead of it.
        manifest: YAML; empty where no object of the cluster is to edit.
    """

    pool: Pool
    title: str
    saving_micros_per_hour: int
    risk: str
    how: str
    manifest: str = ""


class Actions(Struct, frozen=True, kw_only=True):
    """What to do, what saves most first.

    Attributes:
        edited_pools: The number of pools that an action edits.
        together_micros_per_hour: What all pools cost, repacked, with all edits of pools.
    """

    listed: tuple[CostAction, ...] = ()
    edited_pools: int = 0
    together_micros_per_hour: int = 0


class _Edited(Struct, frozen=True, kw_only=True):
    """An action that edits a pool, and the edit."""

    action: CostAction
    edit: PoolEdit


def actions_of(  # noqa: PLR0913 -- four of them by keyword
    snapshot: ClusterSnapshot,
    repack: Repacking,
    owners: Mapping[Pool, Provisioner],
    settings: PackingSettings,
    manifests: Manifests,
    *,
    running: Outcome,
    consolidated: Outcome,
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
    before = {pool: repack.of_pool(pool, owners[pool], settings) for pool in owners}
    base = sum(plan.cost_micros_per_hour for plan in before.values())
    # A saving of less than 1 % is within what two plans for the same pods may differ by.
    least = max(base * _LEAST_PERCENT // 100, MICROS // HOURS_A_MONTH)
    dearest = sorted(owners, key=lambda pool: (-before[pool].cost_micros_per_hour, pool))
    edited: dict[Pool, list[_Edited]] = {}
    for pool in dearest[:_MOST_POOLS]:
        now = before[pool].cost_micros_per_hour
        # An edit saves no more than the pool costs; nodes without a pool are launched by nothing.
        if now < least or pool.kind == PoolKind.NONE:
            continue
        for edit in edits_of(owners[pool], snapshot):
            after = repack.of_pool(pool, edit.edited(owners[pool]), settings)
            saving = now - after.cost_micros_per_hour
            if saving >= least and len(after.held) <= len(before[pool].held):
                action = _edit_action(pool, owners[pool], edit, saving, manifests)
                edited.setdefault(pool, []).append(_Edited(action=action, edit=edit))
    found = [
        *_consolidations(running, consolidated, unblocked, manifests, least),
        *(one.action for entries in edited.values() for one in entries),
        *_rule_actions(rules, owners, manifests, least),
    ]
    found.sort(key=lambda one: (-one.saving_micros_per_hour, one.pool, one.title))
    listed = tuple(found[:_MOST_ACTIONS])
    kept = {
        pool: edits
        for pool, entries in edited.items()
        if (edits := [one.edit for one in entries if one.action in listed])
    }
    together = sum(
        repack.of_pool(
            pool, with_edits(owners[pool], kept.get(pool, ())), settings
        ).cost_micros_per_hour
        for pool in owners
    )  # fmt: skip
    return Actions(listed=listed, edited_pools=len(kept), together_micros_per_hour=together)


def _edit_action(
    pool: Pool, owner: Provisioner, edit: PoolEdit, saving: int, manifests: Manifests
) -> CostAction:
    raw = manifests.declared.get(pool)
    manifest = ""
    if raw is not None:
        after = edit.edited(owner).requirements
        manifest = manifest_yaml(with_requirements(raw, owner.requirements, after))
    return CostAction(
        pool=pool,
        title=f"{pool}: {edit.title}",
        saving_micros_per_hour=saving,
        risk=edit.risk,
        how=_ELSEWHERE.get(pool.kind, _NOT_READ).format(pool=pool) if raw is None else _APPLY,
        manifest=manifest,
    )


def _consolidations(
    running: Outcome,
    consolidated: Outcome,
    unblocked: Callable[[Pool], Outcome],
    manifests: Manifests,
    least: int,
) -> Iterator[CostAction]:
    now, then = by_pool(running.nodes), by_pool(consolidated.nodes)
    pool_of = {node.name: pool for pool, nodes in then.items() for node in nodes}
    blocked: dict[Pool, dict[str, str]] = {}
    for name, why in consolidated.blocked:
        blocked.setdefault(pool_of[name], {})[name] = why
    ordered = sorted(then, key=lambda pool: (-cost(then[pool]), pool))
    for pool in ordered:
        if (saving := cost(now[pool]) - cost(then[pool])) >= least:
            raw = manifests.declared.get(pool)
            edited = None if raw is None else consolidating(raw)
            goal = f"from {counted(len(now[pool]), 'node')} to {len(then[pool]):,}"
            how = "Nothing to edit: its autoscaler gets there by itself, or drain nodes."
            if pool.kind in _SIZED:
                how = f"Nothing to edit: drain nodes, and lower the size of {pool}."
            yield CostAction(
                pool=pool,
                title=f"{pool}: consolidate {goal}",
                saving_micros_per_hour=saving,
                risk="Pods on the nodes that are removed are evicted once and start elsewhere.",
                how=how if edited is None else _APPLY,
                manifest="" if edited is None else manifest_yaml(edited),
            )
    for pool in [one for one in ordered if one in blocked][:_MOST_BLOCKED]:
        if (saving := cost(then[pool]) - cost(unblocked(pool).nodes)) >= least:
            whys = first_names(sorted(set(blocked[pool].values())), _NAMED)
            nodes = counted(len(blocked[pool]), "node")
            yield CostAction(
                pool=pool,
                title=f"{pool}: let {nodes} be consolidated that may not be now",
                saving_micros_per_hour=saving,
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
    manifest = ""
    if (spec := manifests.pod_specs.get(one.pod.key)) is not None:
        manifest = patch_without(one.pod, spec, rule, softened=softened)
    risk = _RISKS.get(rule.kind) or _SPREAD_RISK.get(
        rule.key, f"More of its pods may share a value of {rule.key}, and end with it."
    )
    if between and not softened:
        risk = f"{risk} {_KEPT_PREFERENCE}"
    what = f"prefer its {rule.name}, not require it" if softened else f"drop its {rule.name}"
    return CostAction(
        pool=one.pool,
        title=f"{rule.workload}: {what}",
        saving_micros_per_hour=saving,
        risk=risk,
        how=_PATCH if manifest else "Change it where the workload is defined.",
        manifest=manifest,
    )

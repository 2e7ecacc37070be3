"""What to do: the edits of pools and workloads that save most, each with its plan."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Final

from msgspec import Struct

from functions.cli.plan.cost_of_rules import RuleKind
from functions.cli.plan.reading.running_cluster import Manifests
from functions.cli.report.consolidating import OF_KARPENTER
from functions.cli.report.edited_manifests import (
    consolidating,
    manifest_yaml,
    patch_without,
    with_requirements,
)
from functions.cli.report.edits import PoolEdit, dropped_text, edits_of, with_edits
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
from shared.provisioning.savings.inventory import FilledNode, by_pool
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
_NOT_KNOWN: Final = "The report could not read {pool}, so it does not know what it allows already."
_DRAIN: Final = {
    PoolKind.MANAGED: "Drain them one by one; {pool} gets the size {size} where it is defined.",
    PoolKind.EKSCTL: "Drain them one by one; {pool} gets the size {size} where it is defined.",
    PoolKind.NONE: "Drain them one by one, and terminate their instances.",
}
# The NodePools that EKS Auto Mode brings allow consolidation, and nobody can edit them.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/set-builtin-node-pools.html (2026-11).
_BUILT_IN: Final = frozenset(
    Pool(PoolKind.AUTO_MODE, name) for name in ("general-purpose", "system")
)
_EVICTED: Final = "Pods on the nodes that are removed are evicted once and start elsewhere."
# Source: https://karpenter.sh/docs/concepts/disruption/#spot-consolidation (2026-12).
_SPOT_GATE: Final = (
    "Set settings.featureGates.spotToSpotConsolidation of Karpenter's chart to true, for all "
    "NodePools: it is taken to be false, its default, as the report does not read it. One node "
    "alone is then replaced where 15 cheaper instance types could serve."
)
_SPOT_RISK: Final = "EC2 may interrupt the cheaper spot instances sooner."
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
    by_autoscaler: Mapping[Pool, Outcome],
    repacked: Mapping[Pool, Outcome],
    unblocked: Callable[[Pool], Outcome],
    rules: RulesCost,
) -> Actions:
    """Return what saves most.

    The saving of an edit is the difference of two plans: the pool launched anew as it is declared
    now, and with this edit alone. What consolidation saves is the difference to what runs.

    Args:
        owners: What each pool may launch; a pool without one stays as it is.
        consolidated: Each pool after all changes of nodes that save.
        by_autoscaler: The same, after the changes alone that its autoscaler makes by default.
        unblocked: Returns a pool after these changes as if nothing blocked them.
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
    before = by_pool(running.nodes)
    pools = [
        _ConsolidatedPool(
            pool=pool,
            raw=manifests.of_pool(pool),
            before=Outcome(nodes=before[pool]),
            by_autoscaler=by_autoscaler[pool],
            every=consolidated[pool],
        )
        for pool in sorted(owners)
    ]
    by_themselves = {
        one.pool: saving
        for one in pools
        if one.allows and (saving := one.saving_of(one.by_autoscaler)) >= least
    }
    found = [
        *(action for one in pools for action in _consolidations(one, least)),
        *_unblocked_actions(pools, unblocked, least),
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
    together = sum(repacked[pool].cost_micros_per_hour for pool in repacked.keys() - owners.keys())
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
        by_themselves=tuple(by_themselves),
        by_themselves_micros_per_hour=sum(by_themselves.values()),
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
    manifest, risk = "", edit.risk
    if raw is not None:
        required = edit.edited(owner).requirements
        if dropped := dropped_text(owner.requirements, required):
            risk += f" It changes what {pool} requires: {dropped}."
        manifest = manifest_yaml(with_requirements(raw, owner.requirements, required))
    return CostAction(
        pool=pool,
        title=f"{pool}: {edit.title}",
        saving_micros_per_hour=now.cost_micros_per_hour - after.cost_micros_per_hour,
        on_spot_prices=on_spot_prices(now, after),
        risk=risk,
        how=_ELSEWHERE.get(pool.kind, _NOT_READ).format(pool=pool) if raw is None else _APPLY,
        manifest=manifest,
    )


class _ConsolidatedPool(Struct, frozen=True, kw_only=True):
    """A pool, and what consolidation makes of it.

    Attributes:
        raw: The object that declares it; None where none was read.
        before: As it runs.
        by_autoscaler: After the changes that its autoscaler makes by default.
        every: After all changes that save.
    """

    pool: Pool
    raw: Raw | None
    before: Outcome
    by_autoscaler: Outcome
    every: Outcome

    @property
    def allows(self) -> bool | None:
        """Whether it lets its autoscaler consolidate already; None where that is not known."""
        if self.raw is not None:
            return consolidating(self.raw) is None
        if self.pool.kind in OF_KARPENTER and self.pool not in _BUILT_IN:
            return None
        return self.pool in _BUILT_IN

    @property
    def undone(self) -> Outcome:
        """The pool before anything is done: what its autoscaler does by itself is done."""
        return self.by_autoscaler if self.allows else self.before

    def saving_of(self, then: Outcome) -> int:
        """Return what an outcome saves of what runs."""
        return self.before.cost_micros_per_hour - then.cost_micros_per_hour

    def action(self, then: Outcome, also: str = "", how: str = "", risk: str = "") -> CostAction:
        """Return what to do that consolidation comes to an outcome.

        Args:
            also: What has to be done beside, after the title.
            how, risk: Of that.
        """
        now = self.undone
        edited = None if self.raw is None else consolidating(self.raw)
        what = changed_nodes_text(now, then)
        if self.pool.kind in OF_KARPENTER:
            what = f"let consolidation {what}"
        if self.allows is None:
            what += ", unless it does so already"
            how = f"{_NOT_KNOWN.format(pool=self.pool)} {how}"
        elif edited is not None:
            how = f"{how} {_APPLY}"
        elif not self.allows:
            drain = _DRAIN[self.pool.kind].format(pool=self.pool, size=len(then.nodes))
            how = f"{how} {drain}"
        return CostAction(
            pool=self.pool,
            title=f"{self.pool}: {what}{also}",
            saving_micros_per_hour=now.cost_micros_per_hour - then.cost_micros_per_hour,
            on_spot_prices=on_spot_prices(now, then),
            risk=f"{_EVICTED} {risk}".strip(),
            how=how.strip(),
            manifest="" if edited is None else manifest_yaml(edited),
        )


def _consolidations(one: _ConsolidatedPool, least: int) -> Iterator[CostAction]:
    """Yield what lets consolidation save, where its autoscaler does not do it by itself."""
    own, every = one.by_autoscaler, one.every
    if not one.allows and one.saving_of(own) >= least:
        yield one.action(own)
    gained = own.cost_micros_per_hour - every.cost_micros_per_hour
    if one.pool.kind == PoolKind.NODE_POOL and gained >= least:
        gate = ", with the feature gate SpotToSpotConsolidation"
        yield one.action(every, gate, _SPOT_GATE, _SPOT_RISK)


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
    pools: Iterable[_ConsolidatedPool], unblocked: Callable[[Pool], Outcome], least: int
) -> Iterator[CostAction]:
    """Yield what removing all that blocks consolidation saves, of the dearest pools."""
    blocked = [one for one in pools if one.every.blocked]
    blocked.sort(key=lambda one: (-one.every.cost_micros_per_hour, one.pool))
    for one in blocked[:_MOST_BLOCKED]:
        now = one.by_autoscaler
        then = cheaper_of(unblocked(one.pool), now)
        if now.cost_micros_per_hour - then.cost_micros_per_hour >= least:
            whys = first_names(sorted({why for _, why in one.every.blocked}), _NAMED)
            nodes = counted(len(one.every.blocked), "node")
            yield one.action(
                then,
                f", after freeing {nodes} that pods or annotations keep",
                f"In the way are: {whys}.",
                "What these rules protect is evicted once, when its owners agree.",
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

"""The cost of a running cluster, and what the same pods would cost otherwise."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from functions.cli.plan.reading.running_cluster import Manifests
from functions.cli.report.actions import Actions, actions_of
from functions.cli.report.consolidating import consolidated, made_by_default, without_blocks
from functions.cli.report.owners import (
    owners_of,
    pools_of,
    with_other_types,
    with_spot,
    within_architectures,
)
from functions.cli.report.repacking import Outcome, Repacking, cheaper_of, joined
from functions.cli.report.rules import RulesCost, rules_cost
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.savings.inventory import FilledNode, by_pool, inventory
from shared.provisioning.savings.pools import Pool, PoolKind

# No pods follow: no node should be larger than these pods need. Only the price counts: fewer nodes
# at about the same price would take a second plan of each pool.
REPACK_SETTINGS: Final = PackingSettings(
    growth_percent=0, small_batch_pods=0, fewer_nodes_permille=0
)
# Plans tried to consolidate, times pods: a few seconds of one processor.
_PODS_TRIED: Final = 100_000
# Of each pool: the most wasteful node, all of its nodes, and once more what these leave.
_FEWEST_TRIES: Final = 6


class Alternative(StrEnum):
    """What an alternative changes in a cluster, as every format of the report names it."""

    CONSOLIDATED = "consolidated"
    REPACKED = "repacked"
    OTHER_TYPES = "repacked, all c, m and r types"
    SPOT = "repacked, spot allowed"


class CostReport(Struct, frozen=True, kw_only=True):
    """What a cluster costs, and what its pods would cost.

    Attributes:
        running: The cluster as it is, with the nodes that are compared.
        excluded: Nodes excluded from all figures: Fargate, Windows, and types without a price.
        alternatives: The outcome of each change.
        variants: The outcome of other settings, each with all types and the same capacity types.
        declared: Pools that an object of the cluster declares; the others are known by their nodes.
        waiting: Number of pending pods that wait for capacity, excluded from all figures.
        rules: What the rules of workloads cost, each pool repacked as it is declared.
        actions: What to do.
        made_up_spot: Whether the spot prices are not those of EC2.
        budgets_known: Whether PodDisruptionBudgets could be read.
        unread: NodePools and Provisioners that have nodes and could not be read.
        fixed: Pools that keep a fixed number of nodes: these stay as they are.
    """

    running: Outcome
    excluded: tuple[FilledNode, ...]
    alternatives: Mapping[Alternative, Outcome]
    variants: tuple[tuple[str, Outcome], ...]
    declared: frozenset[Pool]
    waiting: int
    rules: RulesCost = RulesCost()
    actions: Actions = Actions()
    made_up_spot: bool = False
    budgets_known: bool = True
    unread: tuple[Pool, ...] = ()
    fixed: frozenset[Pool] = frozenset()

    def nodes_of(self, alternative: Alternative) -> tuple[FilledNode, ...]:
        """Return the nodes under an alternative; none where no node can be compared."""
        return self.alternatives[alternative].nodes if self.alternatives else ()

    @property
    def cheapest(self) -> Alternative | None:
        """The change with the same capacity types that costs least; None when none costs less."""
        costs = {
            alternative: found.cost_micros_per_hour
            for alternative, found in self.alternatives.items()
            if alternative != Alternative.SPOT
        }
        best = min(costs, key=lambda alternative: costs[alternative], default=None)
        if best is None or costs[best] >= self.running.cost_micros_per_hour:
            return None
        return best


def cost_report(
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget] | None,
    variants: Sequence[tuple[str, PackingSettings]] = (),
    manifests: Manifests | None = None,
    *,
    made_up_spot: bool = False,
) -> CostReport:
    """Return what a cluster costs and what it could cost. The same input gives the same report.

    Args:
        snapshot: Includes what the volume claims of running pods require of nodes; its Provisioners
            and NodePools say what their pools may launch.
        budgets: All PodDisruptionBudgets with their last status; None if none could be read.
        variants: Settings to compare, each with a name.
        manifests: What the API server has, to be edited in actions.
        made_up_spot: Whether the spot prices are not those of EC2.
    """
    nodes = inventory(snapshot)
    priced = {node.name for node in nodes if node.price_micros_per_hour is not None}
    manifests = manifests or Manifests()
    all_pools = pools_of(node for node in snapshot.nodes if node.name in priced)
    fixed = frozenset(filter(manifests.is_fixed, all_pools))
    pools = {pool: found for pool, found in all_pools.items() if pool not in fixed}
    pool_owners = {
        pool: within_architectures(replace(owner, consolidation=True), pools[pool])
        for pool, owner in owners_of(snapshot, pools).items()
    }
    any_type_owners = {
        pool: with_other_types(owner, snapshot) for pool, owner in pool_owners.items()
    }
    with_spot_owners = {pool: with_spot(owner) for pool, owner in any_type_owners.items()}
    running = Outcome(nodes=tuple(node for node in nodes if node.name in priced))
    repack = Repacking(replace(snapshot, pending=()), pools)
    tries = _PODS_TRIED // max(1, len(snapshot.bound)) // max(1, len(pools))
    tries = max(_FEWEST_TRIES, tries)

    now = {pool: Outcome(nodes=found) for pool, found in by_pool(running.nodes).items()}
    of_fixed = {
        pool: replace(now[pool], lower_bound_micros_per_hour=now[pool].cost_micros_per_hour)
        for pool in fixed
    }

    def consolidated_from(
        start: ClusterSnapshot,
        limits: Sequence[PodDisruptionBudget],
        pool: Pool,
        *,
        as_karpenter: bool = False,
    ) -> Outcome:
        owner = pool_owners[pool]
        plan = repack.of_pool(pool, owner, REPACK_SETTINGS)
        return consolidated(
            start, limits, pools[pool], owner, plan, REPACK_SETTINGS,
            tries=tries, as_karpenter=as_karpenter,
        )  # fmt: skip

    def every_change(
        start: ClusterSnapshot, limits: Sequence[PodDisruptionBudget], pool: Pool
    ) -> tuple[Outcome, Outcome]:
        """Return a pool after all changes that save, and after those of its autoscaler alone."""
        every = cheaper_of(consolidated_from(start, limits, pool), now[pool])
        if made_by_default(now[pool], every):
            return every, every
        own = cheaper_of(consolidated_from(start, limits, pool, as_karpenter=True), now[pool])
        return cheaper_of(every, own), own

    changed = {pool: every_change(snapshot, budgets or (), pool) for pool in pools}
    # Each contains those before it.
    steps: Mapping[Alternative, Callable[[Pool], Outcome]] = {
        Alternative.CONSOLIDATED: lambda pool: changed[pool][0],
        Alternative.REPACKED: lambda pool: repack.bounded(pool, pool_owners[pool], REPACK_SETTINGS),
        Alternative.OTHER_TYPES: lambda pool: repack.bounded(
            pool, any_type_owners[pool], REPACK_SETTINGS
        ),
        Alternative.SPOT: lambda pool: repack.bounded(
            pool, with_spot_owners[pool], REPACK_SETTINGS
        ),
    }
    best = now
    outcomes: dict[Alternative, Mapping[Pool, Outcome]] = {}
    for alternative, step in steps.items():
        best = {
            pool: of_fixed[pool] if pool in fixed else cheaper_of(step(pool), best[pool])
            for pool in all_pools
        }
        outcomes[alternative] = best
    rules = rules_cost(
        [repack.of_pool(pool, pool_owners[pool], REPACK_SETTINGS) for pool in pools],
        lambda without: decide(without, REPACK_SETTINGS),
    )
    actions = actions_of(
        snapshot,
        repack,
        pool_owners,
        REPACK_SETTINGS,
        manifests,
        running=running,
        consolidated=outcomes[Alternative.CONSOLIDATED],
        by_autoscaler={pool: own for pool, (_, own) in changed.items()},
        repacked=outcomes[Alternative.REPACKED],
        unblocked=lambda pool: every_change(without_blocks(snapshot), (), pool)[1],
        rules=rules,
    )
    declared = {Pool(PoolKind(owner.kind), owner.name) for owner in snapshot.provisioners}
    return CostReport(
        running=running,
        excluded=tuple(node for node in nodes if node.name not in priced),
        alternatives={
            alternative: joined(found.values()) for alternative, found in outcomes.items() if found
        },
        variants=tuple(
            (
                name,
                joined(
                    [
                        *of_fixed.values(),
                        *(repack.bounded(pool, any_type_owners[pool], settings) for pool in pools),
                    ]
                ),
            )
            for name, settings in variants
        ),
        declared=frozenset(declared & pools.keys()),
        waiting=sum(pod.is_provisionable for pod in snapshot.pending),
        rules=rules,
        actions=actions,
        made_up_spot=made_up_spot,
        budgets_known=budgets is not None,
        unread=tuple(
            pool
            for pool in all_pools
            if pool.kind in (PoolKind.NODE_POOL, PoolKind.PROVISIONER)
            and manifests.of_pool(pool) is None
        ),
        fixed=fixed,
    )

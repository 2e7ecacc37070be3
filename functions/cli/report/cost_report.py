"""The cost of a running cluster, and what the same pods would cost otherwise."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from functions.cli.report.consolidating import consolidated
from functions.cli.report.owners import owners_of, pools_of, with_other_types, with_spot
from functions.cli.report.repacking import Outcome, repacked
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.provisioning.savings.inventory import FilledNode, inventory
from shared.provisioning.savings.pools import Pool, PoolKind

# No pods follow: no node should be larger than these pods need.
REPACK_SETTINGS: Final = PackingSettings(growth_percent=0, small_batch_pods=0)
# Plans tried to consolidate, times pods: a few seconds of one processor.
_PODS_TRIED: Final = 200_000
_FEWEST_TRIES: Final = 24


class Alternative(StrEnum):
    """What an alternative changes in a cluster."""

    CONSOLIDATED = "consolidated"
    REPACKED = "repacked"
    OTHER_TYPES = "other types"
    SPOT = "spot"


class CostReport(Struct, frozen=True, kw_only=True):
    """What a cluster costs, and what its pods would cost.

    Attributes:
        running: The cluster as it is, with the nodes that are compared.
        excluded: Nodes excluded from all figures: Fargate, Windows, and types without a price.
        alternatives: The outcome of each change.
        variants: The outcome of other settings, each with all types and the same capacity types.
        declared: Pools that an object of the cluster declares; the others are known by their nodes.
        waiting: Number of pending pods that wait for capacity, excluded from all figures.
    """

    running: Outcome
    excluded: tuple[FilledNode, ...]
    alternatives: Mapping[Alternative, Outcome]
    variants: tuple[tuple[str, Outcome], ...]
    declared: frozenset[Pool]
    waiting: int

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


class _Repacking:
    """Repacks a cluster; what was asked before is not planned again."""

    def __init__(self, snapshot: ClusterSnapshot, pools: Mapping[Pool, Sequence[Node]]) -> None:
        self._snapshot = snapshot
        self._pools = pools
        self._known: list[tuple[Mapping[Pool, Provisioner], PackingSettings, Outcome]] = []

    def __call__(self, owners: Mapping[Pool, Provisioner], settings: PackingSettings) -> Outcome:
        for known_owners, known_settings, outcome in self._known:
            if (known_owners, known_settings) == (owners, settings):
                return outcome
        outcome = repacked(self._snapshot, self._pools, owners, settings)
        self._known.append((owners, settings, outcome))
        return outcome


def cost_report(
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    variants: Sequence[tuple[str, PackingSettings]] = (),
) -> CostReport:
    """Return what a cluster costs and what it could cost. The same input gives the same report.

    Args:
        snapshot: Includes what the volume claims of running pods require of nodes; its Provisioners
            and NodePools say what their pools may launch.
        budgets: All PodDisruptionBudgets with their last status.
        variants: Settings to compare, each with a name.
    """
    nodes = inventory(snapshot)
    priced = {node.name for node in nodes if node.price_micros_per_hour is not None}
    pools = pools_of(node for node in snapshot.nodes if node.name in priced)
    pool_owners = {
        pool: replace(owner, consolidation=True)
        for pool, owner in owners_of(snapshot, pools).items()
    }
    any_type_owners = {
        pool: with_other_types(owner, snapshot) for pool, owner in pool_owners.items()
    }
    with_spot_owners = {pool: with_spot(owner) for pool, owner in any_type_owners.items()}
    repack = _Repacking(replace(snapshot, pending=()), pools)
    tries = max(_FEWEST_TRIES, _PODS_TRIED // max(1, len(snapshot.bound)))
    alternatives = {
        Alternative.CONSOLIDATED: consolidated(
            snapshot, pools, pool_owners, budgets, REPACK_SETTINGS, tries=tries
        ),
        Alternative.REPACKED: repack(pool_owners, REPACK_SETTINGS),
        Alternative.OTHER_TYPES: repack(any_type_owners, REPACK_SETTINGS),
        Alternative.SPOT: repack(with_spot_owners, REPACK_SETTINGS),
    }
    declared = {Pool(PoolKind(owner.kind), owner.name) for owner in snapshot.provisioners}
    return CostReport(
        running=Outcome(nodes=tuple(node for node in nodes if node.name in priced)),
        excluded=tuple(node for node in nodes if node.name not in priced),
        alternatives=alternatives if pools else {},
        variants=tuple((name, repack(any_type_owners, settings)) for name, settings in variants),
        declared=frozenset(declared & pools.keys()),
        waiting=sum(pod.is_provisionable for pod in snapshot.pending),
    )

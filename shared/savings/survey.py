"""A survey of a running cluster: what it costs, and what the same pods would cost otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.savings.consolidating import consolidated
from shared.savings.inventory import FilledNode, inventory
from shared.savings.owners import owners_of, pools_of, with_other_types, with_spot
from shared.savings.pools import Pool, PoolKind
from shared.savings.repacking import Outcome, repacked

# Nothing comes after these pods: no node is to be larger than they need.
ALL_AT_ONCE: Final = PackingSettings(growth_percent=0, small_batch_pods=0)
# Plans tried to consolidate, times pods: about a minute of one processor.
_PODS_TRIED: Final = 600_000
_FEWEST_TRIES: Final = 24


class Way(StrEnum):
    """What is changed about a cluster."""

    CONSOLIDATED = "consolidated"
    REPACKED = "repacked"
    OTHER_TYPES = "other types"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a cluster costs, and what its pods would cost.

    Attributes:
        running: As it is, with the nodes that are compared.
        apart: Nodes that no figure has: of Fargate, of Windows, and of types without a price.
        ways: What each change comes to.
        variants: What other settings come to, each with all types and the same capacity types.
        declared: Pools that an object of the cluster declares; the others are known by their nodes.
        waiting: Pods without a node that wait for capacity; no figure has them.
    """

    running: Outcome
    apart: tuple[FilledNode, ...]
    ways: Mapping[Way, Outcome]
    variants: tuple[tuple[str, Outcome], ...]
    declared: frozenset[Pool]
    waiting: int

    @property
    def cheapest(self) -> Way | None:
        """The change with the same capacity types that costs least; None when none costs less."""
        costs = {
            way: found.cost_micros_per_hour for way, found in self.ways.items() if way != Way.SPOT
        }
        best = min(costs, key=lambda way: costs[way], default=None)
        if best is None or costs[best] >= self.running.cost_micros_per_hour:
            return None
        return best


def survey(
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    variants: Sequence[tuple[str, PackingSettings]] = (),
) -> Survey:
    """Return what a cluster costs and what it could cost. The same input gives the same survey.

    Args:
        snapshot: With what the claims of running pods ask of nodes; its Provisioners and NodePools
            say what their pools may launch.
        budgets: All PodDisruptionBudgets, as last counted.
        variants: Settings to compare, each with a name.
    """
    every = inventory(snapshot)
    priced = {node.name for node in every if node.price_micros_per_hour is not None}
    pools = pools_of(node for node in snapshot.nodes if node.name in priced)
    own = owners_of(snapshot, pools)
    other = {pool: with_other_types(owner, snapshot) for pool, owner in own.items()}
    spot = {pool: with_spot(owner) for pool, owner in other.items()}
    anew = partial(repacked, replace(snapshot, pending=()), pools)
    tries = max(_FEWEST_TRIES, _PODS_TRIED // max(1, len(snapshot.bound)))
    ways = {
        Way.CONSOLIDATED: consolidated(snapshot, pools, own, budgets, ALL_AT_ONCE, tries=tries),
        Way.REPACKED: anew(own, ALL_AT_ONCE),
        Way.OTHER_TYPES: anew(other, ALL_AT_ONCE),
        Way.SPOT: anew(spot, ALL_AT_ONCE),
    }
    declared = {Pool(PoolKind(owner.kind), owner.name) for owner in snapshot.provisioners}
    return Survey(
        running=Outcome(nodes=tuple(node for node in every if node.name in priced)),
        apart=tuple(node for node in every if node.name not in priced),
        ways=ways if pools else {},
        variants=tuple((name, anew(other, settings)) for name, settings in variants),
        declared=frozenset(declared & pools.keys()),
        waiting=sum(pod.is_provisionable for pod in snapshot.pending),
    )

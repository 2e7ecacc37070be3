"""What the cluster would cost after all consolidation moves that are allowed today."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from functions.cli.report.owners import site_of
from functions.cli.report.repacking import Outcome
from shared.disruption.consolidation import ConsolidationCommand, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.rules.daemon_overhead import runs_on
from shared.provisioning.savings.inventory import CatalogPrices, cost, filled_node, inventory
from shared.provisioning.savings.pools import Pool, capacity_type_of

# Finalizers of nodes that may change while their pool is consolidated.
_OURS: Final = (keys.TERMINATION_FINALIZER,)


def consolidated(
    snapshot: ClusterSnapshot,
    pools: Mapping[Pool, Sequence[Node]],
    owners: Mapping[Pool, Provisioner],
    budgets: Sequence[PodDisruptionBudget],
    settings: PackingSettings,
    *,
    tries: int,
) -> Outcome:
    """Return the cluster after all changes of nodes that consolidation would make.

    Pools are consolidated one after the other, the most expensive first. A pool's nodes are removed
    or replaced by nodes of the same pool, and their pods stay in it: none moves from on-demand to
    spot. Annotations and PodDisruptionBudgets that block a node today block it here; the age of a
    node does not count.

    Args:
        pools: The nodes that may change, by pool.
        owners: What each of these pools may launch.
        tries: Number of plans that may be tried in all.
    """
    simulated = _as_launched_by_dovetail(snapshot, pools, owners)
    of_node = {node.name: pool for pool, nodes in pools.items() for node in nodes}
    changes = 0
    for pool in sorted(pools, key=lambda entry: -_price(snapshot, pools[entry])):
        simulated = replace(
            simulated,
            nodes=tuple(
                replace(node, unschedulable=False, finalizers=_OURS)
                if of_node.get(node.name) == pool
                else replace(node, unschedulable=True, finalizers=())
                for node in simulated.nodes
            ),
            provisioners=(owners[pool],),
            sites=(site_of(pool, owners[pool], pools[pool], snapshot),),
        )
        while tries > 0:
            rules = DisruptionSettings(
                minimum_age=timedelta(0),
                max_simulations=tries,
                # What is reached by many changes is reached by one, at a fraction of the plans.
                most_at_once=len(simulated.nodes),
            )
            result = consolidate(
                simulated, budgets, rules.within_reason(len(simulated.bound)), settings,
                most_nodes=len(simulated.nodes),
            )  # fmt: skip
            tries -= max(1, result.simulations)
            if result.best is None:
                break
            changes += 1
            launched = {
                f"new-{changes}-{number}": planned
                for number, planned in enumerate(result.best.plan.nodes, 1)
            }
            of_node |= dict.fromkeys(launched, pool)
            simulated = _after(simulated, result.best, launched)
    return Outcome(
        nodes=tuple(
            replace(node, pool=of_node[node.name])
            for node in inventory(simulated)
            if node.name in of_node
        ),
        changes=changes,
    )


def _as_launched_by_dovetail(
    snapshot: ClusterSnapshot,
    pools: Mapping[Pool, Sequence[Node]],
    owners: Mapping[Pool, Provisioner],
) -> ClusterSnapshot:
    """Return the snapshot with the nodes of the pools as if Dovetail had launched them."""
    of_node = {node.name: pool for pool, nodes in pools.items() for node in nodes}
    return replace(
        snapshot,
        pending=(),
        nodes=tuple(
            _adopted(node, owners[of_node[node.name]]) if node.name in of_node else node
            for node in snapshot.nodes
        ),
    )


def _adopted(node: Node, owner: Provisioner) -> Node:
    return replace(
        node,
        labels={
            **{k: v for k, v in node.labels.items() if k not in keys.OWNER_LABELS},
            owner.owner_label: owner.name,
            keys.CAPACITY_TYPE: capacity_type_of(node).value,
            keys.INITIALIZED: "true",
        },
        annotations={keys.SLOT: "", **node.annotations},
    )


def _after(
    snapshot: ClusterSnapshot, change: ConsolidationCommand, launched: Mapping[str, PlannedNode]
) -> ClusterSnapshot:
    """Return the snapshot after a change: pods moved, nodes removed and launched."""
    owner = snapshot.provisioners[0]
    places = {ref.uid: name for name, planned in launched.items() for ref in planned.pods}
    places |= {
        ref.uid: placement.node for placement in change.plan.placements for ref in placement.pods
    }
    gone = frozenset(change.remove)
    staying = [node for node in snapshot.nodes if node.name not in gone]
    made = [_launched_node(name, planned, owner, snapshot) for name, planned in launched.items()]
    moved = [
        replace(pod, node_name=places.get(pod.uid, pod.node_name))
        for pod in snapshot.bound
        if pod.node_name not in gone or pod.uid in places
    ]
    daemons = [pod for node in made for pod in _daemons(node, snapshot.daemonsets)]
    return replace(
        snapshot,
        nodes=tuple(sorted((*staying, *made), key=lambda node: node.name)),
        bound=tuple(sorted((*moved, *daemons), key=lambda pod: (pod.key, pod.uid))),
    )


def _launched_node(
    name: str, planned: PlannedNode, owner: Provisioner, snapshot: ClusterSnapshot
) -> Node:
    """Return a planned node as its cheapest option."""
    option = planned.options[0]
    key = option.offering
    of_type = next(
        found.labels for found in snapshot.instance_types if found.name == key.instance_type
    )
    return Node(
        name=name,
        uid=name,
        labels={
            **of_type,
            **planned.labels,
            keys.ZONE: key.zone,
            keys.CAPACITY_TYPE: key.capacity_type.value,
            keys.HOSTNAME: name,
            keys.INITIALIZED: "true",
        },
        annotations={keys.SLOT: ""},
        taints=owner.taints,
        finalizers=_OURS,
        capacity=option.capacity,
        allocatable=option.allocatable,
        ready=True,
        created_at=snapshot.taken_at,
    )


def _daemons(node: Node, daemonsets: Iterable[DaemonSet]) -> list[Pod]:
    """Return the pods that DaemonSets will have on a new node."""
    return [
        Pod(
            namespace=daemon_set.namespace,
            name=f"{daemon_set.name}-{node.name}",
            uid=f"{daemon_set.namespace}/{daemon_set.name}/{node.name}",
            labels=daemon_set.labels,
            scheduling=daemon_set.scheduling,
            node_name=node.name,
            phase="Running",
            owner=ControllerRef(kind="DaemonSet", name=daemon_set.name, uid=""),
        )
        for daemon_set in daemonsets
        if not daemon_set.scheduling.resource_claims
        and runs_on(daemon_set, node.labels, node.taints)
    ]


def _price(snapshot: ClusterSnapshot, nodes: Sequence[Node]) -> int:
    prices = CatalogPrices(snapshot.instance_types)
    return cost(filled_node(node, (), prices) for node in nodes)

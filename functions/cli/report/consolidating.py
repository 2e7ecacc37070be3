"""What the cluster would cost after all consolidation moves that are allowed today."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from functions.cli.report.carrying_out import OURS, carry_out, owned_labels
from functions.cli.report.owners import site_of
from functions.cli.report.repacking import Outcome
from shared.disruption.consolidation import ConsolidationCommand, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
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
from shared.provisioning.savings.pools import Pool


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
        tries: Number of plans that may be tried in all; each pool has an equal share.
    """
    simulated = as_launched_by_dovetail(snapshot, pools, owners)
    of_node = {node.name: pool for pool, nodes in pools.items() for node in nodes}
    changes = 0
    blocked: dict[str, str] = {}
    share = max(1, tries // max(1, len(pools)))
    for pool in sorted(pools, key=lambda entry: -_price(snapshot, pools[entry])):
        simulated = replace(
            simulated,
            nodes=tuple(
                replace(node, unschedulable=False, finalizers=OURS)
                if of_node.get(node.name) == pool
                else replace(node, unschedulable=True, finalizers=())
                for node in simulated.nodes
            ),
            provisioners=(owners[pool],),
            sites=(site_of(pool, owners[pool], pools[pool], snapshot),),
        )
        left = share
        while left > 0:
            rules = DisruptionSettings(
                minimum_age=timedelta(0),
                # Groups are tried from the largest down: half is left for what they leave behind.
                max_simulations=max(1, left // 2),
                # What is reached by many changes is reached by one, at a fraction of the plans.
                most_at_once=len(simulated.nodes),
            )
            result = consolidate(
                simulated, budgets, rules.within_reason(len(simulated.bound)), settings,
                most_nodes=len(simulated.nodes),
            )  # fmt: skip
            left -= max(1, result.simulations)
            if result.best is None:
                blocked |= {n: why for n, why in result.skipped if of_node.get(n) == pool}
                break
            changes += 1
            names = [f"new-{changes}-{number + 1}" for number in range(len(result.best.plan.nodes))]
            of_node |= dict.fromkeys(names, pool)
            simulated = _after(simulated, result.best, names)
    return Outcome(
        nodes=tuple(
            replace(node, pool=of_node[node.name])
            for node in inventory(simulated)
            if node.name in of_node
        ),
        blocked=tuple(sorted(blocked.items())),
        changes=changes,
    )


def without_blocks(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot without annotations that keep pods and nodes from being disrupted."""
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, annotations=_without(node.annotations, keys.NODE_BLOCKING_ANNOTATIONS))
            for node in snapshot.nodes
        ),
        bound=tuple(
            replace(pod, annotations=_without(pod.annotations, keys.POD_BLOCKING_ANNOTATIONS))
            for pod in snapshot.bound
        ),
    )


def _without(annotations: Mapping[str, str], some: Collection[str]) -> Mapping[str, str]:
    return {key: value for key, value in annotations.items() if key not in some}


def as_launched_by_dovetail(
    snapshot: ClusterSnapshot,
    pools: Mapping[Pool, Sequence[Node]],
    owners: Mapping[Pool, Provisioner],
) -> ClusterSnapshot:
    """Return the snapshot with the nodes of the pools as if Dovetail had launched them.

    They accept pods, and no pod waits.
    """
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
        labels=owned_labels(node, owner),
        annotations={keys.SLOT: "", **node.annotations},
        finalizers=OURS,
        unschedulable=False,
    )


def _after(
    snapshot: ClusterSnapshot, change: ConsolidationCommand, names: Sequence[str]
) -> ClusterSnapshot:
    """Return the snapshot after a change: pods moved, nodes removed and launched.

    Args:
        names: Of the nodes that are launched.
    """
    result = carry_out(
        change.plan, names, snapshot.provisioners, snapshot.instance_types, snapshot.taken_at
    )
    gone = frozenset(change.remove)
    staying = [node for node in snapshot.nodes if node.name not in gone]
    moved = [
        replace(pod, node_name=result.places.get(pod.uid, pod.node_name))
        for pod in snapshot.bound
        if pod.node_name not in gone or pod.uid in result.places
    ]
    daemons = [pod for node in result.launched for pod in _daemons(node, snapshot.daemonsets)]
    return replace(
        snapshot,
        nodes=tuple(sorted((*staying, *result.launched), key=lambda node: node.name)),
        bound=tuple(sorted((*moved, *daemons), key=lambda pod: (pod.key, pod.uid))),
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

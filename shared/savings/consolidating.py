"""Consolidation to its end: what moves that are allowed today would save."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared.disruption.consolidation import Consolidation, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.launches import PlannedNode
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Owner, Pod
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.packing.problem import PackingSettings
from shared.savings.inventory import Prices, cost, filled, inventory
from shared.savings.owners import site_of
from shared.savings.pools import Pool, capacity_type_of
from shared.savings.repacking import Outcome
from shared.scheduling.daemon_overhead import runs_on

# Of nodes that may change in the turn of their pool.
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

    One pool after the other, the most expensive first: its nodes are removed or replaced by nodes
    of the same pool, and their pods stay in it: none moves from on-demand to spot. Annotations and
    PodDisruptionBudgets that hold a node today hold it here; how old a node is does not count.

    Args:
        pools: The nodes that may change, by pool.
        owners: What each of these pools may launch.
        tries: Plans that may be tried in all.
    """
    scene = _as_dovetails(snapshot, pools, owners)
    of_node = {node.name: pool for pool, nodes in pools.items() for node in nodes}
    changes = 0
    for pool in sorted(pools, key=lambda entry: -_price(snapshot, pools[entry])):
        scene = replace(
            scene,
            nodes=tuple(
                replace(node, unschedulable=False, finalizers=_OURS)
                if of_node.get(node.name) == pool
                else replace(node, unschedulable=True, finalizers=())
                for node in scene.nodes
            ),
            provisioners=(owners[pool],),
            sites=(site_of(pool, owners[pool], pools[pool], snapshot),),
        )
        while tries > 0:
            rules = DisruptionSettings(minimum_age=timedelta(0), max_simulations=tries)
            outlook = consolidate(
                scene, budgets, rules.within_reason(len(scene.bound)), settings,
                most_nodes=len(scene.nodes),
            )  # fmt: skip
            tries -= max(1, outlook.simulations)
            if outlook.best is None:
                break
            changes += 1
            launched = {
                f"new-{changes}-{number}": planned
                for number, planned in enumerate(outlook.best.plan.nodes, 1)
            }
            of_node |= dict.fromkeys(launched, pool)
            scene = _after(scene, outlook.best, launched)
    return Outcome(
        nodes=tuple(
            replace(node, pool=of_node[node.name])
            for node in inventory(scene)
            if node.name in of_node
        ),
        changes=changes,
    )


def _as_dovetails(
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
    scene: ClusterSnapshot, change: Consolidation, launched: Mapping[str, PlannedNode]
) -> ClusterSnapshot:
    """Return the snapshot after a change: pods moved, nodes removed and launched."""
    owner = scene.provisioners[0]
    places = {ref.uid: name for name, planned in launched.items() for ref in planned.pods}
    places |= {
        ref.uid: placement.node for placement in change.plan.placements for ref in placement.pods
    }
    gone = frozenset(change.remove)
    staying = [node for node in scene.nodes if node.name not in gone]
    made = [_made(name, planned, owner, scene) for name, planned in launched.items()]
    moved = [
        replace(pod, node_name=places.get(pod.uid, pod.node_name))
        for pod in scene.bound
        if pod.node_name not in gone or pod.uid in places
    ]
    daemons = [pod for node in made for pod in _daemons(node, scene.daemonsets)]
    return replace(
        scene,
        nodes=tuple(sorted((*staying, *made), key=lambda node: node.name)),
        bound=tuple(sorted((*moved, *daemons), key=lambda pod: (pod.key, pod.uid))),
    )


def _made(name: str, planned: PlannedNode, owner: Provisioner, scene: ClusterSnapshot) -> Node:
    """Return a planned node as its cheapest option."""
    option = planned.options[0]
    key = option.offering
    of_type = next(
        found.labels for found in scene.instance_types if found.name == key.instance_type
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
        created_at=scene.taken_at,
    )


def _daemons(node: Node, daemonsets: Iterable[DaemonSet]) -> list[Pod]:
    """Return the pods that DaemonSets will have on a node that is made."""
    return [
        Pod(
            namespace=daemon_set.namespace,
            name=f"{daemon_set.name}-{node.name}",
            uid=f"{daemon_set.namespace}/{daemon_set.name}/{node.name}",
            labels=daemon_set.labels,
            scheduling=daemon_set.scheduling,
            node_name=node.name,
            phase="Running",
            owner=Owner(kind="DaemonSet", name=daemon_set.name, uid=""),
        )
        for daemon_set in daemonsets
        if not daemon_set.scheduling.resource_claims
        and runs_on(daemon_set, node.labels, node.taints)
    ]


def _price(snapshot: ClusterSnapshot, nodes: Sequence[Node]) -> int:
    prices = Prices(snapshot.instance_types)
    return cost(filled(node, (), prices) for node in nodes)

"""What a pool would cost after all consolidation moves that are allowed today."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from functions.cli.report.carrying_out import OURS, carry_out, owned_labels
from functions.cli.report.owners import site_of
from functions.cli.report.repacking import Outcome, PoolPlan
from shared.disruption.candidates import find_candidates
from shared.disruption.consolidation import consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod
from shared.model.plan import Plan
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.rules.daemon_overhead import runs_on
from shared.provisioning.savings.inventory import inventory
from shared.provisioning.savings.pools import Pool

# The plan for fewer pods takes little time: other changes are then tried beside that of all nodes.
_MANY_PODS: Final = 500


def consolidated(  # noqa: PLR0913 -- one of them by keyword
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    nodes: Sequence[Node],
    owner: Provisioner,
    repacked: PoolPlan,
    settings: PackingSettings,
    *,
    tries: int,
) -> Outcome:
    """Return a pool after all changes of nodes that consolidation would make.

    Its nodes are removed or replaced by nodes of the same pool, and their pods stay in it; the
    pods of other pools stay where they are. Annotations and PodDisruptionBudgets that block a node
    today block it here; the age of a node does not count.

    Args:
        nodes: Those of the pool.
        owner: What the pool may launch.
        repacked: The plan in which all nodes of the pool are replaced at once: the first change
            where that is allowed and saves enough.
        tries: Number of plans that may be tried.
    """
    simulated = _alone(snapshot, nodes, owner, repacked.pool)
    rules = DisruptionSettings(
        minimum_age=timedelta(0),
        # What is reached by many changes is reached by one, at a fraction of the plans.
        most_at_once=len(snapshot.nodes),
    ).within_reason(len(snapshot.bound))
    blocked: dict[str, str] = {}
    changes = 0
    if _may_replace_all(simulated, budgets, rules, owner, repacked, len(nodes)):
        changes = 1
        gone = [node.name for node in nodes]
        simulated = _after(simulated, gone, repacked.plan, _names(changes, repacked.plan))
        tries -= tries // 2
    while tries > 0:
        # Groups are tried from the largest down: half is left for what they leave behind.
        result = consolidate(
            simulated, budgets, replace(rules, max_simulations=max(1, tries // 2)), settings,
            most_nodes=len(simulated.nodes),
        )  # fmt: skip
        tries -= max(1, result.simulations)
        if result.best is None:
            blocked = dict(result.skipped)
            break
        changes += 1
        plan = result.best.plan
        simulated = _after(simulated, result.best.remove, plan, _names(changes, plan))
    ours = {node.name for node in simulated.nodes if node.is_ours}
    return Outcome(
        nodes=tuple(
            replace(node, pool=repacked.pool) for node in inventory(simulated) if node.name in ours
        ),
        blocked=tuple(sorted(blocked.items())),
    )


def _names(change: int, plan: Plan) -> list[str]:
    """Return names for the nodes of a plan."""
    return [f"new-{change}-{number}" for number in range(1, len(plan.nodes) + 1)]


def _may_replace_all(
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    rules: DisruptionSettings,
    owner: Provisioner,
    repacked: PoolPlan,
    nodes: int,
) -> bool:
    """Return whether consolidation would replace all nodes of a pool by those of its repacking."""
    found, _ = find_candidates(snapshot, budgets, rules, snapshot.taken_at)
    if sum(len(candidate.pods) for candidate in found) < _MANY_PODS:
        return False
    # Limits count a node and its replacement, which run beside each other for a while.
    if len(found) < nodes or repacked.held or owner.limits is not None:
        return False
    price = sum(candidate.price_micros_per_hour for candidate in found)
    shown = {candidate.node.labels.get(keys.CAPACITY_TYPE) for candidate in found}
    fewer = len(repacked.plan.nodes) < nodes
    saved = price - repacked.plan.cost_micros_per_hour
    return saved >= rules.required_saving(price) and (fewer or CapacityType.SPOT not in shown)


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


def _alone(
    snapshot: ClusterSnapshot, nodes: Sequence[Node], owner: Provisioner, pool: Pool
) -> ClusterSnapshot:
    """Return the snapshot in which a pool's nodes alone may change and accept pods."""
    adopted = as_launched_by_dovetail(snapshot, {pool: nodes}, {pool: owner})
    names = {node.name for node in nodes}
    return replace(
        adopted,
        nodes=tuple(
            node if node.name in names else replace(node, unschedulable=True, finalizers=())
            for node in adopted.nodes
        ),
        provisioners=(owner,),
        sites=(site_of(pool, owner, nodes, snapshot),),
    )


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
    snapshot: ClusterSnapshot, remove: Collection[str], plan: Plan, names: Sequence[str]
) -> ClusterSnapshot:
    """Return the snapshot after a change: pods moved, nodes removed and launched.

    Args:
        remove: Names of the nodes that are removed.
        names: Of the nodes that are launched.
    """
    result = carry_out(
        plan, names, snapshot.provisioners, snapshot.instance_types, snapshot.taken_at
    )
    gone = frozenset(remove)
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

"""What a pool would cost after all consolidation moves that are allowed today."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from functions.cli.report.carrying_out import OURS, carry_out, owned_labels
from functions.cli.report.owners import site_of
from functions.cli.report.repacking import Outcome, PoolPlan
from shared.disruption.candidates import find_candidates
from shared.disruption.consolidation import consolidate
from shared.disruption.settings import SAVING_ALONE, DisruptionSettings
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
from shared.provisioning.savings.pools import Pool, PoolKind

# The plan for fewer pods takes little time: other changes are then tried beside that of all nodes.
_MANY_PODS: Final = 500
# Pools that Karpenter consolidates.
OF_KARPENTER: Final = frozenset({PoolKind.NODE_POOL, PoolKind.PROVISIONER, PoolKind.AUTO_MODE})


def consolidated(  # noqa: PLR0913 -- two of them by keyword
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    nodes: Sequence[Node],
    owner: Provisioner,
    repacked: PoolPlan,
    settings: PackingSettings,
    *,
    tries: int,
    as_karpenter: bool = False,
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
        as_karpenter: Whether only changes count that Karpenter makes by default: none adds nodes,
            and spot nodes are removed but not replaced, as the feature gate
            SpotToSpotConsolidation is off.
            Source: https://karpenter.sh/docs/concepts/disruption/#spot-consolidation and
            https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/controllers/disruption/consolidation.go
            (computeConsolidation, 2026-12).
    """
    rules = replace(
        SAVING_ALONE,
        # What is reached by many changes is reached by one, at a fraction of the plans.
        most_at_once=len(snapshot.nodes),
    ).within_reason(len(snapshot.bound))
    run = _Run(_alone(snapshot, nodes, owner, repacked.pool), budgets, rules, settings)
    forbidden = as_karpenter and (run.spot_nodes or len(repacked.plan.nodes) > len(nodes))
    if not forbidden and _may_replace_all(
        run.snapshot, budgets, rules, owner, repacked, len(nodes)
    ):
        run.carry_out([node.name for node in nodes], repacked.plan)
        tries -= tries // 2
    if as_karpenter:
        tries -= run.consolidate(tries // 2, as_karpenter=True)
        run.launches_nothing()
    run.consolidate(tries)
    ours = {node.name for node in run.snapshot.nodes if node.is_ours}
    return Outcome(
        nodes=tuple(
            replace(node, pool=repacked.pool)
            for node in inventory(run.snapshot)
            if node.name in ours
        ),
        blocked=run.blocked,
    )


class _Run:
    """Changes of nodes, each carried out before the next is sought.

    Attributes:
        snapshot: After the changes so far.
        blocked: Nodes that may not be changed, each with why, once nothing more is found.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        budgets: Sequence[PodDisruptionBudget],
        rules: DisruptionSettings,
        settings: PackingSettings,
    ) -> None:
        self.snapshot = snapshot
        self.blocked: tuple[tuple[str, str], ...] = ()
        self._budgets = budgets
        self._rules = rules
        self._settings = settings
        self._changes = 0

    @property
    def spot_nodes(self) -> tuple[Node, ...]:
        """Those of the nodes that may change that are spot instances."""
        return tuple(
            node
            for node in self.snapshot.nodes
            if node.is_ours and node.labels.get(keys.CAPACITY_TYPE) == CapacityType.SPOT
        )

    def launches_nothing(self) -> None:
        """From here on, nodes are only removed."""
        sites = tuple(replace(site, zones=()) for site in self.snapshot.sites)
        self.snapshot = replace(self.snapshot, sites=sites)

    def carry_out(self, remove: Collection[str], plan: Plan) -> None:
        """Carry out a change: remove these nodes, and launch those of the plan."""
        self._changes += 1
        names = [f"new-{self._changes}-{number}" for number in range(1, len(plan.nodes) + 1)]
        self.snapshot = _after(self.snapshot, remove, plan, names)

    def consolidate(self, tries: int, *, as_karpenter: bool = False) -> int:
        """Carry out changes until none saves enough; return how many plans were tried.

        Args:
            tries: Number of plans that may be tried.
            as_karpenter: Whether spot nodes stay, and the first change that adds nodes is the end.
        """
        tried = 0
        while tried < tries:
            # Groups are tried from the largest down: half is left for what they leave behind.
            most = max(1, (tries - tried) // 2)
            result = consolidate(
                self.snapshot, self._budgets, replace(self._rules, max_simulations=most),
                self._settings, most_nodes=len(self.snapshot.nodes),
                resting=[node.uid for node in self.spot_nodes] if as_karpenter else (),
            )  # fmt: skip
            tried += max(1, result.simulations)
            best = result.best
            if best is None:
                self.blocked = result.skipped
                break
            if as_karpenter and len(best.plan.nodes) > len(best.remove):
                break
            self.carry_out(best.remove, best.plan)
        return tried


def _may_replace_all(
    snapshot: ClusterSnapshot,
    budgets: Sequence[PodDisruptionBudget],
    rules: DisruptionSettings,
    owner: Provisioner,
    repacked: PoolPlan,
    nodes: int,
) -> bool:
    """Return whether consolidation would replace all nodes of a pool by those of its repacking."""
    found, _ = find_candidates(snapshot, budgets, snapshot.taken_at)
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


def made_by_default(now: Outcome, then: Outcome) -> bool:
    """Return whether the autoscaler of a pool, as it is by default, comes to these nodes.

    Karpenter replaces no spot nodes by spot nodes, and launches no more nodes than it removes.
    """
    stay = {node.name for node in now.nodes}
    new = [node for node in then.nodes if node.name not in stay]
    return not any(node.pool.kind in OF_KARPENTER for node in new) or (
        len(then.nodes) <= len(now.nodes)
        and all(node.capacity_type != CapacityType.SPOT for node in new)
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

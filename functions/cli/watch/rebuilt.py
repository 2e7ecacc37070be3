"""What the pods of a cluster cost at least: its nodes of Dovetail planned anew."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.daemonsets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from shared.scheduling.provided_daemonsets import provided_daemonsets
from shared.scheduling.provisioner_offerings import never_with_image

NO_OWNER: Final = "the cluster has no Provisioner or NodePool to plan with"
NO_TYPES: Final = "no catalogue of instance types is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """The least that pods can cost on nodes of Dovetail, in micro-dollars per hour.

    Attributes:
        planned: What a plan from nothing costs.
        bound: What no plan can go below.
        pods: How many pods it counts.
        left_out: How many more wait or run that no Provisioner has a place for.
    """

    planned: int
    bound: int
    pods: int
    left_out: int


def rebuilt(
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    provisioners: Sequence[Provisioner],
    daemonsets: Sequence[DaemonSet],
    instance_types: Sequence[InstanceType],
    at: datetime,
) -> ClusterSnapshot:
    """Return the cluster as if Dovetail had launched no node: its pods all wait, others stay.

    Nodes of others stay with their pods, and their free room costs nothing; those that are being
    deleted are left out with theirs. Pods that are about to end are left out, too, and so are zones
    of volumes and what people set in limits: without them a plan can only become cheaper, so what
    is proved for it holds for the cluster.
    """
    named = {node.name: node for node in nodes}
    ours = {node.name for node in named.values() if node.is_ours}
    kept = [node for node in named.values() if node.name not in ours and node.deletion_at is None]
    staying = {node.name for node in kept}
    free: dict[int, Scheduling] = {}
    waiting, bound = [], []
    for pod in pods:
        if pod.is_terminating or pod.is_terminal:
            continue
        if pod.node_name in staying:
            bound.append(pod)
        elif pod.counts_for_emptiness and (pod.is_provisionable or pod.node_name in ours):
            waiting.append(_unbound(pod, free))
    zones = tuple(sorted({way.zone for kind in instance_types for way in kind.offerings}))
    return ClusterSnapshot(
        cluster="",
        taken_at=at,
        pending=tuple(sorted(waiting, key=lambda pod: (pod.key, pod.uid))),
        bound=tuple(sorted(bound, key=lambda pod: (pod.key, pod.uid))),
        nodes=tuple(sorted(kept, key=lambda node: node.name)),
        provisioners=tuple(replace(owner, limits=None) for owner in provisioners),
        sites=tuple(
            ProvisionerSite(
                provisioner=owner.name,
                zones=zones,
                without_image=never_with_image(owner.template, instance_types),
            )
            for owner in provisioners
        ),
        daemonsets=provided_daemonsets(
            [daemon_set for daemon_set in daemonsets if not daemon_set.problem],
            provisioners,
            tuple(instance_types),
        ).daemonsets,
        slots=(),
        intents=(),
        instance_types=tuple(instance_types),
    )


def _unbound(pod: Pod, free: dict[int, Scheduling]) -> Pod:
    """Return a pod as it waits, without its claims."""
    known = pod.scheduling
    if id(known) not in free:
        free[id(known)] = replace(known, claims=(), volume_terms=(), ties=(), shared=())
    return replace(
        pod,
        node_name="",
        nominated_node="",
        phase="Pending",
        unschedulable=True,
        gated=False,
        scheduling=free[id(known)],
    )


def least(snapshot: ClusterSnapshot) -> Least:
    """Return what the waiting pods of a snapshot cost at least."""
    plan = with_bound(snapshot, decide(snapshot))
    return Least(
        planned=plan.cost_micros_per_hour,
        bound=plan.lower_bound_micros_per_hour,
        pods=len(snapshot.pending) - len(plan.unschedulable),
        left_out=len(plan.unschedulable),
    )

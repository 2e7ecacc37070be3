"""The lower bound on what the pods of a cluster cost: plans Dovetail's nodes anew."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from shared.model.ec2.instance_types import InstanceType
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod, Scheduling
from shared.model.provisioner import Provisioner
from shared.model.snapshot import ClusterSnapshot, ProvisionerSite
from shared.model.values import replace
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from shared.planning.rules.provided_daemonsets import provided_daemonsets
from shared.planning.rules.provisioner_offerings import never_with_image

NO_OWNER: Final = "the cluster has no Provisioner or NodePool to plan with"
NO_TYPES: Final = "no catalogue of instance types is known"


class ClusterBound(Struct, frozen=True, kw_only=True):
    """The least that pods can cost on nodes of Dovetail, in micro-dollars per hour.

    Attributes:
        planned: Cost of a plan from scratch.
        bound: No plan costs less.
        pods: Number of pods that it covers.
        left_out: Number of further pods, pending or running, that no Provisioner has a place for.
    """

    planned: int
    bound: int
    pods: int
    left_out: int


def rebuilt_snapshot(
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    provisioners: Sequence[Provisioner],
    daemonsets: Sequence[DaemonSet],
    instance_types: Sequence[InstanceType],
    at: datetime,
) -> ClusterSnapshot:
    """Return the cluster as if Dovetail had launched no node: the pods on its nodes are pending.

    Nodes of others stay with their pods, and their free capacity costs nothing; those that are
    being deleted are left out with their pods. Terminating pods are left out, too, and so are zones
    of volumes and the limits that users set: without them a plan can only become cheaper, so a
    bound that is proved for it holds for the cluster.
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
    zones = tuple(
        sorted(
            {
                offering.zone
                for instance_type in instance_types
                for offering in instance_type.offerings
            }
        )
    )
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
    """Return a pod as pending, without its claims."""
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


def cluster_bound(snapshot: ClusterSnapshot) -> ClusterBound:
    """Return the lower bound for the pending pods of a snapshot."""
    plan = with_bound(snapshot, decide(snapshot))
    return ClusterBound(
        planned=plan.cost_micros_per_hour,
        bound=plan.lower_bound_micros_per_hour,
        pods=len(snapshot.pending) - len(plan.unschedulable),
        left_out=len(plan.unschedulable),
    )

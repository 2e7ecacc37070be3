"""Pods, as far as placing, binding, counting and evicting them needs."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.kubernetes.taints import Toleration
from shared.model.kubernetes.volumes import Claim
from shared.model.requirements import Requirements
from shared.model.resources import Resources
from shared.model.values import HashableValue, replace

# EKS sets it on pods of a Fargate profile; only Fargate binds them, each to a node of its own.
# Source: https://github.com/aws/karpenter-provider-aws/issues/7455 (what its webhook sets, 2024-11)
# and https://docs.aws.amazon.com/eks/latest/userguide/fargate-profile.html (2026-11).
FARGATE_SCHEDULER: Final = "fargate-scheduler"
DEFAULT_SCHEDULER: Final = "default-scheduler"


class SpreadPolicy(StrEnum):
    """What happens when a topology spread cannot be kept."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class LabelSelector(Struct, frozen=True, kw_only=True):
    """Selects the pods that a rule counts; labels and requirements must match, both empty: all.

    A missing selector (None where this is optional) selects nothing.
    """

    match_labels: tuple[tuple[str, str], ...] = ()
    requirements: Requirements = Requirements()

    def selects(self, pod_labels: Mapping[str, str]) -> bool:
        """Return whether a pod with these labels is counted."""
        return all(pod_labels.get(k) == v for k, v in self.match_labels) and (
            self.requirements.allow_labels(pod_labels)
        )


class TopologySpread(Struct, frozen=True, kw_only=True):
    """Even placement over the domains of a key.

    Attributes:
        max_skew: Largest allowed difference between a domain's count and the smallest count.
        min_domains: The smallest number of domains to assume, or None.
        honor_affinity: Count only nodes the pod's node affinity allows (default true).
        honor_taints: Count only nodes whose taints the pod tolerates (default false).
    """

    key: str
    max_skew: int
    policy: SpreadPolicy
    selector: LabelSelector | None
    min_domains: int | None = None
    honor_affinity: bool = True
    honor_taints: bool = False


class AffinityTerm(Struct, frozen=True, kw_only=True):
    """A pod (anti-)affinity term.

    Attributes:
        weight: 1-100 for a preferred term, None for a required one.
        namespaces: Namespaces whose pods count; the pod's own where the manifest gives none.
        namespace_selector: Labels of further namespaces, or None.
    """

    key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    weight: int | None = None


class PreferredNodes(Struct, frozen=True, kw_only=True):
    """A preferred node affinity term."""

    weight: int
    requirements: Requirements


class Scheduling(Struct, frozen=True, kw_only=True):
    """The scheduling constraints of a pod; equal for identical pods.

    Pods of one workload share it, so it is the key of an item class.

    Attributes:
        requests: The sum that kube-scheduler uses, with one of the resource `pods`.
        node_selector: The plain node selector.
        required_terms: Node affinity terms, OR-ed; empty means no restriction.
        preferred_nodes: Preferred node affinity, heaviest first.
        volume_terms: Per volume its OR-ed alternatives for the node, the volumes AND-ed; never
            relaxed.
        ties: Affinity to pods that use the same volume. Each term must hold; the first pod may go
            anywhere.
        shared: Volumes that all pods of one node attach together: (volume, resource), beside
            `requests`.
        host_ports: (ip, protocol, port), sorted.
        claims: Names of its PersistentVolumeClaims, sorted.
        beyond: Bounds that the pod exceeds, for people. Such a pod keeps only its required
            anti-affinity, widened beyond the bound.
        refusals: Features of the pod that cannot be honored, each a reason for people.
    """

    requests: Resources
    node_selector: Requirements = Requirements()
    required_terms: tuple[Requirements, ...] = ()
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    volume_terms: tuple[tuple[Requirements, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spreads: tuple[TopologySpread, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    ties: tuple[AffinityTerm, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    host_ports: tuple[tuple[str, str, int], ...] = ()
    claims: tuple[str, ...] = ()
    resource_claims: bool = False
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: int = 0
    beyond: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


class ControllerRef(Struct, frozen=True, kw_only=True):
    """The controller of an object."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


class Pod(HashableValue, frozen=True, kw_only=True):
    """One pod.

    Attributes:
        node_name: The node it is bound to, empty when pending.
        nominated_node: The node on which kube-scheduler preempts pods for it, usually empty.
        unschedulable: Whether kube-scheduler marked it PodScheduled=False/Unschedulable.
        gated: Whether it has scheduling gates.
        owner: Its controller, None for a bare pod.
        ephemeral: Claims that will be created for its generic ephemeral volumes.
        kept_for: How long from its start do-not-disrupt keeps it; None where its value is no span.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduling: Scheduling
    node_name: str = ""
    nominated_node: str = ""
    phase: str = "Pending"
    unschedulable: bool = False
    gated: bool = False
    owner: ControllerRef | None = None
    created_at: datetime | None = None
    deletion_at: datetime | None = None
    grace_period_seconds: int | None = None
    priority_class: str = ""
    started_at: datetime | None = None
    kept_for: timedelta | None = None
    ready: bool = False
    ephemeral: tuple[Claim, ...] = ()

    @property
    def key(self) -> str:
        """Namespace and name, the way people name a pod."""
        return f"{self.namespace}/{self.name}"

    def blocking_annotation_at(self, now: datetime) -> str:
        """Return the annotation that keeps it from being evicted, empty without one.

        Where do-not-disrupt has a span as its value, a pod that has not started yet is kept, too.
        """
        if self.kept_for and (self.started_at is None or now < self.started_at + self.kept_for):
            return keys.DO_NOT_DISRUPT
        return keys.first_true_annotation(self.annotations, keys.POD_BLOCKING_ANNOTATIONS)

    @property
    def is_terminal(self) -> bool:
        """Whether its phase is final: it never runs again."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.deletion_at is not None

    @property
    def is_daemon(self) -> bool:
        """Whether a DaemonSet owns it: it is removed with its node and never needs a new node."""
        return self.owner is not None and self.owner.kind == "DaemonSet"

    @property
    def is_of_job(self) -> bool:
        """Whether a Job owns it: it runs to its end, and begins again where it is evicted."""
        return self.owner is not None and self.owner.kind == "Job"

    @property
    def is_static(self) -> bool:
        """Whether a node owns it: a static (mirror) pod."""
        return self.owner is not None and self.owner.kind == "Node"

    @property
    def is_provisionable(self) -> bool:
        """Whether it is pending and a node may be launched for it."""
        return not self.node_name and not self.why_not_provisionable

    @property
    def why_not_provisionable(self) -> str:
        """Why no node is launched for it while it is pending, for people; empty if one may be."""
        if self.is_terminal:
            return f"has ended: {self.phase}"
        if self.is_terminating:
            return "is being deleted"
        if self.is_daemon or self.is_static:
            return "belongs to a DaemonSet or a node: no node is launched for it"
        if self.scheduling.scheduler_name == FARGATE_SCHEDULER:
            return (
                f"has schedulerName {FARGATE_SCHEDULER}: it runs on Fargate, not on an EC2 instance"
            )
        if self.gated:
            return "has scheduling gates: kube-scheduler does not look at it until they are removed"
        if self.nominated_node:
            node = self.nominated_node
            return f"is nominated to node {node}: kube-scheduler makes room for it by preemption"
        if not self.unschedulable:
            return "is not marked Unschedulable by kube-scheduler: no node is launched for it yet"
        return ""

    @property
    def counts_for_emptiness(self) -> bool:
        """Whether it uses its node: neither a DaemonSet pod nor static, and not terminal."""
        return not (self.is_daemon or self.is_static or self.is_terminal)

    @property
    def keeps_its_node(self) -> bool:
        """Whether it keeps its node from being empty.

        Of terminating pods only those of a StatefulSet count.
        """
        leaves = self.is_terminating and (self.owner is None or self.owner.kind != "StatefulSet")
        return self.counts_for_emptiness and not leaves


def without_stale_nominations(pods: Iterable[Pod], nodes: Iterable[str]) -> tuple[Pod, ...]:
    """Return the pods, without nominations to nodes that do not exist.

    Preemption frees nothing on a node that is gone: kube-scheduler schedules such a pod again.

    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    #user-exposed-information (2026-11-29): the nomination is only a hint.

    Args:
        pods: The pods.
        nodes: Names of all nodes.
    """
    known = frozenset(nodes)
    return tuple(
        replace(pod, nominated_node="")
        if pod.nominated_node and pod.nominated_node not in known
        else pod
        for pod in pods
    )

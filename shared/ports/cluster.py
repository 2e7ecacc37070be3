"""One cluster's Kubernetes API."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from shared.model.dialect import OwnerKind
from shared.model.kubernetes.daemon_sets import DaemonSet
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Taint
from shared.model.provisioner import InvalidProvisioner, Provisioner
from shared.model.resources import Resources
from shared.ports.storage import Storage
from shared.ports.templates import Templates


class NodeManifest(Struct, frozen=True, kw_only=True):
    """A Node object to be created for a launched instance.

    Attributes:
        capacity: `status.capacity` until the kubelet reports its own; empty for no status.
        allocatable: `status.allocatable` until then.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    finalizers: tuple[str, ...]
    provider_id: str
    owner: Provisioner | None
    capacity: Resources = Resources()
    allocatable: Resources = Resources()


class NodeChange(Struct, frozen=True, kw_only=True):
    """A change to a Node; what is None or empty stays as it is.

    Attributes:
        unschedulable: Cordon (True) or uncordon (False).
        set_labels: Added or replaced.
        set_annotations: Added or replaced; a value of None removes the key.
        remove_taint_keys: Taints with these keys are removed, whatever their effect.
        add_taints: Added unless the node has a taint of the same key and effect.
        finalizers: The whole new list.
        owner: Added to the owner references; an owner of another kind is given as its reference.
        drop_owners: Uids of owners whose references are removed.
    """

    unschedulable: bool | None = None
    set_labels: Mapping[str, str | None] = field(default_factory=dict)
    set_annotations: Mapping[str, str | None] = field(default_factory=dict)
    remove_taint_keys: frozenset[str] = frozenset()
    add_taints: tuple[Taint, ...] = ()
    finalizers: tuple[str, ...] | None = None
    provider_id: str | None = None
    owner: Provisioner | Mapping[str, Any] | None = None
    drop_owners: frozenset[str] = frozenset()


class Severity(StrEnum):
    """Type of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class ConditionType(StrEnum):
    """Type of a condition in the status of a Provisioner or NodePool."""

    ACTIVE = "Active"  # nodes are launched and removed for it
    NODES_USABLE = "NodesUsable"  # no workload is held because its nodes never became usable
    NODES_CURRENT = "NodesCurrent"  # no node is outdated
    WITHIN_CEILING = "WithinCeiling"  # no launch is held because a ceiling is reached


class KubernetesEvent(Struct, frozen=True, kw_only=True):
    """A Kubernetes Event to be written about an object; equal Events are counted, not repeated."""

    kind: str  # Pod, Node, Provisioner, NodePool, or a controller of pods
    namespace: str
    name: str
    uid: str
    severity: Severity
    reason: str  # CamelCase
    message: str
    api_version: str = ""  # of the kind, where it is a controller of pods


class PastEvent(Struct, frozen=True, kw_only=True, order=True):
    """A Kubernetes Event that was written about an object, by Dovetail or others.

    Attributes:
        at: When it last occurred, None when it does not say.
        source: Component that wrote it.
        count: How often it occurred.
    """

    at: datetime | None
    source: str
    reason: str
    message: str
    count: int = 1


# Called after each page of a long list; an error that it raises ends the list.
EachPage = Callable[[], object]


def nothing() -> None:
    """Do nothing after a page."""


class NodeCluster(Protocol):
    """The part of one cluster's Kubernetes API that services which act on nodes need."""

    @property
    def name(self) -> str:
        """The cluster's name."""
        ...

    def pending_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        """Return pods without a node that are not terminal, sorted by key."""
        ...

    def bound_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        """Return pods that have a node and are not terminal, sorted by key.

        Of every node, whatever its state, terminating pods too. One list serves both the free
        capacity and the rules between pods: a list per rule, by its selector, would fetch most
        pods again.
        """
        ...

    def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        """Return all pods of one node, terminal ones too, sorted by key."""
        ...

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, or None when there is none."""
        ...

    def nodes(self, each_page: EachPage = nothing) -> tuple[Node, ...]:
        """Return all nodes, sorted by name."""
        ...

    def node(self, name: str) -> Node | None:
        """Return a node, or None when there is none."""
        ...

    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        """Return the Provisioners and NodePools that can be used, and those that cannot.

        Each sorted by name; no two usable owners have the same name. NodePools that name the node
        class of another provider are in neither.
        """
        ...

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of all namespaces by name."""
        ...

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return all PodDisruptionBudgets, sorted by namespace and name."""
        ...

    def volume_attachments(self, node_name: str) -> tuple[str, ...]:
        """Return the names of a node's VolumeAttachments whose volumes a pod may wait for."""
        ...

    def create_node(self, manifest: NodeManifest) -> Node:
        """Create the Node; when one of that name exists, return it as it is."""
        ...

    def change_node(self, node: Node, change: NodeChange) -> Node:
        """Apply a change if the node was not changed since `node` was read.

        Raises:
            ConflictError: If its uid or resourceVersion differs.
            NotFoundError: If it is gone.
        """
        ...

    def delete_node(self, node: Node) -> None:
        """Delete a node if it exists, on condition of uid and resourceVersion.

        Raises:
            ConflictError: If it changed since it was read.
        """
        ...

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod unless it is bound to that node already.

        Raises:
            ConflictError: If it is bound to another node or its uid differs.
            NotFoundError: If it is gone.
        """
        ...

    def bind_all(self, bindings: Sequence[tuple[Pod, str]]) -> tuple[Pod, ...]:
        """Bind many pods, each to its node, several at a time.

        Returns:
            The pods that are bound to their node now, in the order given. A pod that is gone or
            bound elsewhere is left out: it is no longer pending. So is a pod whose binding the API
            server refuses.

        Raises:
            RetryableError: If the request for one pod failed; all others were sent.
        """
        ...

    def evict(self, pod: Pod) -> None:
        """Request the eviction of a pod if it exists.

        Raises:
            EvictionRefusedError: If a PodDisruptionBudget forbids it now.
        """
        ...

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete a pod if it exists, on condition of its uid.

        Args:
            grace_seconds: The termination grace period; None for the pod's own.
        """
        ...

    def force_delete_pod(self, pod: Pod) -> None:
        """Delete a pod if it exists, on condition of its uid, with a grace period of 0.

        The API server does not wait for the kubelet: only for pods whose instance no longer runs.
        """
        ...

    def record_events(self, kube_events: Sequence[KubernetesEvent]) -> None:
        """Write Kubernetes Events; failures are logged, never raised."""
        ...

    def events(self, kind: str, namespace: str, name: str) -> tuple[PastEvent, ...]:
        """Return the Events about an object that the cluster still has, oldest first.

        Args:
            namespace: Of the object, empty for a Node.
        """
        ...


class Cluster(NodeCluster, Storage, Templates, Protocol):
    """One cluster's Kubernetes API."""

    def leave_copies(self) -> bool:
        """Save a copy of nodes and their pods for processes that start later.

        Errors are logged, never raised.

        Returns:
            Whether it was saved: False where a copy does not pay, or after an error.
        """
        ...

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets, sorted by namespace and name."""
        ...

    def set_provisioner_condition(
        self,
        name: str,
        *,
        active: bool,
        reason: str,
        message: str,
        kind: ConditionType = ConditionType.ACTIVE,
        owner: OwnerKind = OwnerKind.PROVISIONER,
    ) -> None:
        """Set a condition in the status of a Provisioner or NodePool if it exists.

        A NodePool has `Ready` where a Provisioner has `Active`, and the conditions that Ready
        depends on.

        Args:
            active: Whether the condition holds.
        """
        ...

"""What the services need of the world. Adapters implement it; tests have a fake for each.

Every method may raise RetryableError (throttled, unavailable, conflict) or PermanentError
(unauthorized); further errors are named where a caller acts on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from shared.model.daemonset import DaemonSet
from shared.model.instance_types import InstanceType, OfferingKey
from shared.model.launch import FleetAnswer, Instance, LaunchIntent, Lease, Slot
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.provisioner import NodeTemplate, Provisioner
from shared.model.snapshot import InvalidProvisioner
from shared.model.taints import Taint


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the current time, aware, UTC."""
        ...

    def sleep(self, span: timedelta) -> None:
        """Wait. Only the fast lane's batch window may call it."""
        ...


# --- the cluster -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeManifest:
    """A Node object to be made for a launched machine."""

    name: str
    labels: Mapping[str, str] = field(hash=False)
    annotations: Mapping[str, str] = field(hash=False)
    taints: tuple[Taint, ...]
    finalizers: tuple[str, ...]
    provider_id: str
    owner: Provisioner | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """A change to a Node; what is None or empty stays as it is.

    Attributes:
        unschedulable: Cordon (True) or uncordon (False).
        set_labels: Added or replaced.
        set_annotations: Added or replaced; a value of None removes the key.
        remove_taint_keys: Taints with these keys go, whatever their effect.
        add_taints: Added unless a taint of the same key and effect is there.
        finalizers: The whole new list.
    """

    unschedulable: bool | None = None
    set_labels: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    set_annotations: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    remove_taint_keys: frozenset[str] = frozenset()
    add_taints: tuple[Taint, ...] = ()
    finalizers: tuple[str, ...] | None = None
    provider_id: str | None = None


class Severity(StrEnum):
    """Type of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A Kubernetes Event to be written about an object; equal ones are counted, not repeated."""

    kind: str  # Pod, Node or Provisioner
    namespace: str
    name: str
    uid: str
    severity: Severity
    reason: str  # CamelCase
    message: str


class Cluster(Protocol):
    """One cluster's Kubernetes API."""

    @property
    def name(self) -> str:
        """The cluster's name."""
        ...

    def pending_pods(self) -> tuple[Pod, ...]:
        """Return pods without a node that are not terminal, sorted by key."""
        ...

    def bound_pods(self) -> tuple[Pod, ...]:
        """Return pods that have a node and are not terminal, sorted by key."""
        ...

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Return all pods of one node, terminal ones too, sorted by key."""
        ...

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, or None when there is none."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes, sorted by name."""
        ...

    def node(self, name: str) -> Node | None:
        """Return a node, or None when there is none."""
        ...

    def provisioners(self) -> tuple[tuple[Provisioner, ...], tuple[InvalidProvisioner, ...]]:
        """Return the usable Provisioners and those that cannot be used, each sorted by name."""
        ...

    def daemonsets(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets, sorted by namespace and name."""
        ...

    def volume_attachments(self, node: str) -> tuple[str, ...]:
        """Return names of VolumeAttachments of a node whose volumes a pod may wait for."""
        ...

    def create_node(self, manifest: NodeManifest) -> Node:
        """Make the Node; when one of that name exists, return it as it is."""
        ...

    def change_node(self, node: Node, change: NodeChange) -> Node:
        """Apply a change if the node is still as `node` was read.

        Raises:
            ConflictError: If its uid or resourceVersion is another.
            NotFoundError: If it is gone.
        """
        ...

    def delete_node(self, node: Node) -> None:
        """Delete, on condition of uid and resourceVersion; gone already is fine.

        Raises:
            ConflictError: If it changed since it was read.
        """
        ...

    def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod; being bound to that very node already is fine.

        Raises:
            ConflictError: If it is bound elsewhere or its uid is another.
            NotFoundError: If it is gone.
        """
        ...

    def evict(self, pod: Pod) -> None:
        """Ask for an eviction; gone already is fine.

        Raises:
            EvictionRefusedError: If a PodDisruptionBudget forbids it now.
        """
        ...

    def delete_pod(self, pod: Pod) -> None:
        """Delete a pod on condition of its uid; gone already is fine."""
        ...

    def happened(self, happenings: Sequence[Happening]) -> None:
        """Write Kubernetes Events; failures are counted, never raised."""
        ...

    def set_provisioner_condition(
        self, name: str, *, active: bool, reason: str, message: str
    ) -> None:
        """Set the Active condition in a Provisioner's status; gone is fine."""
        ...


# --- the cloud -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Subnet:
    """A subnet nodes may stand in."""

    subnet_id: str
    zone: str
    free_addresses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a Provisioner's machines can stand: what its selectors found.

    Attributes:
        subnets: Sorted by zone, then most free addresses first.
    """

    subnets: tuple[Subnet, ...]
    security_groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEndpoint:
    """What a machine needs to join."""

    name: str
    endpoint: str
    certificate_authority: str
    version: str
    service_cidr: str


class CloudProvider(Protocol):
    """EC2 and what belongs to it, in one Region, for one cluster (its own roles)."""

    def endpoint(self) -> ClusterEndpoint:
        """Return what machines need to join this cluster."""
        ...

    def site(self, template: NodeTemplate) -> Site:
        """Return the subnets and security groups a template's selectors find."""
        ...

    def image_ids(self, parameters: Sequence[str]) -> Mapping[str, str]:
        """Return the AMI id for each SSM parameter name that exists."""
        ...

    def ensure_launch_template(self, name: str, launch_data: Mapping[str, Any]) -> None:
        """Make the launch template unless one of that name exists."""
        ...

    def launch_templates(self) -> tuple[tuple[str, datetime], ...]:
        """Return name and creation time of this cluster's launch templates, sorted by name."""
        ...

    def delete_launch_template(self, name: str) -> None:
        """Delete a launch template; gone already is fine."""
        ...

    def create_fleet(self, request: Mapping[str, Any]) -> FleetAnswer:
        """Ask EC2 for instances with exactly this CreateFleet request.

        Raises:
            ThrottledError: EC2 asked to slow down; nothing was launched.
            UnavailableError: The outcome is unknown: look for instances by tag.
            NotFoundError: The launch template is gone.
        """
        ...

    def instances(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        """Return those of the instances that EC2 knows, sorted by id."""
        ...

    def tagged_instances(self, tags: Mapping[str, str]) -> tuple[Instance, ...]:
        """Return this cluster's instances, not terminated, that have all tags, sorted by id."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """End instances; unknown ones are fine."""
        ...


class Catalog(Protocol):
    """What can be bought in the Region."""

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Return all instance types with an offering, sorted by name."""
        ...


# --- what is written down --------------------------------------------------------------------


class Ledger(Protocol):
    """The table of what was decided and what has come of it, keyed by cluster.

    Every write under a lease is conditional on its fencing token.
    """

    def acquire(self, cluster: str, holder: str, now: datetime) -> Lease | None:
        """Take the cluster's lease if it is free or expired.

        When it is held, leave the dirty mark on that very lease and return None: the holder will
        plan once more. When it was released in between, try again.
        """
        ...

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """Push the lease's expiry.

        Raises:
            ConflictError: If the lease is no longer ours.
        """
        ...

    def release(self, lease: Lease) -> bool:
        """Give the lease back unless it is dirty, in one conditional write.

        Returns:
            False when it was dirty: the mark is cleared, the lease kept, plan once more. True
            also when the lease was lost in the meantime.
        """
        ...

    def abandoned(self, cluster: str, now: datetime) -> bool:
        """Return whether the lease is expired without having been released."""
        ...

    def open_intent(self, lease: Lease, intent: LaunchIntent) -> None:
        """Write an intent down, once.

        Raises:
            ConflictError: If the lease was lost or that attempt is already written.
        """
        ...

    def change_intent(self, lease: Lease, intent: LaunchIntent) -> None:
        """Replace an intent's row (same plan, group; attempt, state or time changed).

        Raises:
            ConflictError: If the lease was lost.
        """
        ...

    def open_intents(self, cluster: str) -> tuple[LaunchIntent, ...]:
        """Return the intents that are not done, sorted by plan, group."""
        ...

    def fill_slot(self, lease: Lease, slot: Slot) -> bool:
        """Pair a slot with its instance, each once.

        Returns:
            False when the slot or the instance is paired already (with whatever).
        """
        ...

    def change_slot(self, slot: Slot) -> None:
        """Replace a slot's row; one that is gone stays gone."""
        ...

    def drop_slot(self, slot: Slot) -> None:
        """Remove a slot; its instance's row stays until the instance is gone."""
        ...

    def drop_instance(self, instance_id: str) -> None:
        """Remove an instance's row: it is terminated."""
        ...

    def slots(self, cluster: str) -> tuple[Slot, ...]:
        """Return all slots of a cluster, sorted by name."""
        ...

    def cluster_of(self, instance_id: str) -> str | None:
        """Return the cluster an instance was launched for, None when it is not ours."""
        ...

    def unavailable_offerings(self, now: datetime) -> frozenset[OfferingKey]:
        """Return the offerings EC2 was out of and that are not yet to be tried again."""
        ...

    def mark_unavailable(self, offerings: Sequence[OfferingKey], now: datetime) -> None:
        """Remember that EC2 was out of these; each repeat is remembered longer."""
        ...

    def take_token(self, api: str, now: datetime) -> timedelta | None:
        """Take one request token of an API for account and Region.

        Returns:
            None when taken, else how long to wait for one.
        """
        ...

    def note_timer(self, cluster: str, node_uid: str, kind: str, at: datetime) -> None:
        """Write down that a timer of that kind runs for a node and was last seen at `at`."""
        ...

    def timers(self, cluster: str) -> Mapping[tuple[str, str], datetime]:
        """Return when each timer, by (node uid, kind), was last seen."""
        ...

    def drop_timer(self, cluster: str, node_uid: str, kind: str) -> None:
        """Remove a timer's row."""
        ...

    def note_heartbeat(self, cluster: str, at: datetime) -> None:
        """Write down when the cluster's forwarder last spoke."""
        ...


class Decisions(Protocol):
    """Documents that outlive an invocation: bodies of requests, snapshots and plans."""

    def put(self, key: str, document: bytes) -> None:
        """Write a document once; the same key again must carry the same bytes."""
        ...

    def get(self, key: str) -> bytes:
        """Return a document.

        Raises:
            NotFoundError: If there is none.
        """
        ...


class TimerKind(StrEnum):
    """The state machines."""

    EMPTINESS = "emptiness"
    EXPIRATION = "expiration"
    REGISTRATION = "registration"
    TERMINATION = "termination"


class Outbox(Protocol):
    """Messages and timers that functions start."""

    def wake(self, cluster: str, delay: timedelta) -> None:
        """Send a `resume` message to the queue, delivered after `delay` (at most 15 min)."""
        ...

    def start_timer(self, kind: TimerKind, name: str, payload: Mapping[str, Any]) -> bool:
        """Start an execution; the name is taken once.

        Returns:
            False when an execution of that name was started before.
        """
        ...

    def invoke_bind(self, cluster: str, nodes: Sequence[str]) -> None:
        """Wake the bind function for nodes, without waiting for its answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPorts:
    """All that a service needs to act for one cluster.

    Attributes:
        instance_profile: Default instance profile of the cluster's nodes.
    """

    cluster: Cluster
    cloud: CloudProvider
    catalog: Catalog
    ledger: Ledger
    decisions: Decisions
    outbox: Outbox
    clock: Clock
    instance_profile: str = ""

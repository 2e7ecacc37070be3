"""Nodes of the cluster, Dovetail's and others."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from shared.model import labels as keys
from shared.model.kubernetes.taints import Taint
from shared.model.resources import Resources

# How long a kubelet may take to come back, as after a reboot. It is also how long Kubernetes leaves
# pods on a node that is not Ready by default.
# Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
# #taint-based-evictions (tolerationSeconds of DefaultTolerationSeconds, 2026-11-29).
UNHEALTHY_AFTER: Final = timedelta(minutes=5)
# Bare metal instances check their hardware before they boot: 5 to 15 minutes until they join.
_BARE_METAL: Final = timedelta(minutes=20)


class Node(Struct, frozen=True, kw_only=True):
    """One Node object.

    Attributes:
        provider_id: `aws:///<zone>/<instance id>`, empty when unknown.
        allocatable: As reported; as planned until the kubelet reports.
        owners: Uids of its owners: it is deleted with them.
        ready: Status of the Ready condition: True, False, or None when unknown or never set.
        ready_changed_at: When that status last changed, None when it was never set.
    """

    name: str
    uid: str
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    finalizers: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    provider_id: str = ""
    unschedulable: bool = False
    capacity: Resources = Resources()
    allocatable: Resources = Resources()
    ready: bool | None = None
    ready_changed_at: datetime | None = None
    created_at: datetime | None = None
    deletion_at: datetime | None = None

    @property
    def provisioner(self) -> str:
        """Name of the Provisioner or NodePool it was launched for, empty if not by Dovetail.

        Karpenter's nodes have the same labels and finalizer, but not Dovetail's annotation.
        Source: https://github.com/kubernetes-sigs/karpenter/blob/v0.31.0/pkg/apis/v1alpha5/labels.go
        and .../v1.14.1/pkg/apis/v1/labels.go (2026-11-27).
        """
        if keys.SLOT not in self.annotations:
            return ""
        return self.labels.get(keys.PROVISIONER_NAME) or self.labels.get(keys.NODE_POOL, "")

    @property
    def is_ours(self) -> bool:
        """Whether it has Dovetail's annotation, label and finalizer; others may not be changed."""
        return bool(self.provisioner) and keys.TERMINATION_FINALIZER in self.finalizers

    @property
    def blocking_annotation(self) -> str:
        """The annotation that keeps it from being disrupted to save cost, empty without one."""
        return keys.first_true_annotation(self.annotations, keys.NODE_BLOCKING_ANNOTATIONS)

    @property
    def instance_id(self) -> str:
        """EC2 instance id from the provider id, empty when it has none."""
        if not self.provider_id.startswith("aws:"):
            return ""
        tail = self.provider_id.rsplit("/", 1)[-1]
        return tail if tail.startswith("i-") else ""

    @property
    def is_open(self) -> bool:
        """Whether kube-scheduler may use it: Ready and without Dovetail's closing taint."""
        return self.ready is True and not self.is_closed

    @property
    def is_closed(self) -> bool:
        """Whether Dovetail's own taint keeps kube-scheduler away."""
        return any(taint.key in keys.CLOSING_TAINTS for taint in self.taints)

    @property
    def was_initialized(self) -> bool:
        """Whether it has the label karpenter.sh/initialized; it may not be Ready now."""
        return self.labels.get(keys.INITIALIZED) == "true"

    @property
    def has_started(self) -> bool:
        """Whether kube-scheduler may use it, or could before: its kubelet may have stopped since.

        Only a node that has not started may be given up for not being Ready.
        Source: Initialized in
        https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/controllers/state/statenode.go
        (2026-11-29): it is the label, whatever the Ready condition says.
        """
        return self.is_open or (self.was_initialized and not self.is_closed)

    @property
    def is_initialized(self) -> bool:
        """Whether it is open and was initialized: no startup taints, and its devices reported."""
        return self.is_open and self.was_initialized

    @property
    def is_bare_metal(self) -> bool:
        """Whether its instance has no hypervisor; the size of such types begins with `metal`."""
        _, _, size = self.labels.get(keys.INSTANCE_TYPE, "").partition(".")
        return size.startswith("metal")

    def registration_timeout(self, default: timedelta) -> timedelta:
        """Return how long its kubelet may take to join; `default` unless it is bare metal."""
        return max(default, _BARE_METAL) if self.is_bare_metal else default

    def is_unhealthy(self, now: datetime) -> bool:
        """Return whether it was initialized and has not been Ready for five minutes."""
        not_ready_for = now - (self.ready_changed_at or now)
        return self.was_initialized and self.ready is not True and not_ready_for >= UNHEALTHY_AFTER

    def is_overdue(self, timeout: timedelta, now: datetime) -> bool:
        """Return whether it has been Ready for longer than this without being initialized."""
        ready_for = now - (self.ready_changed_at or now)
        return self.ready is True and not self.was_initialized and ready_for > timeout

"""Which pods a kubelet admits.

A device that the Node does not name is not asked for: the pod is admitted, and its container starts
without it.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/lifecycle/predicate.go
(removeMissingExtendedResources),
https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/cm/devicemanager/manager.go
(allocateContainerResources) and
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/scheduler/framework/plugins/noderesources/fit.go
(fitsRequest), read 2026-11-22.
"""

from dataclasses import dataclass, field
from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.kubelet.registration import FIRST_RETRY_SECONDS
from infra.local.cluster_simulator.kubelet.user_data import KubeletFlags
from infra.local.cluster_simulator.rules.amounts import amounts
from infra.local.cluster_simulator.rules.matching import matches_node_affinity

# The order in which the kubelet compares them: the first that is short names the refusal.
_COUNTED: Final = ("pods", "cpu", "memory", "ephemeral-storage")


@dataclass(slots=True)
class Process:
    """The kubelet of one instance; times are those of the event loop.

    Attributes:
        instance: Identifies the instance: its providerID, else the name of its Node.
        running_since: When the instance was first seen running.
        started_at: When it began to admit pods; None while the instance boots.
        reported_at: When its status was first accepted; None before.
    """

    instance: str
    running_since: float
    flags: KubeletFlags = field(default_factory=KubeletFlags)
    started_at: float | None = None
    retry_seconds: float = FIRST_RETRY_SECONDS
    next_attempt_at: float = 0.0
    registered: bool = False
    reported_at: float | None = None
    address: str = ""
    image_name: str = ""
    used: dict[str, int] = field(default_factory=dict)


def refusal_of(
    pod: Json, node: Json, requests: dict[str, int], used: dict[str, int]
) -> tuple[str, str] | None:
    """Return reason and message why a kubelet refuses a pod, None when it admits it.

    Args:
        node: As the kubelet last saw it; amounts it does not name are zero, but for devices.
    """
    if not matches_node_affinity(pod, node):
        return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match"
    capacity = amounts((node.get("status") or {}).get("allocatable"))
    names = [name for name in _COUNTED if name in requests]
    for resource in [*names, *sorted(requests.keys() - set(_COUNTED))]:
        amount, taken = requests[resource], used.get(resource, 0)
        if _is_extended(resource) and resource not in capacity:
            continue
        room = capacity.get(resource, 0)
        if taken + amount > room:
            counts = f"requested: {amount}, used: {taken}, capacity: {room}"
            return f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {counts}"
    return None


def _is_extended(resource: str) -> bool:
    """Return whether a resource is none of Kubernetes' own, as devices are."""
    return "/" in resource and "kubernetes.io/" not in resource

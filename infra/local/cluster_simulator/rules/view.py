"""What a placement decision looks at beside the node itself (standard library only)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Raw API objects around one decision.

    Attributes:
        nodes: Every node, also those that cannot take the pod: they form topology domains.
        pods: The pods bound to nodes; finished ones are left out by the reader.
        namespaces: Labels of each namespace.
        claims: PersistentVolumeClaims by namespace and name.
        volumes: PersistentVolumes by name.
        storage_classes: StorageClasses by name.
        csi_nodes: CSINodes by name: how many volumes each driver attaches to the node.
        nominated: Pods without a node for which others are being preempted; their place is kept.
    """

    nodes: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[tuple[str, str], Object] = field(default_factory=dict)
    volumes: Mapping[str, Object] = field(default_factory=dict)
    storage_classes: Mapping[str, Object] = field(default_factory=dict)
    csi_nodes: Mapping[str, Object] = field(default_factory=dict)
    nominated: Sequence[Object] = ()


def is_finished(pod: Object) -> bool:
    """Return whether a pod has ended and no longer counts on its node."""
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}

"""Volumes in a snapshot made of manifests alone: undescribed volumes fit every node."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from functions.cli.plan.reading.documents import Document
from shared.manifests.raw_json import Raw
from shared.manifests.volumes.attachment_limits import (
    AttachmentLimits,
    limited_drivers,
    split_pods,
    volumes_held_by,
    with_attachable,
)
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.manifests.volumes.pod_demands import with_volume_demands
from shared.manifests.volumes.storage_objects import (
    decode_csi_node,
    decode_storage_class,
    decode_volume,
)
from shared.model.dollars_and_counts import first_names
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace

_Decoded = TypeVar("_Decoded")


def read_volumes(documents: Sequence[Document]) -> VolumeLookup:
    """Return what the documents say of claims, volumes and storage classes."""
    return VolumeLookup(
        _decoded(documents, "PersistentVolumeClaim", decode_claim),
        _decoded(documents, "PersistentVolume", decode_volume),
        _decoded(documents, "StorageClass", decode_storage_class),
        complete=False,
    )


def with_volumes(
    snapshot: ClusterSnapshot, volumes: VolumeLookup, documents: Sequence[Document]
) -> ClusterSnapshot:
    """Return the snapshot with the claims of waiting pods resolved.

    Args:
        snapshot: With its pending pods as they were read.
        volumes: Resolves their claims.
        documents: The CSINodes among them give the attachment limits.
    """
    drivers = volumes.drivers(snapshot.pending)
    limits = _decoded(documents, "CSINode", decode_csi_node)
    limited = limited_drivers(drivers, limits)
    staying, leaving = split_pods(snapshot.bound, snapshot.nodes)
    pending, marked = with_volume_demands(
        volumes, snapshot.pending, staying, limited, leaving=leaving
    )
    instead = {pod.uid: pod for pod in marked}
    bound = tuple(instead.get(pod.uid, pod) for pod in snapshot.bound)
    resolved = replace(snapshot, pending=pending, bound=bound)
    if not limited:
        return resolved
    held = volumes_held_by(snapshot.bound, volumes)
    return with_attachable(resolved, AttachmentLimits.of(limited, limits, held, snapshot))


def unknown_claims(pods: Iterable[Pod], volumes: VolumeLookup) -> list[str]:
    """Return a note on the claims of pods that no document describes; none if all are."""
    unknown = {
        f"{pod.namespace}/{name}" for pod in pods for name in volumes.demands_of(pod).unknown
    }
    named = first_names(sorted(unknown), 1)
    return [f"PersistentVolumeClaim {named} not given: taken to fit any zone"] if named else []


def _decoded(
    documents: Sequence[Document], kind: str, decode: Callable[[Raw], _Decoded]
) -> tuple[_Decoded, ...]:
    return tuple(decode(document.with_namespace) for document in documents if document.kind == kind)

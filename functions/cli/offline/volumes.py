"""Volumes in a snapshot made of manifests alone: undescribed volumes fit every node."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from shared.manifests.documents import Document
from shared.manifests.fields import Raw
from shared.manifests.volumes.attachment_limits import (
    Attachable,
    held_by,
    limited_drivers,
    split_pods,
    with_attachable,
)
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.node_demands import Volumes
from shared.manifests.volumes.pod_demands import resolve
from shared.manifests.volumes.storage_objects import (
    decode_attach_limits,
    decode_storage_class,
    decode_volume,
)
from shared.model.snapshot import ClusterSnapshot

_Decoded = TypeVar("_Decoded")


def read_volumes(documents: Sequence[Document]) -> Volumes:
    """Return what the documents say of claims, volumes and storage classes."""
    return Volumes(
        _decoded(documents, "PersistentVolumeClaim", decode_claim),
        _decoded(documents, "PersistentVolume", decode_volume),
        _decoded(documents, "StorageClass", decode_storage_class),
        complete=False,
    )


def with_volumes(
    snapshot: ClusterSnapshot, volumes: Volumes, documents: Sequence[Document]
) -> ClusterSnapshot:
    """Return the snapshot with the claims of waiting pods resolved.

    Args:
        snapshot: With its pending pods as they were read.
        volumes: What their claims ask.
        documents: For the CSINodes among them.
    """
    drivers = volumes.drivers(snapshot.pending)
    limits = _decoded(documents, "CSINode", decode_attach_limits)
    limited = limited_drivers(drivers, limits)
    staying, leaving = split_pods(snapshot.bound, snapshot.nodes)
    pending, marked = resolve(volumes, snapshot.pending, staying, limited, leaving=leaving)
    instead = {pod.uid: pod for pod in marked}
    bound = tuple(instead.get(pod.uid, pod) for pod in snapshot.bound)
    resolved = replace(snapshot, pending=pending, bound=bound)
    if not limited:
        return resolved
    held = held_by(snapshot.bound, volumes)
    return with_attachable(resolved, Attachable.of(limited, limits, held, snapshot))


def _decoded(
    documents: Sequence[Document], kind: str, decode: Callable[[Raw], _Decoded]
) -> tuple[_Decoded, ...]:
    return tuple(decode(document.named) for document in documents if document.kind == kind)

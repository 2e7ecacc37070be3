"""The volumes of a cluster, their claims and classes; read only when some pod needs them."""

from collections.abc import Collection
from typing import Protocol

from shared.model.kubernetes.volumes import (
    Claim,
    CsiNodeLimits,
    StorageClass,
    Volume,
    VolumeAttachment,
)


class Storage(Protocol):
    """The part of one cluster's Kubernetes API that few decisions need."""

    def claims(self, namespaces: Collection[str]) -> tuple[Claim, ...]:
        """Return the PersistentVolumeClaims of these namespaces, sorted by namespace and name."""
        ...

    def volumes(self, names: Collection[str], free_of: Collection[str] = ()) -> tuple[Volume, ...]:
        """Return the PersistentVolumes of these names that exist, sorted by name.

        Args:
            free_of: Names of storage classes whose free volumes are returned too.
        """
        ...

    def storage_classes(self) -> tuple[StorageClass, ...]:
        """Return all storage classes, sorted by name."""
        ...

    def attach_limits(self) -> tuple[CsiNodeLimits, ...]:
        """Return how many volumes each node can attach, sorted by node."""
        ...

    def attached_volumes(self) -> tuple[VolumeAttachment, ...]:
        """Return the volumes attached to nodes, inline ones left out, sorted."""
        ...

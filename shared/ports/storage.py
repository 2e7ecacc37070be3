"""What a cluster knows of volumes: read only when some pod asks for it."""

from collections.abc import Collection
from typing import Protocol

from shared.model.kubernetes.volumes import AttachLimits, Attachment, Claim, StorageClass, Volume


class Storage(Protocol):
    """The part of one cluster's Kubernetes API that few decisions need."""

    def claims(self, namespaces: Collection[str]) -> tuple[Claim, ...]:
        """Return the claims of these namespaces, sorted by namespace and name."""
        ...

    def volumes(self, names: Collection[str], free_of: Collection[str] = ()) -> tuple[Volume, ...]:
        """Return the volumes of these names that there are, sorted by name.

        Args:
            names: Of volumes.
            free_of: Names of classes whose free volumes are returned too.
        """
        ...

    def storage_classes(self) -> tuple[StorageClass, ...]:
        """Return all storage classes, sorted by name."""
        ...

    def attach_limits(self) -> tuple[AttachLimits, ...]:
        """Return what each node can attach, sorted by node."""
        ...

    def attached_volumes(self) -> tuple[Attachment, ...]:
        """Return the volumes attached to nodes, inline ones left out, sorted."""
        ...

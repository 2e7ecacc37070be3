"""Volumes, claims and storage classes over one API server."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from typing_extensions import override

from shared.kube.api import path_to
from shared.kube.lists import KubeReader, list_all
from shared.kube.paths_and_documents import ATTACHMENTS_PATH, claim_path
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.storage_objects import (
    decode_attachment,
    decode_csi_node,
    decode_storage_class,
    decode_volume,
)
from shared.model.errors import NotFoundError
from shared.model.kubernetes.volumes import (
    Claim,
    CsiNodeLimits,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from shared.ports import Storage

CLAIMS_PATH: Final = "/api/v1/persistentvolumeclaims"
VOLUMES_PATH: Final = "/api/v1/persistentvolumes"
CLASSES_PATH: Final = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES_PATH: Final = "/apis/storage.k8s.io/v1/csinodes"
# Up to so many are read one by one; beyond, one list is less work for both sides.
_SINGLE: Final = 8

_Read = TypeVar("_Read")


class KubeStorage(KubeReader, Storage):
    """Implements shared.ports.Storage."""

    @override
    def claims(self, namespaces: Collection[str]) -> tuple[Claim, ...]:
        wanted = sorted(set(namespaces))
        if len(wanted) > _SINGLE:
            found = [
                claim
                for claim in list_all(self._api, CLAIMS_PATH, decode_claim)
                if claim.namespace in namespaces
            ]
        else:
            found = [claim for name in wanted for claim in self._claims_of(name)]
        return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))

    def _claims_of(self, namespace: str) -> list[Claim]:
        """Return the claims of a namespace; none if no namespace can have that name."""
        try:
            return list_all(self._api, claim_path(namespace), decode_claim)
        except NotFoundError:
            return []

    @override
    def volumes(self, names: Collection[str], free_of: Collection[str] = ()) -> tuple[Volume, ...]:
        if free_of or len(names) > _SINGLE:
            listed = list_all(self._api, VOLUMES_PATH, decode_volume)
            found = [
                volume
                for volume in listed
                if volume.name in names or (volume.is_free and volume.storage_class in free_of)
            ]
        else:
            raws = [self._find(path_to(VOLUMES_PATH, name)) for name in names]
            found = [decode_volume(raw) for raw in raws if raw is not None]
        return tuple(sorted(found, key=lambda entry: entry.name))

    @override
    def storage_classes(self) -> tuple[StorageClass, ...]:
        return self._sorted(
            CLASSES_PATH, decode_storage_class, lambda storage_class: storage_class.name
        )

    @override
    def attach_limits(self) -> tuple[CsiNodeLimits, ...]:
        return self._sorted(
            CSI_NODES_PATH,
            decode_csi_node,
            lambda limits: limits.node_name,
        )

    @override
    def attached_volumes(self) -> tuple[VolumeAttachment, ...]:
        found = list_all(self._api, ATTACHMENTS_PATH, decode_attachment)
        return tuple(sorted(attachment for attachment in found if attachment.volume))

    def _sorted(
        self,
        path: str,
        decode: Callable[[Mapping[str, Any]], _Read],
        key: Callable[[_Read], str],
    ) -> tuple[_Read, ...]:
        return tuple(sorted(list_all(self._api, path, decode), key=key))

"""The part of a cluster in memory that knows volumes and namespaces."""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any

from shared.manifests.raw_json import mapping, text_map
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.storage_objects import (
    decode_attachment,
    decode_csi_node,
    decode_storage_class,
    decode_volume,
)
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import (
    EBS_DRIVER,
    Claim,
    CsiNodeLimits,
    StorageClass,
    Volume,
    VolumeAttachment,
)

_Stored = Claim | Volume | StorageClass | CsiNodeLimits | VolumeAttachment
_DECODERS: Mapping[str, Callable[[Mapping[str, Any]], _Stored]] = {
    "PersistentVolumeClaim": decode_claim,
    "PersistentVolume": decode_volume,
    "StorageClass": decode_storage_class,
    "CSINode": decode_csi_node,
    "VolumeAttachment": decode_attachment,
}


class FakeStorage:
    """Implements shared.ports.Storage; every read's name is in `reads`."""

    def __init__(self) -> None:
        self.reads: list[str] = []
        self._errors: dict[str, deque[Exception]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}
        self._claims: list[Claim] = []
        self._volumes: list[Volume] = []
        self._classes: list[StorageClass] = []
        self._limits: list[CsiNodeLimits] = []
        self._attachments: list[VolumeAttachment] = []

    def fail_next(self, method: str, *errors: Exception) -> None:
        """Make the next calls of a method raise these errors, one each."""
        self._errors.setdefault(method, deque()).extend(errors)

    def store(self, *values: _Stored) -> None:
        """Keep these values."""
        for value in values:
            match value:
                case Claim():
                    self._claims.append(value)
                case Volume():
                    self._volumes.append(value)
                case StorageClass():
                    self._classes.append(value)
                case CsiNodeLimits():
                    self._limits.append(value)
                case VolumeAttachment():
                    self._attachments.append(value)

    def bring_claims(self, pod: Pod) -> None:
        """Make the claims of a pod that are not stored yet: EBS volumes, made for its node."""
        known = {claim.key for claim in self._claims}
        for name in pod.scheduling.claims:
            claim = Claim(namespace=pod.namespace, name=name, storage_class="waits")
            if claim.key not in known:
                self._claims.append(claim)
                self._classes = [
                    StorageClass(name="waits", driver=EBS_DRIVER, waits_for_first_consumer=True)
                ]

    def apply_storage(self, raw: Mapping[str, Any]) -> bool:
        """Store a raw manifest; return whether its kind is one that is kept here."""
        if raw["kind"] == "Namespace":
            metadata = mapping(raw["metadata"])
            name = metadata["name"]
            own = {"kubernetes.io/metadata.name": name}
            self.namespace_labels[name] = {**text_map(metadata.get("labels")), **own}
            return True
        decode = _DECODERS.get(raw["kind"])
        if raw["kind"] == "PersistentVolumeClaim":
            # As the API server writes it, until a controller binds it.
            raw = {**raw, "status": {"phase": "Pending", **mapping(raw.get("status"))}}
        if decode is not None:
            self.store(decode(raw))
        return decode is not None

    def claims(self, namespaces: Collection[str]) -> tuple[Claim, ...]:
        self._read("claims")
        found = [claim for claim in self._claims if claim.namespace in namespaces]
        return tuple(sorted(found, key=lambda entry: entry.key))

    def volumes(self, names: Collection[str], free_of: Collection[str] = ()) -> tuple[Volume, ...]:
        self._read("volumes")
        found = [
            volume
            for volume in self._volumes
            if volume.name in names or (volume.is_free and volume.storage_class in free_of)
        ]
        return tuple(sorted(found, key=lambda entry: entry.name))

    def storage_classes(self) -> tuple[StorageClass, ...]:
        self._read("storage_classes")
        return tuple(sorted(self._classes, key=lambda pod_class: pod_class.name))

    def attach_limits(self) -> tuple[CsiNodeLimits, ...]:
        self._read("attach_limits")
        return tuple(sorted(self._limits, key=lambda limit: limit.node_name))

    def attached_volumes(self) -> tuple[VolumeAttachment, ...]:
        self._read("attached_volumes")
        return tuple(sorted(attachment for attachment in self._attachments if attachment.volume))

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        self._read("namespaces")
        return dict(sorted(self.namespace_labels.items()))

    def leave_copies(self) -> bool:
        return False

    def _read(self, method: str) -> None:
        self.reads.append(method)
        self._raise_planned(method)

    def _raise_planned(self, method: str) -> None:
        planned = self._errors.get(method)
        if planned:
            raise planned.popleft()


def merged(known: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str]:
    """Return labels or annotations after a change; None removes a key."""
    both = {**known, **wanted}
    return {k: v for k, v in both.items() if v is not None}

"""Claims, volumes and classes as `Volumes` sees them, and pods that use them."""

from collections.abc import Iterable
from typing import Any

from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.node_demands import VolumeLookup
from shared.manifests.volumes.storage_objects import decode_storage_class, decode_volume
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from tests import builders as make


def facts(*raws: dict[str, Any], complete: bool = True) -> VolumeLookup:
    def of(kind: str) -> Iterable[dict[str, Any]]:
        return (raw for raw in raws if raw["kind"] == kind)

    return VolumeLookup(
        map(decode_claim, of("PersistentVolumeClaim")),
        map(decode_volume, of("PersistentVolume")),
        map(decode_storage_class, of("StorageClass")),
        complete=complete,
    )


def pod(name: str = "a", *claims: str, **fields: Any) -> Pod:
    scheduling = make.scheduling(claims=claims or ("data",))
    return replace(make.pod(name), namespace="shop", scheduling=scheduling, **fields)

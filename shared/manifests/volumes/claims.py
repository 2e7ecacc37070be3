"""Claims of pods, existing and to be created.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#persistentvolumeclaims,
https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes (2026-11).
"""

from typing import Final

from shared.manifests.raw_json import Raw, controller_ref, mapping, mappings, text, text_map, texts
from shared.model.kubernetes.volumes import Claim

_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_MANY_NODES: Final = frozenset({"ReadOnlyMany", "ReadWriteMany"})


def decode_claim(raw: Raw) -> Claim:
    """Return the claim."""
    metadata, spec = mapping(raw.get("metadata")), mapping(raw.get("spec"))
    owner = controller_ref(metadata)
    phase = mapping(raw.get("status")).get("phase")
    return Claim(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        volume=text(spec.get("volumeName")),
        storage_class=class_of(metadata, spec),
        many_nodes=not _MANY_NODES.isdisjoint(texts(spec.get("accessModes"))),
        one_pod="ReadWriteOncePod" in texts(spec.get("accessModes")),
        pending=phase == "Pending",
        lost=phase == "Lost",
        deleting=metadata.get("deletionTimestamp") is not None,
        owner=owner.uid if owner is not None and owner.kind == "Pod" else "",
    )


def ephemeral_claims(namespace: str, pod_name: str, spec: Raw) -> tuple[Claim, ...]:
    """Return the claims that will be created for a pod's generic ephemeral volumes, sorted.

    Args:
        namespace: Namespace of the pod.
        pod_name: Its name.
        spec: Its spec.
    """
    found = []
    for volume in mappings(spec.get("volumes")):
        template = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
        if volume.get("ephemeral"):
            own = {"namespace": namespace, "name": f"{pod_name}-{text(volume.get('name'))}"}
            given = mapping(template.get("metadata")).get("annotations")
            found.append(decode_claim({**template, "metadata": {**own, "annotations": given}}))
    return tuple(sorted(found, key=lambda entry: entry.name))


def class_of(metadata: Raw, spec: Raw) -> str | None:
    """Return the name of the class, from the old annotation if there is one; None without any."""
    old = text_map(metadata.get("annotations")).get(_OLD_CLASS)
    name = spec.get("storageClassName") if old is None else old
    return name if isinstance(name, str) else None

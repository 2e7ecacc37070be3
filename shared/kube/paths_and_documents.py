"""Paths and documents of calls, and what some answers mean."""

from collections.abc import Mapping
from typing import Any, Final

from shared.kube.api import Reply, path_to
from shared.manifests.nodes import encode_taint
from shared.manifests.raw_json import mapping, text
from shared.model.provisioner import Provisioner
from shared.ports import NodeManifest

NAMESPACES_PATH: Final = "/api/v1/namespaces"
ATTACHMENTS_PATH: Final = "/apis/storage.k8s.io/v1/volumeattachments"


def pod_path(namespace: str, name: str) -> str:
    """Return the path of a pod."""
    return path_to(NAMESPACES_PATH, namespace, "pods", name)


def claim_path(namespace: str, *name: str) -> str:
    """Return the path of a claim, or of all claims of a namespace."""
    return path_to(NAMESPACES_PATH, namespace, "persistentvolumeclaims", *name)


def delete_options(conditions: Mapping[str, str]) -> dict[str, Any]:
    """Return options that delete an object only if it still has this uid (and resourceVersion)."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": dict(conditions)}


def is_eviction_refusal(reply: Reply) -> bool:
    """Return whether a budget refused an eviction, and not the server's own load limit.

    Status 500 means that several budgets protect the pod: only their owner can resolve it.
    """
    if reply.status == 429:
        return "DisruptionBudget" in reply.causes or reply.delay is None
    return reply.status == 500


def attachment_parts(raw: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return name, node and PersistentVolume of a VolumeAttachment; no volume if it is inline."""
    spec = mapping(raw.get("spec"))
    name = text(mapping(raw.get("metadata")).get("name"))
    volume = text(mapping(spec.get("source")).get("persistentVolumeName"))
    return name, text(spec.get("nodeName")), volume


def owner_reference(owner: Provisioner | Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner reference of a Provisioner or NodePool; a reference is returned as it is.

    It does not block the owner's deletion: that would need a permission on the owner's finalizers.
    """
    if not isinstance(owner, Provisioner):
        return dict(owner)
    version, kind = owner.dialect.owner_version, owner.kind.value
    return {"apiVersion": version, "kind": kind, "name": owner.name, "uid": owner.uid}


def node_document(manifest: NodeManifest) -> dict[str, Any]:
    """Return the Node document.

    The API server keeps the status of a Node that is created; it is left out when it is empty.
    """
    metadata: dict[str, Any] = {
        "name": manifest.name,
        "labels": dict(manifest.labels),
        "annotations": dict(manifest.annotations),
        "finalizers": list(manifest.finalizers),
    }
    if manifest.owner is not None:
        metadata["ownerReferences"] = [owner_reference(manifest.owner)]
    amounts = {"capacity": manifest.capacity, "allocatable": manifest.allocatable}
    status = {name: found.to_quantities() for name, found in amounts.items() if found}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {
            "providerID": manifest.provider_id,
            "taints": [encode_taint(taint) for taint in manifest.taints],
        },
        **({"status": status} if status else {}),
    }

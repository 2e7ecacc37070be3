"""NodeClaims of Karpenter v1: reads them, keeps them in an annotation, and creates them again.

Source: https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/apis/v1/nodeclaim.go and
nodeclaim_status.go there (2026-11).
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from functions.cli.migrate.node_claims import NODE_CLAIM_KIND, NODE_CLAIM_VERSION, NodeClaim
from shared.manifests.raw_json import Raw, condition, mapping, text, text_map, texts, timestamp
from shared.model import labels as keys
from shared.model.ec2.launches import Instance
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner

# The conditions of a NodeClaim. Karpenter launches an instance for a NodeClaim without Launched.
_CONDITIONS: Final = ("Initialized", "Launched", "Ready", "Registered")


def decode_node_claim(raw: Raw) -> NodeClaim:
    """Return the NodeClaim."""
    metadata, spec, status = (mapping(raw.get(k)) for k in ("metadata", "spec", "status"))
    labels = text_map(metadata.get("labels"))
    drifted = condition(status, "Drifted")
    drifts = text(drifted.get("status")) == "True"
    name = text(metadata.get("name"))
    return NodeClaim(
        name=name,
        uid=text(metadata.get("uid")),
        resource_version=text(metadata.get("resourceVersion")),
        node_pool=labels.get(keys.NODE_POOL, ""),
        provider_id=text(status.get("providerID")),
        registered=text(condition(status, "Registered").get("status")) == "True",
        finalizers=texts(metadata.get("finalizers")),
        deletion_at=timestamp(metadata.get("deletionTimestamp")),
        kept={
            "name": name,
            "labels": labels,
            "annotations": text_map(metadata.get("annotations")),
            "spec": spec,
            "drifted": text(drifted.get("reason")) if drifts else "",
        },
    )


def kept_claim_text(claim: NodeClaim) -> str:
    """Return a NodeClaim as text for the annotation of its Node."""
    return json.dumps(claim.kept, sort_keys=True, separators=(",", ":"))


def read_kept_claim(node: Node) -> Mapping[str, Any]:
    """Return the NodeClaim in a Node's annotation.

    Raises:
        InvalidManifestError: If it cannot be read, for example because it was edited.
    """
    try:
        kept = json.loads(node.annotations.get(keys.NODE_CLAIM, ""))
        if isinstance(kept["spec"], dict) and kept["name"]:
            return dict(kept)
    except (ValueError, KeyError, TypeError):
        pass
    raise InvalidManifestError(
        field=f"Node {node.name}: metadata.annotations[{keys.NODE_CLAIM}]",
        value=node.annotations.get(keys.NODE_CLAIM, "")[:40],
        remedy="it must hold a NodeClaim: drain the node, and Karpenter launches another",
    )


def node_claim_document(kept: Mapping[str, Any], owner: Provisioner) -> dict[str, Any]:
    """Return the manifest that creates a kept NodeClaim again, owned by its NodePool.

    It has the finalizer from the beginning, which Karpenter adds before anything else.
    """
    return {
        "apiVersion": NODE_CLAIM_VERSION,
        "kind": NODE_CLAIM_KIND,
        "metadata": {
            "name": kept["name"],
            "labels": text_map(kept.get("labels")),
            "annotations": text_map(kept.get("annotations")),
            "finalizers": [keys.TERMINATION_FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": owner.dialect.owner_version,
                    "kind": owner.kind.value,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": kept["spec"],
    }


def node_claim_status(node: Node, instance: Instance, at: datetime) -> dict[str, Any]:
    """Return the status of a NodeClaim whose instance has joined as this Node."""
    written = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "nodeName": node.name,
        "providerID": node.provider_id,
        "imageID": instance.image_id,
        "capacity": node.capacity.to_quantities(),
        "allocatable": node.allocatable.to_quantities(),
        "conditions": [
            {
                "type": name,
                "status": "True",
                "reason": name,
                "message": "",
                "lastTransitionTime": written,
                "observedGeneration": 1,
            }
            for name in _CONDITIONS
        ],
    }

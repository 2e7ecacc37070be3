"""Whose a node is, read from Node, NodeClaims and the tags of its instance alone."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Object = Mapping[str, Any]
DOVETAIL: Final = "dovetail"
KARPENTER: Final = "karpenter"
_FINALIZER: Final = "karpenter.sh/termination"
_THEIRS: Final = ("karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass")


def hands_of(
    nodes: Iterable[Object], claims: Iterable[Object], instances: Iterable[Object]
) -> dict[str, str]:
    """Return for each instance id `dovetail`, `karpenter`, or what is wrong for either."""
    tags = {
        instance["InstanceId"]: {tag["Key"]: tag["Value"] for tag in instance.get("Tags") or []}
        for instance in instances
    }
    claimed: dict[str, Object] = {}
    for claim in claims:
        claimed[(claim.get("status") or {}).get("providerID", "")] = claim
    found = {}
    for node in nodes:
        provider_id = (node.get("spec") or {}).get("providerID", "")
        instance_id = provider_id.rpartition("/")[2]
        if instance_id in tags:
            found[instance_id] = _hand(node, claimed.get(provider_id), tags[instance_id])
    return found


def _hand(node: Object, claim: Object | None, tags: Mapping[str, str]) -> str:
    metadata = node["metadata"]
    ours = [key for key in tags if key.startswith("dovetail.dev/")]
    theirs = [key for key in _THEIRS if key in tags]
    if _FINALIZER not in (metadata.get("finalizers") or []):
        return "the Node has no finalizer"
    owners = {entry["kind"]: entry["uid"] for entry in metadata.get("ownerReferences") or []}
    if "dovetail.dev/slot" in (metadata.get("annotations") or {}):
        if claim is not None or theirs or not ours or set(owners) != {"NodePool"}:
            return "the Node is Dovetail's, and not all else"
        return DOVETAIL
    if claim is None or owners != {"NodeClaim": claim["metadata"]["uid"]}:
        return "the Node is not owned by the NodeClaim of its instance"
    held = _FINALIZER in (claim["metadata"].get("finalizers") or [])
    if ours or len(theirs) != len(_THEIRS) or not held:
        return "the NodeClaim is Karpenter's, and not all else"
    return KARPENTER

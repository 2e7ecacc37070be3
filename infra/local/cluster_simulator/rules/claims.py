"""What a pod's volumes say against a node (a second opinion: standard library only).

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/ and
https://kubernetes.io/docs/concepts/storage/storage-limits/ (2026-08).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from infra.local.cluster_simulator.rules.amounts import amounts
from infra.local.cluster_simulator.rules.matching import (
    ClusterView,
    Object,
    labels_of,
    matches_expression,
    matches_node_selector,
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NOT_MADE: Final = "kubernetes.io/no-provisioner"
_SINGLE_POD: Final = "ReadWriteOncePod"
# Each place label by its present name; volumes may still carry the older one.
_PLACE_LABELS: Final = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}


def claim_names(pod: Object) -> list[str]:
    """Return the PersistentVolumeClaims a pod mounts, those made for it alone included."""
    found = []
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            found.append(f"{pod['metadata']['name']}-{volume['name']}")
    return found


def volume_reasons(pod: Object, node: Object, cluster: ClusterView) -> list[str]:
    """Return what the pod's volumes say against a node."""
    found = []
    for name in claim_names(pod):
        key = (pod["metadata"]["namespace"], name)
        claim = cluster.claims.get(key)
        if claim is None:
            found.append(f'persistentvolumeclaim "{name}" not found')
            continue
        if (claim.get("metadata") or {}).get("deletionTimestamp"):
            found.append(f'persistentvolumeclaim "{name}" is being deleted')
        elif claim["spec"].get("volumeName"):
            found.extend(_bound_reasons(claim, node, cluster))
        else:
            found.extend(_unbound_reasons(claim, node, cluster))
        if _SINGLE_POD in (claim["spec"].get("accessModes") or ()) and _is_taken(pod, key, cluster):
            found.append("node has pod using PersistentVolumeClaim with ReadWriteOncePod")
    return found


def _is_taken(pod: Object, key: tuple[str, str], cluster: ClusterView) -> bool:
    return any(
        other["metadata"]["namespace"] == key[0]
        and other["metadata"]["name"] != pod["metadata"]["name"]
        and key[1] in claim_names(other)
        for other in cluster.pods
    )


def _bound_reasons(claim: Object, node: Object, cluster: ClusterView) -> list[str]:
    volume = cluster.volumes.get(claim["spec"]["volumeName"])
    if volume is None:
        return [f'persistentvolume "{claim["spec"]["volumeName"]}" not found']
    if not _admits(volume, node):
        return ["node(s) had volume node affinity conflict"]
    if not _is_in_place(volume, node):
        return ["node(s) had no available volume zone"]
    return []


def _admits(volume: Object, node: Object) -> bool:
    affinity = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return matches_node_selector(affinity, node)


def _is_in_place(volume: Object, node: Object) -> bool:
    """Compare the place labels of a volume and a node; a node without any is not asked."""
    here = labels_of(node)
    if not any(key in here for key in _PLACE_LABELS):
        return True
    given = (volume.get("metadata") or {}).get("labels") or {}
    return all(
        here.get(key, here.get(present)) in value.split("__")
        for key, present in _PLACE_LABELS.items()
        if (value := given.get(key)) is not None
    )


def _unbound_reasons(claim: Object, node: Object, cluster: ClusterView) -> list[str]:
    storage_class = cluster.storage_classes.get(claim["spec"].get("storageClassName") or "")
    if storage_class is None or storage_class.get("volumeBindingMode") != "WaitForFirstConsumer":
        return ["pod has unbound immediate PersistentVolumeClaims"]
    chosen = ((claim.get("metadata") or {}).get("annotations") or {}).get(SELECTED_NODE)
    if chosen and chosen != node["metadata"]["name"]:
        return ["node(s) did not find available persistent volumes to bind"]
    if any(serves(volume, claim, node) for volume in cluster.volumes.values()):
        return []
    if storage_class.get("provisioner") == NOT_MADE:
        return ["node(s) did not find available persistent volumes to bind"]
    allowed = storage_class.get("allowedTopologies") or ()
    if allowed and not any(_is_allowed(topology, node) for topology in allowed):
        return ["node(s) did not have enough free storage"]
    return []


def serves(volume: Object, claim: Object, node: Object) -> bool:
    """Return whether a volume that exists and is free could be bound to a claim here."""
    spec, wanted = volume["spec"], claim["spec"]
    if spec.get("claimRef") or spec.get("storageClassName") != wanted.get("storageClassName"):
        return False
    asked = amounts((wanted.get("resources") or {}).get("requests")).get("storage", 0)
    modes = set(wanted.get("accessModes") or ())
    return (
        amounts(spec.get("capacity")).get("storage", 0) >= asked
        and modes <= set(spec.get("accessModes") or ())
        and _admits(volume, node)
    )


def _is_allowed(topology: Object, node: Object) -> bool:
    expressions = topology.get("matchLabelExpressions") or ()
    return bool(expressions) and all(
        matches_expression({**expression, "operator": "In"}, labels_of(node))
        for expression in expressions
    )


def attach_reasons(
    pod: Object, node: Object, running: Sequence[Object], cluster: ClusterView
) -> list[str]:
    """Return a reason when a driver cannot attach all volumes to the node.

    Only new volumes count: one that stands there already is attached once for all pods.
    """
    csi_node = cluster.csi_nodes.get(node["metadata"]["name"])
    if csi_node is None:
        return []
    most = {
        driver["name"]: driver["allocatable"]["count"]
        for driver in csi_node["spec"].get("drivers") or ()
        if (driver.get("allocatable") or {}).get("count") is not None
    }
    attached = {attachment for other in running for attachment in _attachments(other, cluster)}
    added = set(_attachments(pod, cluster)) - attached
    for driver, limit in sorted(most.items()):
        new = sum(entry[0] == driver for entry in added)
        if new and new + sum(entry[0] == driver for entry in attached) > limit:
            return ["node(s) exceed max volume count"]
    return []


def _attachments(pod: Object, cluster: ClusterView) -> Iterator[tuple[str, str]]:
    """Yield (driver, volume) of every CSI volume a pod mounts, known or yet to be made."""
    namespace = pod["metadata"]["namespace"]
    for name in claim_names(pod):
        claim = cluster.claims.get((namespace, name))
        if claim is None:
            continue
        volume = cluster.volumes.get(claim["spec"].get("volumeName") or "")
        if volume is not None:
            csi = volume["spec"].get("csi")
            if csi:
                yield csi["driver"], csi["volumeHandle"]
            continue
        made_by = cluster.storage_classes.get(claim["spec"].get("storageClassName") or "", {})
        if made_by.get("provisioner", NOT_MADE) != NOT_MADE:
            yield made_by["provisioner"], f"{namespace}/{name}"

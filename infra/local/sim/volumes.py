"""Volumes for claims that wait for their first consumer: made where the pod goes."""

from typing import Final

from infra.local.sim.claims import claim_names
from infra.local.sim.client import Json
from infra.local.sim.kinds import CLAIM, VOLUME
from infra.local.sim.matching import labels_of
from infra.local.sim.world import World

_ZONE: Final = "topology.kubernetes.io/zone"


async def bind_claims(world: World, pod: Json, node: Json) -> None:
    """Give every unbound claim of a pod a volume in the zone of the node chosen for it."""
    for name in claim_names(pod):
        claim = world.informer(CLAIM).get(name, pod["metadata"]["namespace"])
        if claim is None or claim["spec"].get("volumeName"):
            continue
        volume_name = f"pvc-{claim['metadata']['uid']}"
        if world.informer(VOLUME).get(volume_name) is None:
            await world.create(VOLUME, _volume(volume_name, claim, node))
        change = {
            "metadata": {
                "annotations": {
                    "volume.kubernetes.io/selected-node": node["metadata"]["name"],
                    "pv.kubernetes.io/bind-completed": "yes",
                }
            },
            "spec": {"volumeName": volume_name},
        }
        bound = await world.patch(CLAIM, claim, change)
        capacity = claim["spec"]["resources"]["requests"]
        await world.patch_status(CLAIM, bound, {"phase": "Bound", "capacity": capacity})


def _volume(name: str, claim: Json, node: Json) -> Json:
    meta = claim["metadata"]
    spec: Json = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": claim["spec"]["resources"]["requests"],
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        },
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{meta['uid'][:17]}"},
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": claim["spec"].get("storageClassName") or "",
    }
    zone = labels_of(node).get(_ZONE)
    if zone:
        term = {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return VOLUME.document({"name": name}, spec=spec)

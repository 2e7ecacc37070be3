"""The EBS CSI driver beside a cluster: its limits, its volumes and their attachments.

What the node registrar, the external provisioner and the external attacher of the driver do; to
bind claims and to want attachments is the work of Kubernetes' own controllers.
Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/tree/master/docs and
https://kubernetes-csi.github.io/docs/sidecar-containers.html (2026-11).
"""

import asyncio
from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.informer import Key
from infra.local.cluster_simulator.instances import Sizes
from infra.local.cluster_simulator.kinds import (
    ATTACHMENT,
    CLAIM,
    CSI_NODE,
    NODE,
    STORAGE_CLASS,
    VOLUME,
)
from infra.local.cluster_simulator.rules.claims import SELECTED_NODE
from infra.local.cluster_simulator.rules.matching import is_true, labels_of
from infra.local.cluster_simulator.world import World, annotation, is_terminating

DRIVER: Final = "ebs.csi.aws.com"
ZONE: Final = "topology.kubernetes.io/zone"
DRIVER_ZONE: Final = "topology.ebs.csi.aws.com/zone"
_FINALIZER: Final = "external-attacher/ebs-csi-aws-com"


class CsiDriver:
    """One CSI driver whose volumes are bound to a zone."""

    def __init__(self, world: World, sizes: Sizes) -> None:
        self._world = world
        self._sizes = sizes
        self._nodes = world.queue(self._node)
        self._claims = world.queue(self._claim)
        self._volumes = world.queue(self._volume)
        self._attachments = world.queue(self._attachment)
        self._since: dict[tuple[str, str], float] = {}
        for kind, queue in (
            (NODE, self._nodes),
            (CLAIM, self._claims),
            (VOLUME, self._volumes),
            (ATTACHMENT, self._attachments),
        ):
            world.informer(kind).feed(queue.add)
        world.informer(CLAIM).subscribe(self._claim_gone)
        world.informer(CSI_NODE)
        world.informer(STORAGE_CLASS)

    def _claim_gone(self, old: Json | None, new: Json | None) -> None:
        if new is None and old is not None and old["spec"].get("volumeName"):
            self._volumes.add(("", old["spec"]["volumeName"]))

    async def _node(self, key: Key) -> None:
        """Register on a node: topology as a label, the limit of attachments in its CSINode."""
        node = self._world.nodes.objects.get(key)
        zone = labels_of(node).get(ZONE) if node is not None else None
        if node is None or zone is None or not is_true(node, "Ready"):
            return
        if labels_of(node).get(DRIVER_ZONE) != zone:
            await self._world.patch(NODE, node, {"metadata": {"labels": {DRIVER_ZONE: zone}}})
        found = self._world.informer(CSI_NODE).get(key[1])
        others = (found or {"spec": {}})["spec"].get("drivers") or []
        if any(other["name"] == DRIVER for other in others):
            return
        registered = {
            "name": DRIVER,
            "nodeID": (node["spec"].get("providerID") or key[1]).rsplit("/", 1)[-1],
            "topologyKeys": [DRIVER_ZONE, ZONE],
            "allocatable": {"count": self._sizes.of(node).volumes},
        }
        spec = {"drivers": [*others, registered]}
        if found is not None:
            # Real kubelets make it, without drivers, when they start.
            await self._world.patch(CSI_NODE, found, {"spec": spec})
            return
        metadata = {"name": key[1], "ownerReferences": [NODE.reference(node)]}
        await self._world.create(CSI_NODE, CSI_NODE.document(metadata, spec=spec))

    async def _claim(self, key: Key) -> float | None:
        """Make the volume of a claim in the zone of the node that was selected for it."""
        claim = self._world.informer(CLAIM).objects.get(key)
        if claim is None or is_terminating(claim) or claim["spec"].get("volumeName"):
            return None
        of_class = self._class_of(claim)
        if of_class.get("provisioner") != DRIVER:
            return None
        late = of_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        name = annotation(claim, SELECTED_NODE) or ""
        if late and not name:
            return None
        if late and self._world.nodes.get(name) is None:
            # Another node is selected for it then.
            change = {"metadata": {"annotations": {SELECTED_NODE: None}}}
            await self._world.patch(CLAIM, claim, change)
            return None
        zone = self._zone_for(name)
        wait = self._remaining(claim, "made", self._world.timing.volume_seconds)
        if not zone or wait > 0:
            return max(wait, self._world.timing.poll() if not zone else 0.0)
        volume = _volume(claim, of_class, zone)
        if self._world.informer(VOLUME).get(volume["metadata"]["name"]) is None:
            await self._world.create(VOLUME, volume)
        return None

    def _class_of(self, claim: Json) -> Json:
        name = claim["spec"].get("storageClassName") or ""
        return self._world.informer(STORAGE_CLASS).get(name) or {}

    def _zone_for(self, node_name: str) -> str:
        """Return the zone of a node the driver runs on, of any such node for an empty name."""
        for csi_node in self._world.informer(CSI_NODE):
            node = self._world.nodes.get(csi_node["metadata"]["name"])
            if node is not None and node_name in {"", node["metadata"]["name"]}:
                return labels_of(node).get(ZONE, "")
        return ""

    async def _volume(self, key: Key) -> float | None:
        """Delete a volume that no claim has any more, once it is detached everywhere."""
        volume = self._world.informer(VOLUME).objects.get(key)
        if volume is None or (volume["spec"].get("csi") or {}).get("driver") != DRIVER:
            return None
        claimed = volume["spec"].get("claimRef")
        kept = volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        if claimed is None or kept or is_terminating(volume):
            return None
        claim = self._world.informer(CLAIM).get(claimed["name"], claimed["namespace"])
        if claim is not None and claim["metadata"]["uid"] == claimed.get("uid"):
            return None
        if any(volume_of(entry) == key[1] for entry in self._world.informer(ATTACHMENT)):
            return self._world.timing.poll()
        await self._world.client.delete(VOLUME, volume)
        return None

    async def _attachment(self, key: Key) -> float | None:
        """Attach and detach, each after its time."""
        one = self._world.informer(ATTACHMENT).objects.get(key)
        if one is None or one["spec"]["attacher"] != DRIVER:
            return None
        timing = self._world.timing
        finalizers = one["metadata"].get("finalizers") or []
        if is_terminating(one):
            wait = self._remaining(one, "detached", timing.detach_seconds)
            if wait <= 0 and _FINALIZER in finalizers:
                left = [name for name in finalizers if name != _FINALIZER]
                await self._world.client.patch(ATTACHMENT, one, {"metadata": {"finalizers": left}})
            return wait if wait > 0 else None
        if _FINALIZER not in finalizers:
            change = {"metadata": {"finalizers": [*finalizers, _FINALIZER]}}
            one = await self._world.patch(ATTACHMENT, one, change)
        if is_attached(one):
            return None
        wait = self._remaining(one, "attached", timing.attach_seconds)
        if wait <= 0:
            await self._world.patch_status(ATTACHMENT, one, {"attached": True})
        return wait if wait > 0 else None

    def _remaining(self, thing: Json, what: str, seconds: float) -> float:
        now = asyncio.get_running_loop().time()
        since = self._since.setdefault((thing["metadata"]["uid"], what), now)
        return since + self._world.timing.real(seconds) - now


def volume_of(attachment: Json) -> str:
    """Return the PersistentVolume that a VolumeAttachment is about."""
    name: str = attachment["spec"]["source"].get("persistentVolumeName") or ""
    return name


def is_attached(attachment: Json) -> bool:
    return bool((attachment.get("status") or {}).get("attached"))


def _volume(claim: Json, of_class: Json, zone: str) -> Json:
    meta = claim["metadata"]
    term = {"matchExpressions": [{"key": DRIVER_ZONE, "operator": "In", "values": [zone]}]}
    spec: Json = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": claim["spec"]["resources"]["requests"],
        "claimRef": CLAIM.reference(claim),
        "csi": {"driver": DRIVER, "volumeHandle": f"vol-{meta['uid'].replace('-', '')[:17]}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "persistentVolumeReclaimPolicy": of_class.get("reclaimPolicy") or "Delete",
        "storageClassName": claim["spec"].get("storageClassName") or "",
    }
    return VOLUME.document({"name": f"pvc-{meta['uid']}"}, spec=spec)

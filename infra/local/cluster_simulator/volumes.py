"""Kubernetes' own controllers of volumes: binding claims, and wanting attachments.

Source: https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/controller/volume/attachdetach
(reconciler.go: detach only what is not mounted, by force after 6 minutes on an unhealthy node, at
once under the out-of-service taint) and .../persistentvolume/pv_controller.go, and
.../scheduler/framework/plugins/volumebinding/binder.go (read 2026-11-22).
"""

import asyncio
import hashlib
from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.csi import is_attached, volume_of
from infra.local.cluster_simulator.informer import Key
from infra.local.cluster_simulator.kinds import ATTACHMENT, CLAIM, VOLUME
from infra.local.cluster_simulator.rules.claims import SELECTED_NODE, claim_names, serves
from infra.local.cluster_simulator.rules.matching import is_finished, is_true, taints_of
from infra.local.cluster_simulator.world import World, annotation, is_terminating, node_of

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_ALL: Final = "all"
_BOUND: Final = "pv.kubernetes.io/bind-completed"
_ONE_NODE: Final = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})

# A PersistentVolume and a node.
Place = tuple[str, str]


class VolumeControllers:
    """Binds claims to the volumes made for them, and has volumes attached where pods need them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._volumes = world.queue(self._bind)
        self._rounds = world.queue(self._attach_and_detach, parallel=1)
        self._unwanted_since: dict[Place, float] = {}
        world.informer(VOLUME).feed(self._volumes.add)
        world.informer(CLAIM).subscribe(self._changed)
        world.informer(ATTACHMENT).subscribe(self._changed)
        world.pods.subscribe(self._pod_changed)

    def _changed(self, *_: Json | None) -> None:
        self._rounds.add(_ALL, self._world.timing.real(0.1))

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        if claim_names(new or old or {}):
            self._changed()

    async def _bind(self, key: Key) -> None:
        """Bind a claim to the volume that names it; a volume that names none is available."""
        volume = self._world.informer(VOLUME).objects.get(key)
        if volume is None or is_terminating(volume):
            return
        claimed = volume["spec"].get("claimRef")
        if claimed is None:
            await self._world.replace_status(VOLUME, volume, {"phase": "Available"})
            return
        claim = self._world.informer(CLAIM).get(claimed["name"], claimed["namespace"])
        if claim is None or claim["spec"].get("volumeName") not in {None, "", key[1]}:
            return
        if (volume.get("status") or {}).get("phase") != "Bound":
            await self._world.patch_status(VOLUME, volume, {"phase": "Bound"})
        if (claim.get("status") or {}).get("phase") == "Bound":
            return
        change = {"metadata": {"annotations": {_BOUND: "yes"}}, "spec": {"volumeName": key[1]}}
        claim = await self._world.patch(CLAIM, claim, change)
        status = {"phase": "Bound", "capacity": volume["spec"]["capacity"]}
        await self._world.patch_status(CLAIM, claim, status)

    async def _attach_and_detach(self, _: str) -> float | None:
        """Detach first, then attach; look again while something is still unwanted."""
        wanted = self._wanted()
        there = {(volume_of(entry), entry["spec"]["nodeName"]): entry
                 for entry in self._world.informer(ATTACHMENT)}  # fmt: skip
        for place in self._unwanted_since.keys() - (there.keys() - wanted):
            del self._unwanted_since[place]
        for place in sorted(there.keys() - wanted):
            if not is_terminating(there[place]) and self._may_detach(place):
                await self._world.client.delete(ATTACHMENT, there[place])
        for place in sorted(wanted - there.keys()):
            volume = self._world.informer(VOLUME).get(place[0])
            if volume is None or self._is_elsewhere(volume, place, there):
                continue
            await self._world.create(ATTACHMENT, _attachment(volume, place[1]))
        return self._world.timing.poll() if there.keys() - wanted or wanted - there.keys() else None

    def _wanted(self) -> set[Place]:
        """Return where pods need volumes; one that has ended or is gone needs none."""
        return {
            (volume["metadata"]["name"], node_of(pod))
            for pod in self._world.pods
            if node_of(pod) and not is_finished(pod) and claim_names(pod)
            for volume in volumes_of(self._world, pod)
        }

    def _may_detach(self, place: Place) -> bool:
        """Return whether a volume that no pod needs may be detached from a node.

        The kubelet of a healthy node unmounts it. From any other node it is detached after
        6 minutes, or at once when the node has the out-of-service taint.
        """
        now = asyncio.get_running_loop().time()
        since = self._unwanted_since.setdefault(place, now)
        node = self._world.nodes.get(place[1])
        if node is not None and is_true(node, "Ready"):
            return True
        if node is not None and any(taint["key"] == OUT_OF_SERVICE for taint in taints_of(node)):
            return True
        timing = self._world.timing
        return now - since > timing.real(timing.force_detach_seconds)

    def _is_elsewhere(self, volume: Json, place: Place, there: dict[Place, Json]) -> bool:
        """Return whether a volume for one node only is still attached to another."""
        alone = set(volume["spec"].get("accessModes") or ()) <= _ONE_NODE
        return alone and any(name == place[0] for name, node in there if node != place[1])


def volumes_of(world: World, pod: Json) -> list[Json]:
    """Return the PersistentVolumes of CSI drivers that the bound claims of a pod name."""
    found = []
    for name in claim_names(pod):
        claim = world.informer(CLAIM).get(name, pod["metadata"]["namespace"])
        bound = (claim or {"spec": {}})["spec"].get("volumeName") or ""
        volume = world.informer(VOLUME).get(bound)
        if volume is not None and volume["spec"].get("csi"):
            found.append(volume)
    return found


def are_attached(world: World, pod: Json) -> bool:
    """Return whether the kubelet may start a pod: all its CSI volumes are attached to its node."""
    attached = {
        (volume_of(entry), entry["spec"]["nodeName"])
        for entry in world.informer(ATTACHMENT)
        if is_attached(entry) and not is_terminating(entry)
    }
    return all(
        (volume["metadata"]["name"], node_of(pod)) in attached for volume in volumes_of(world, pod)
    )


async def prebind(world: World, pod: Json, node: Json) -> bool:
    """Ask for a volume for each unbound claim of a pod, on the node chosen for it.

    A free volume that fits is taken first.

    Returns:
        Whether all claims are bound, so that the pod can be.
    """
    complete = True
    for name in claim_names(pod):
        claim = world.informer(CLAIM).get(name, pod["metadata"]["namespace"])
        if claim is None or (claim.get("status") or {}).get("phase") == "Bound":
            continue
        complete = False
        if annotation(claim, SELECTED_NODE) or claim["spec"].get("volumeName"):
            continue
        if any(_is_of(volume, claim) for volume in world.informer(VOLUME)):
            continue
        free = next((entry for entry in world.informer(VOLUME) if serves(entry, claim, node)), None)
        if free is not None:
            await world.patch(VOLUME, free, {"spec": {"claimRef": CLAIM.reference(claim)}})
        else:
            selected = {SELECTED_NODE: node["metadata"]["name"]}
            await world.patch(CLAIM, claim, {"metadata": {"annotations": selected}})
    return complete


def _is_of(volume: Json, claim: Json) -> bool:
    return bool((volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"])


def _attachment(volume: Json, node_name: str) -> Json:
    """Return a VolumeAttachment under the name that Kubernetes gives it."""
    csi = volume["spec"]["csi"]
    parts = f"{csi['volumeHandle']}{csi['driver']}{node_name}"
    spec = {
        "attacher": csi["driver"],
        "nodeName": node_name,
        "source": {"persistentVolumeName": volume["metadata"]["name"]},
    }
    name = f"csi-{hashlib.sha256(parts.encode()).hexdigest()}"
    return ATTACHMENT.document({"name": name}, spec=spec)

"""Claims and volumes while pods are bound: read as Dovetail reads them, and growing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.rules.claims import claim_names
from shared.manifests.volumes.claims import decode_claim
from shared.manifests.volumes.storage_objects import (
    decode_csi_node,
    decode_storage_class,
    decode_volume,
)
from shared.model.kubernetes.volumes import (
    Claim,
    CsiNodeLimits,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.seeded_random import Json
from tests.scheduler_oracle.clusters.storage import EBS

_ZONE: Final = "topology.ebs.csi.aws.com/zone"


@dataclass(frozen=True, slots=True)
class RawStorage:
    """The documents of a case, as the port through which Dovetail asks for them."""

    case: Json

    def claims(self, namespaces: Collection[str]) -> tuple[Claim, ...]:
        found = [decode_claim(claim) for claim in self.case["claims"]]
        found.sort(key=lambda claim: (claim.namespace, claim.name))
        return tuple(claim for claim in found if claim.namespace in namespaces)

    def volumes(self, names: Collection[str], free_of: Collection[str] = ()) -> tuple[Volume, ...]:
        found = sorted(
            (decode_volume(volume) for volume in self.case["volumes"]), key=lambda v: v.name
        )
        return tuple(
            volume
            for volume in found
            if volume.name in names or (volume.is_free and volume.storage_class in free_of)
        )

    def storage_classes(self) -> tuple[StorageClass, ...]:
        found = (
            decode_storage_class(storage_pod_class)
            for storage_pod_class in self.case["storage_classes"]
        )
        return tuple(sorted(found, key=lambda entry: entry.name))

    def attach_limits(self) -> tuple[CsiNodeLimits, ...]:
        found = (decode_csi_node(csi_node) for csi_node in self.case.get("csi_nodes", ()))
        return tuple(sorted(found, key=lambda entry: entry.node_name))

    def attached_volumes(self) -> tuple[VolumeAttachment, ...]:
        bound = {key_of(claim): claim["spec"].get("volumeName") for claim in self.case["claims"]}
        found = []
        for pod in self.case["pods"]:
            space, node = pod["metadata"]["namespace"], pod["spec"].get("nodeName")
            for name in claim_names(pod) if node else ():
                volume = bound.get(key_of({"metadata": {"name": name, "namespace": space}}))
                if volume:
                    found.append(VolumeAttachment(node_name=node, driver=EBS, volume=volume))
        return tuple(sorted(found))

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        spaces: Mapping[str, Mapping[str, str]] = self.case["namespaces"]
        return spaces


def claims_of(case: Json) -> dict[Key, Json]:
    """Return the claims of a case, with those a controller makes for single pods."""
    found = {key_of(claim): claim for claim in case["claims"]}
    for pod in case["pods"]:
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral"):
                name = f"{pod['metadata']['name']}-{volume['name']}"
                metadata = {"name": name, "namespace": pod["metadata"]["namespace"]}
                template = volume["ephemeral"]["volumeClaimTemplate"]
                found.setdefault(key_of({"metadata": metadata}), {**template, "metadata": metadata})
    return found


def bind_claims(pod: Json, node: Json, claims: dict[Key, Json], volumes: dict[str, Json]) -> None:
    """Bind a pod's open claims: to a free volume made by hand, else to one made where it goes."""
    for name in claim_names(pod):
        key = key_of({"metadata": {"name": name, "namespace": pod["metadata"]["namespace"]}})
        claim = claims.get(key)
        if claim is None or claim["spec"].get("volumeName"):
            continue
        zone = node["metadata"]["labels"].get(keys.ZONE, "")
        made = f"pv-{name}"
        if made not in volumes:
            term = {"matchExpressions": [{"key": _ZONE, "operator": "In", "values": [zone]}]}
            volumes[made] = {
                "metadata": {"name": made},
                "spec": {
                    "csi": {"driver": EBS, "volumeHandle": f"vol-{name}"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                },
            }
        claims[key] = {**claim, "spec": {**claim["spec"], "volumeName": made}}

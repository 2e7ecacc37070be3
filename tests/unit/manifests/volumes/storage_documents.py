"""Claims, volumes and classes as an API server answers them."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.volumes import EBS_DRIVER

ZONE = "us-east-1a"
OTHER_ZONE = "us-east-1b"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def in_zones(*zones: str, key: str = EBS_ZONE) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(zones)}]}


def claim(name: str = "data", **more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], **more.pop("spec", {})}
    metadata = {"namespace": "shop", "name": name, **more.pop("metadata", {})}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, **more}


def volume(name: str = "pv", *terms: dict[str, Any], **spec: Any) -> dict[str, Any]:
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": spec.pop("labels", {})},
        "spec": {"csi": {"driver": EBS_DRIVER}, **affinity, **spec},
    }


def storage_class(name: str = "gp3", *zones: str, **more: Any) -> dict[str, Any]:
    expressions = [{"key": keys.ZONE, "values": list(zones)}]
    return {
        "kind": "StorageClass",
        "metadata": {"name": name, **more.pop("metadata", {})},
        "provisioner": EBS_DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": expressions}] if zones else [],
        **more,
    }

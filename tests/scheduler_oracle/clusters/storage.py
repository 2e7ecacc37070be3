"""Volumes of pods: bound ones, ones made where the pod goes, and what nodes can attach."""

from typing import Final

from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.catalog import ZONES
from tests.scheduler_oracle.clusters.seeded_random import Dice, Json

EBS: Final = "ebs.csi.aws.com"
_MISSING: Final = 0.03


def draw_claims(dice: Dice, case: Json) -> None:
    """Give some pods a volume, and say how many some nodes can attach."""
    if "claims" not in dice.on:
        return
    case["storage_classes"] = [
        _storage_class("late", {}),
        _storage_class("tied", {"allowedTopologies": [_topology(dice)]}),
        _storage_class("hand", {"provisioner": "kubernetes.io/no-provisioner"}),
    ]
    for pod in case["pods"]:
        if pod["metadata"]["namespace"] != "kube-system" and dice.luck(0.4):
            _give(dice, case, pod)
    for made in case["claims"]:
        if made["spec"]["storageClassName"] != "hand" and dice.has("single_pod_claims", 0.5):
            made["spec"]["accessModes"] = ["ReadWriteOncePod"]
    if "attach_limits" in dice.on:
        case["volume_limits"] = {name: dice.upto(1, 3) for name in case["types"]}
        case["csi_nodes"] = [
            csi_node(node["metadata"]["name"], dice.upto(0, 2))
            for node in case["nodes"]
            if dice.luck(0.8)
        ]


def csi_node(name: str, count: int) -> Json:
    """Return what says how many volumes a node can attach."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": EBS, "nodeID": name, "allocatable": {"count": count}}]},
    }


def _storage_class(name: str, more: Json) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": EBS,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def _topology(dice: Dice) -> Json:
    return {"matchLabelExpressions": [{"key": keys.ZONE, "values": dice.some(ZONES, 2)}]}


def _give(dice: Dice, case: Json, pod: Json) -> None:
    """Give a pod one volume; who stands already has one that is bound where it stands."""
    node = pod["spec"].get("nodeName")
    name = f"data-{pod['metadata']['name']}"
    if node is not None:
        here = next(entry for entry in case["nodes"] if entry["metadata"]["name"] == node)
        zone = here["metadata"]["labels"].get(keys.ZONE)
        if zone is not None:
            _mount(pod, name)
            _bind(case, pod, name, zone)
        return
    common = [entry["metadata"] for entry in case["claims"] if _is_common(entry)]
    if common and dice.has("shared_claims", 0.4):
        other = dice.one(common)
        if other["namespace"] == pod["metadata"]["namespace"]:
            _mount(pod, other["name"])
            return
    if dice.luck(0.15):
        _give_own(dice, case, pod)
        return
    _mount(pod, name)
    way = dice.one(("bound", "bound", "late", "late", "tied", "hand"))
    if dice.luck(_MISSING):
        return
    if way == "bound":
        _bind(case, pod, name, dice.one(ZONES))
    elif way == "hand" and not any(
        entry["spec"].get("storageClassName") == "hand" for entry in case["claims"]
    ):
        case["volumes"].append(_volume(f"pv-{name}", dice.one(ZONES), "hand"))
        case["claims"].append(claim(pod, name, "hand"))
    else:
        case["claims"].append(claim(pod, name, "tied" if way == "tied" else "late"))


def _is_common(made: Json) -> bool:
    """Return whether pods share a claim: it lives longer than any of them."""
    return "ownerReferences" not in made["metadata"]


def _give_own(dice: Dice, case: Json, pod: Json) -> None:
    """Give a pod a volume that lives as long as it; its claim is mostly there already."""
    kind, meta = dice.one(("late", "tied")), pod["metadata"]
    template = {"spec": _spec(kind)}
    pod["spec"]["volumes"] = [{"name": "own", "ephemeral": {"volumeClaimTemplate": template}}]
    made = claim(pod, f"{meta['name']}-own", kind)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    if not dice.luck(_MISSING):
        case["claims"].append(made)


def _mount(pod: Json, name: str) -> None:
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def _bind(case: Json, pod: Json, name: str, zone: str) -> None:
    made = claim(pod, name, "late")
    made["spec"]["volumeName"] = f"pv-{name}"
    made["status"]["phase"] = "Bound"
    case["claims"].append(made)
    volume = _volume(f"pv-{name}", zone, "late")
    volume["spec"]["claimRef"] = {"name": name, "namespace": pod["metadata"]["namespace"]}
    case["volumes"].append(volume)


def _spec(storage_class: str) -> Json:
    return {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "10Gi"}},
    }


def claim(pod: Json, name: str, storage_class: str) -> Json:
    """Return a claim of a pod's namespace that is not bound."""
    metadata = {"name": name, "namespace": pod["metadata"]["namespace"], "uid": f"uid-{name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": _spec(storage_class),
        "status": {"phase": "Pending"},
    }


def _volume(name: str, zone: str, storage_class: str) -> Json:
    source: Json = {"csi": {"driver": EBS, "volumeHandle": f"vol-{name}"}}
    if storage_class == "hand":
        source = {"local": {"path": "/mnt/disk"}}
    expression = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
            "storageClassName": storage_class,
            **source,
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        },
        "status": {"phase": "Available" if storage_class == "hand" else "Bound"},
    }

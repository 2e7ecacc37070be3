"""Provisioners and DaemonSets of a drawn cluster."""

from tests.scheduler_oracle.clusters import keys
from tests.scheduler_oracle.clusters.catalog import ZONES
from tests.scheduler_oracle.clusters.node_demands import SOFT_TAINT, TAINTS, expression, taints
from tests.scheduler_oracle.clusters.seeded_random import Dice, Json


def provisioner(dice: Dice, name: str) -> Json:
    """Return one Provisioner, mostly wide."""
    spec: Json = {
        "requirements": _requirements(dice),
        "provider": {
            "subnetSelector": {"cluster": "test"},
            "securityGroupSelector": {"cluster": "test"},
        },
    }
    if found := taints(dice, 0.3):
        spec["taints"] = found
    if dice.has("startup_taints", 0.6):
        spec["startupTaints"] = [{"key": "example.com/agent", "effect": "NoSchedule"}]
    if dice.has("custom_keys", 0.4):
        spec["labels"] = {keys.TEAM: dice.one(keys.TEAMS)}
    if dice.has("several_provisioners", 0.5):
        spec["weight"] = dice.one((1, 10, 100))
    if dice.has("limits", 0.7):
        spec["limits"] = {"resources": _limits(dice)}
    if dice.has("kubelet", 0.7):
        spec["kubeletConfiguration"] = _kubelet(dice)
    metadata: Json = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if dice.has("several_provisioners", 0.05):
        metadata["annotations"] = {keys.PAUSED: "true"}
    elif dice.has("several_provisioners", 0.05):
        metadata["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    return {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": metadata,
        "spec": spec,
    }


def buys(owner: Json) -> bool:
    """Return whether a Provisioner may still make nodes: it is neither paused nor going."""
    metadata = owner["metadata"]
    return not metadata.get("annotations") and not metadata.get("deletionTimestamp")


def _requirements(dice: Dice) -> list[Json]:
    found: list[Json] = []
    if dice.has("capacity_type", 0.7):
        found.append(_in(keys.CAPACITY_TYPE, dice.some(("on-demand", "spot"), 2)))
    if dice.luck(0.6):
        found.append(_in(keys.ARCH, ["amd64", "arm64"]))
    if dice.luck(0.2):
        operator = dice.one(("In", "In", "NotIn"))
        found.append({"key": keys.ZONE, "operator": operator, "values": dice.some(ZONES, 2)})
    if dice.luck(0.2):
        found.append({"key": keys.CPU, "operator": "Lt", "values": [dice.one(("5", "9", "17"))]})
    if "extended" in dice.on or dice.luck(0.2):
        found.append(_in(keys.CATEGORY, ["c", "g", "inf", "m", "p", "r", "t"]))
    elif dice.luck(0.15):
        found.append(_in(keys.FAMILY, dice.some(("c5", "m5", "m6g", "r5"), 3)))
    if dice.has("custom_keys", 0.6) or dice.has("spread_custom", 0.7):
        found.append(dice.one((_in(keys.RACK, list(keys.RACKS)), _in(keys.RACK, ["r1"]))))
    if dice.luck(0.1):
        found.append({"key": keys.GENERATION, "operator": "Gt", "values": ["4"]})
    if dice.has("custom_keys", 0.4):
        found.append(
            dice.one(
                (
                    _in(keys.LEVEL, ["1", "2", "3"]),
                    {"key": keys.LEVEL, "operator": "Gt", "values": ["1"]},
                    {"key": keys.LEVEL, "operator": "Exists"},
                    {"key": keys.LEVEL, "operator": "DoesNotExist"},
                )
            )
        )
    return found


def _in(key: str, values: list[str]) -> Json:
    return {"key": key, "operator": "In", "values": values}


def _limits(dice: Dice) -> Json:
    found = {}
    if dice.luck(0.8):
        found["cpu"] = dice.one(("0", "4", "9", "16", "64", "64", "200"))
    if dice.luck(0.3):
        found["memory"] = dice.one(("16Gi", "70Gi", "500Gi"))
    if dice.luck(0.1):
        found["pods"] = dice.one(("30", "60"))
    if dice.has("extended", 0.3):
        found["nvidia.com/gpu"] = dice.one(("0", "1", "4"))
    return found or {"cpu": "8"}


def _kubelet(dice: Dice) -> Json:
    found: Json = {}
    if dice.luck(0.5):
        found["maxPods"] = dice.one((4, 8, 20, 110))
    if dice.luck(0.3):
        found["podsPerCore"] = dice.one((2, 4, 10))
    if dice.luck(0.4):
        found["systemReserved"] = {"cpu": "200m", "memory": "300Mi"}
    if dice.luck(0.3):
        found["kubeReserved"] = {"cpu": "150m", "memory": "500Mi", "ephemeral-storage": "1Gi"}
    if dice.luck(0.3):
        found["evictionHard"] = {"memory.available": dice.one(("5%", "200Mi"))}
    return found


def daemonset(dice: Dice, name: str) -> Json:
    """Return one DaemonSet; some run on part of the nodes only."""
    requests = {"cpu": dice.one(("50m", "100m", "200m")), "memory": dice.one(("64Mi", "200Mi"))}
    spec: Json = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if dice.luck(0.5):
        spec["tolerations"] = [{"operator": "Exists"}]
    elif dice.has("taints", 0.5):
        spec["tolerations"] = [{"key": dice.one(TAINTS)["key"], "operator": "Exists"}]
    elif dice.has("soft_taints", 0.5):
        spec["tolerations"] = [{"key": SOFT_TAINT["key"], "operator": "Exists"}]
    if dice.luck(0.3):
        spec["nodeSelector"] = {keys.ARCH: dice.one(("amd64", "arm64"))}
    if dice.has("node_affinity", 0.4):
        terms = [{"matchExpressions": [expression(dice)]} for _ in range(dice.upto(1, 2))]
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        }
    if dice.has("host_ports", 0.4):
        spec["containers"][0]["ports"] = [{"containerPort": 9090, "hostPort": 9090}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"uid-{name}"},
        "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": spec}},
    }

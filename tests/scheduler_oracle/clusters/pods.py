"""Pods: pending ones, bound ones, and those that are not to be planned."""

import copy

from tests.scheduler_oracle.clusters.node_demands import containers, node_wishes, tolerations
from tests.scheduler_oracle.clusters.seeded_random import Dice, Json
from tests.scheduler_oracle.clusters.topology import SPACES, TIERS, pod_affinity, spreads

WAITS: dict[str, str] = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
_NOT_READY_BORNE: list[Json] = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute"}
    for name in ("not-ready", "unreachable")
]


def template(dice: Dice, app: str, apps: list[str]) -> Json:
    """Return what all pods of a workload share."""
    spec: Json = {**containers(dice), **node_wishes(dice)}
    spec["tolerations"] = [*tolerations(dice), *_NOT_READY_BORNE]
    if rules := spreads(dice, app, apps):
        spec["topologySpreadConstraints"] = rules
    if terms := pod_affinity(dice, app, apps):
        spec["affinity"] = {**spec.get("affinity", {}), **terms}
    if dice.has("priorities", 0.6):
        spec["priority"] = dice.one((-10, 0, 100, 1000))
    labels = {"app": app, "tier": dice.one(TIERS)}
    space = dice.one(sorted(SPACES)) if "namespaces" in dice.on else "default"
    return {"metadata": {"namespace": space, "labels": labels}, "spec": spec}


def pod(dice: Dice, made_from: Json, name: str, number: int) -> Json:
    """Return one pod that waits for capacity."""
    one = copy.deepcopy(made_from)
    app = one["metadata"]["labels"]["app"]
    one["metadata"] |= {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": app,
                "uid": f"uid-{app}",
                "controller": True,
            }
        ],
    }
    if "match_label_keys" in dice.on:
        one["metadata"]["labels"]["version"] = dice.one(("1", "2"))
    one["status"] = {"phase": "Pending", "conditions": [dict(WAITS)]}
    return {"apiVersion": "v1", "kind": "Pod", **one}


def stand(json: Json, node: str) -> None:
    """Bind a pod to a node."""
    json["spec"]["nodeName"] = node
    json["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def make_odd(dice: Dice, json: Json) -> None:
    """Change a pod into one that is not to be planned."""
    way = dice.upto(0, 4)
    if way == 0:
        json["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
        json["metadata"]["deletionGracePeriodSeconds"] = 30
    elif way == 1:
        json["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
        json["status"] = {
            "phase": "Pending",
            "conditions": [{**WAITS, "reason": "SchedulingGated"}],
        }
    elif way == 2:
        json["status"] = {"phase": "Pending"}
    elif way == 3:
        json["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    else:
        json["status"] = {"phase": dice.one(("Succeeded", "Failed"))}


def make_leaving(dice: Dice, json: Json) -> None:
    """Make a standing pod end, leave, or be a static one."""
    way = dice.upto(0, 2)
    if way == 0:
        json["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
        json["metadata"]["deletionGracePeriodSeconds"] = 30
    elif way == 1:
        json["status"] = {"phase": dice.one(("Succeeded", "Failed"))}
    else:
        json["metadata"]["ownerReferences"][0]["kind"] = "Node"
        json["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}

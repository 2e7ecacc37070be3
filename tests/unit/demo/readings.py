"""Objects as the three APIs answer them, as small as the timeline needs."""

from typing import Any

Object = dict[str, Any]


def pod(uid: str, *, node: str = "", phase: str = "Pending", **more: Any) -> Object:
    spec: Object = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    if node:
        spec["nodeName"] = node
    status: Object = {"phase": phase}
    if more.get("unschedulable"):
        status["conditions"] = [{"type": "PodScheduled", "reason": "Unschedulable"}]
    metadata: Object = {"uid": uid, "name": f"web-{uid}", "labels": {"app": "web"}}
    if owner := more.get("owner"):
        metadata["ownerReferences"] = [{"kind": owner}]
    return {"metadata": metadata, "spec": spec, "status": status}


def node(name: str, *, ours: bool = True, ready: bool = True, **more: Any) -> Object:
    labels = {"node.kubernetes.io/instance-type": "m5.large"}
    if ours:
        labels |= {"karpenter.sh/provisioner-name": "default", "karpenter.sh/capacity-type": "spot"}
    metadata: Object = {"uid": f"uid-{name}", "name": name, "labels": labels}
    metadata |= more.get("metadata", {})
    provider = f"aws:///us-east-1a/i-{name}" if ours else f"static:///{name}"
    spec: Object = {
        "providerID": provider,
        "taints": [{"key": taint} for taint in more.get("taints", ())],
    }
    if more.get("cordoned"):
        spec["unschedulable"] = True
    status = {
        "allocatable": more.get("allocatable", {"cpu": "2"}),
        "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def instance(name: str, state: str = "running") -> Object:
    return {"InstanceId": f"i-{name}", "InstanceType": "m5.large", "State": {"Name": state}}

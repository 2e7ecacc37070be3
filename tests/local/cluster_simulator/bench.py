"""What the tests of the simulation share: a small client and builders of objects."""

import json
import urllib.error
import urllib.request
from typing import Any

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

# How many times as fast as a real one the simulated cluster is.
SPEED = 100
SIZES = {
    "m5.xlarge": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "58"}},
    "g4dn.xlarge": {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "29"},
        "extended": {"nvidia.com/gpu": "1"},
    },
}
UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}


class RefusedError(Exception):
    def __init__(self, code: int, body: Json) -> None:
        super().__init__(f"{code} {body.get('message')}")
        self.code = code
        self.body = body


class Bench:
    """Calls the API server, and decides which machines run."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.machines: dict[str, str] = {}
        self.user_data: dict[str, str] = {}

    async def machine_state(self, provider_id: str) -> str:
        return self.machines.get(provider_id, "running")

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": f"application/{kind}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                answer: Json = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            with error:
                raise RefusedError(error.code, json.load(error)) from error

    def get(self, path: str) -> Json:
        return self.call("GET", path)

    def items(self, path: str) -> list[Json]:
        items: list[Json] = self.call("GET", path)["items"]
        return items

    def create(self, path: str, body: Json) -> Json:
        return self.call("POST", path, body)

    def patch(self, path: str, body: Json) -> Json:
        return self.call("PATCH", path, body)

    def is_gone(self, path: str) -> bool:
        try:
            self.get(path)
        except RefusedError as refusal:
            return refusal.code == 404
        return False

    def ready_pods(self, app: str) -> list[Json]:
        return [pod for pod in self.pods(app) if is_true(pod, "Ready")]

    def pods(self, app: str) -> list[Json]:
        return self.items(f"{PODS}?labelSelector=app%3D{app}")

    def add_node(self, name: str, **more: Any) -> Json:
        return self.create(NODES, node(name, **more))

    def is_ready(self, name: str) -> bool:
        return is_true(self.get(f"{NODES}/{name}"), "Ready")


def is_true(obj: Json, kind: str) -> bool:
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def is_false(obj: Json, kind: str) -> bool:
    return bool(condition(obj, kind).get("status") == "False")


def condition(obj: Json, kind: str) -> Json:
    conditions = obj.get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {})


def taint_keys(node_object: Json) -> set[str]:
    return {taint["key"] for taint in node_object["spec"].get("taints") or ()}


def node(
    name: str,
    *,
    zone: str = "us-east-1a",
    machine: str = "m5.xlarge",
    annotations: Json | None = None,
    labels: Json | None = None,
    **metadata: Any,
) -> Json:
    marks = {
        "karpenter.sh/provisioner-name": "default",
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
        "node.kubernetes.io/instance-type": machine,
    }
    amounts = SIZES[machine]["capacity"]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        # As Dovetail makes it: pods that are bound before the kubelet reports count on it.
        "status": {"capacity": amounts, "allocatable": amounts},
        "metadata": {
            "name": name,
            "labels": marks | (labels or {}),
            "annotations": annotations or {},
            **metadata,
        },
        "spec": {"providerID": f"aws:///{zone}/i-{name}", "taints": [UNINITIALIZED]},
    }


def template(app: str, *, cpu: str = "1", annotations: Json | None = None, **spec: Any) -> Json:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"labels": {"app": app}, "annotations": annotations or {}},
        "spec": {"containers": [container], **spec},
    }


def workload(kind: str, app: str, pod_template: Json, **spec: Any) -> Json:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": app}}}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": app},
        "spec": {**selector, "template": pod_template, **spec},
    }


def pod(name: str, **more: Any) -> Json:
    made = template(name, **more)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **made["metadata"]},
        "spec": made["spec"],
    }


def budget(app: str, **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }

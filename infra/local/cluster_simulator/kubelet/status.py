"""What a kubelet writes into the status of nodes and pods."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.instances import Size
from infra.local.cluster_simulator.rules.matching import labels_of
from infra.local.cluster_simulator.world import stamp

KUBELET_VERSION: Final = "v1.35.4"

_PRESSURES: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def node_status(node: Json, size: Size, address: str, extended: Mapping[str, str]) -> Json:
    """Return the status of a Ready node, with the extended resources that are registered there."""
    labels, name = labels_of(node), node["metadata"]["name"]
    return {
        "conditions": [
            *(_condition(kind, "False", reason, text) for kind, reason, text in _PRESSURES),
            _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "InternalDNS", "address": name},
            {"type": "Hostname", "address": name},
        ],
        "capacity": {**size.capacity, **extended},
        "allocatable": {**size.allocatable, **extended},
        "nodeInfo": _node_info(node["metadata"]["uid"], labels.get("kubernetes.io/arch", "amd64")),
    }


def first_status(size: Size, address: str) -> Json:
    """Return the status in the Node that a kubelet registers; it is not Ready yet."""
    return {
        "conditions": [
            *(_condition(kind, "False", reason, text) for kind, reason, text in _PRESSURES),
            _condition("Ready", "False", "KubeletNotReady", "container runtime not checked yet"),
        ],
        "addresses": [{"type": "InternalIP", "address": address}],
        "capacity": dict(size.capacity),
        "allocatable": dict(size.allocatable),
    }


def running_status(pod: Json, address: str, host: str) -> Json:
    """Return the status of a pod whose init containers are done and whose others run."""
    now = stamp()
    spec = pod["spec"]
    running = {"running": {"startedAt": now}}
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now,
                           "finishedAt": now}}  # fmt: skip
    return {
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "conditions": [
            _condition(kind, "True")
            for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        ],
        "initContainerStatuses": [
            _container(
                init_container, running if init_container.get("restartPolicy") == "Always" else done
            )
            for init_container in spec.get("initContainers") or ()
        ],
        "containerStatuses": [_container(container, running) for container in spec["containers"]],
    }


def completed_status(pod: Json) -> Json:
    """Return the status of a pod all of whose containers ended well."""
    now = stamp()
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now,
                           "startedAt": pod["status"].get("startTime", now)},
            "running": None}  # fmt: skip
    return {
        "phase": "Succeeded",
        "conditions": [
            _condition(kind, "False", "PodCompleted") for kind in ("ContainersReady", "Ready")
        ],
        "containerStatuses": [
            {**_container(container, done), "ready": False, "started": False}
            for container in pod["spec"]["containers"]
        ],
    }


def refused_status(reason: str, message: str) -> Json:
    """Return the status of a pod that the kubelet does not take in."""
    text = f"Pod was rejected: {message}"
    return {"phase": "Failed", "reason": reason, "message": text, "startTime": stamp()}


def _condition(kind: str, status: str, reason: str = "", message: str = "") -> Json:
    now = stamp()
    condition: dict[str, Any] = {"type": kind, "status": status, "lastTransitionTime": now}
    if reason:
        condition["reason"] = reason
    if message:
        # Only the conditions of nodes carry texts, and only they have a heartbeat.
        condition |= {"message": message, "lastHeartbeatTime": now}
    return condition


def _container(container: Json, state: Json) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": state,
    }


def _node_info(uid: str, arch: str) -> Json:
    machine = hashlib.sha256(uid.encode()).hexdigest()[:32]
    return {
        "architecture": arch,
        "bootID": uid,
        "containerRuntimeVersion": "simulated://1.0",
        "kernelVersion": "6.12.0-simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": machine,
        "operatingSystem": "linux",
        "osImage": "Simulated Linux",
        "systemUUID": machine,
    }

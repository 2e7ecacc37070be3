"""What the API server fills in where a manifest is silent.

Left out, because nothing here reads them: the projected token volume of service accounts, node
ports, and IP families of services.
"""

from collections.abc import Callable
from typing import Any

from infra.local.kube.errors import JsonObject

_TOLERATED_SECONDS = 300
_EIGHTY_PERCENT_OF_CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_ROLLING = {"maxUnavailable": "25%", "maxSurge": "25%"}


def _fill(obj: JsonObject, **values: Any) -> None:
    for key, value in values.items():
        obj.setdefault(key, value)


def _section(obj: JsonObject, key: str) -> JsonObject:
    section: JsonObject = obj.setdefault(key, {})
    return section


def _container(container: JsonObject) -> None:
    image = str(container.get("image", ""))
    tag = image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
    latest = "@" not in image and tag in {"", "latest"}
    _fill(
        container,
        imagePullPolicy="Always" if latest else "IfNotPresent",
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    limits = container["resources"].get("limits")
    if limits:
        requests = _section(container["resources"], "requests")
        _fill(requests, **limits)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for value in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(value):
            _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)


def pod_spec(spec: JsonObject) -> None:
    """Fill in a pod spec, alone or inside a template."""
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        securityContext={},
    )
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            _container(container)


def _pod(obj: JsonObject) -> None:
    spec = _section(obj, "spec")
    pod_spec(spec)
    account = spec.get("serviceAccountName") or "default"
    _fill(spec, enableServiceLinks=True, serviceAccountName=account, serviceAccount=account)
    tolerations = spec.get("tolerations") or []
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                }
            )
    spec["tolerations"] = tolerations


def _tolerates(toleration: JsonObject, key: str) -> bool:
    return toleration.get("key") in {key, None, ""} and toleration.get("effect") in {
        "NoExecute",
        None,
        "",
    }


def qos_class(spec: JsonObject) -> str:
    """Return Guaranteed, Burstable or BestEffort."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    parts = [container.get("resources") or {} for container in containers]
    chosen = ("cpu", "memory")
    if not any(part.get(side, {}).get(n) for part in parts for side in part for n in chosen):
        return "BestEffort"
    for part in parts:
        limits, requests = part.get("limits") or {}, part.get("requests") or {}
        if any(n not in limits or requests.get(n) != limits[n] for n in chosen):
            return "Burstable"
    return "Guaranteed"


def _template(obj: JsonObject) -> JsonObject:
    spec = _section(obj, "spec")
    pod_spec(_section(_section(spec, "template"), "spec"))
    return spec


def _deployment(obj: JsonObject) -> None:
    spec = _template(obj)
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600, strategy={})
    spec["strategy"].setdefault("type", "RollingUpdate")
    if spec["strategy"]["type"] == "RollingUpdate":
        _fill(_section(spec["strategy"], "rollingUpdate"), **_ROLLING)


def _replicas(obj: JsonObject) -> None:
    _fill(_template(obj), replicas=1)


def _daemon_set(obj: JsonObject) -> None:
    spec = _template(obj)
    _fill(spec, revisionHistoryLimit=10, updateStrategy={})
    spec["updateStrategy"].setdefault("type", "RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        _fill(_section(spec["updateStrategy"], "rollingUpdate"), maxUnavailable=1, maxSurge=0)


def _stateful_set(obj: JsonObject) -> None:
    spec = _template(obj)
    _fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})


def _job(obj: JsonObject) -> None:
    spec = _section(obj, "spec")
    pod_spec(_section(_section(spec, "template"), "spec"))
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    _fill(
        spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False,
        podReplacementPolicy="TerminatingOrFailed", manualSelector=False,
    )  # fmt: skip
    if spec["manualSelector"]:
        return
    uid, name = obj["metadata"].get("uid"), obj["metadata"]["name"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template = _section(_section(spec["template"], "metadata"), "labels")
    _fill(template, **labels)
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})


def _cron_job(obj: JsonObject) -> None:
    spec = _section(obj, "spec")
    _fill(
        spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )  # fmt: skip
    job = _section(_section(spec, "jobTemplate"), "spec")
    pod_spec(_section(_section(job, "template"), "spec"))


def _service(obj: JsonObject) -> None:
    spec = _section(obj, "spec")
    _fill(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    for port in spec.get("ports") or ():
        _fill(port, protocol="TCP", targetPort=port.get("port"))
    if spec["type"] != "ExternalName" and "clusterIP" not in spec:
        # Addresses follow from the uid: stable, and as good as unique.
        number = int(obj["metadata"]["uid"].replace("-", "")[:4], 16)
        spec["clusterIP"] = f"10.96.{number >> 8}.{number & 255}"
        spec["clusterIPs"] = [spec["clusterIP"]]


def _namespace(obj: JsonObject) -> None:
    _section(obj, "spec").setdefault("finalizers", ["kubernetes"])
    _section(obj, "status").setdefault("phase", "Active")
    _section(obj["metadata"], "labels")["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _volume(obj: JsonObject) -> None:
    spec = _section(obj, "spec")
    _fill(spec, volumeMode="Filesystem")
    if "capacity" in spec:
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")


def _storage_class(obj: JsonObject) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(obj: JsonObject) -> None:
    _fill(obj, preemptionPolicy="PreemptLowerPriority", globalDefault=False, value=0)


def _crd(obj: JsonObject) -> None:
    names = _section(_section(obj, "spec"), "names")
    kind = str(names.get("kind", ""))
    _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    obj["spec"].setdefault("conversion", {"strategy": "None"})


def _secret(obj: JsonObject) -> None:
    obj.setdefault("type", "Opaque")


_BY_KIND: dict[str, Callable[[JsonObject], None]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _replicas,
    "DaemonSet": _daemon_set,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "CronJob": _cron_job,
    "HorizontalPodAutoscaler": lambda obj: _fill(
        _section(obj, "spec"), minReplicas=1, metrics=[_EIGHTY_PERCENT_OF_CPU]
    ),
    "Service": _service,
    "Namespace": _namespace,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _volume,
    "StorageClass": _storage_class,
    "PriorityClass": _priority_class,
    "CustomResourceDefinition": _crd,
    "Secret": _secret,
}

_FIRST_STATUS: dict[str, JsonObject] = {
    "Pod": {"phase": "Pending"},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "Namespace": {"phase": "Active"},
    "PodDisruptionBudget": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
    "Deployment": {},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "ReplicaSet": {"replicas": 0},
    "DaemonSet": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "Service": {"loadBalancer": {}},
    "Job": {},
    "CronJob": {},
    "HorizontalPodAutoscaler": {"currentReplicas": 0, "desiredReplicas": 0},
}


def fill(kind: str, obj: JsonObject) -> None:
    """Fill in an object of a built-in kind, in place."""
    if rule := _BY_KIND.get(kind):
        rule(obj)


def first_status(kind: str, obj: JsonObject) -> None:
    """Give a new object the status its kind starts with, whatever the request said."""
    obj.pop("status", None)
    if kind in _FIRST_STATUS:
        obj["status"] = dict(_FIRST_STATUS[kind])
    if kind == "Pod":
        obj["status"]["qosClass"] = qos_class(obj["spec"])

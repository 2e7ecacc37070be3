"""Tables for `kubectl get`: the columns of each kind."""

import re
from collections.abc import Sequence
from typing import Any

from infra.local.kube.api.table_cells import (
    Cell,
    access_modes,
    address,
    age,
    age_of,
    age_or_none,
    at,
    claim,
    condition,
    container_names,
    count,
    endpoints,
    event_age,
    event_object,
    external,
    hosts,
    images,
    node_roles,
    node_status,
    of,
    pod_ready,
    pod_status,
    ports,
    scale_metrics,
    scale_target,
    selector,
    slice_addresses,
    slice_ports,
    statuses,
)
from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Resource

Column = tuple[str, Cell]
"""Name and cell; a name that starts with `+` is shown with `-o wide` only."""

_NAME: Column = ("Name", at("metadata.name"))
_AGE: Column = ("Age", age_of("metadata.creationTimestamp"))


_WIDE: list[Column] = [("+Containers", container_names), ("+Images", images),
                       ("+Selector", selector)]  # fmt: skip
_COLUMNS: dict[str, list[Column]] = {
    "Pod": [
        _NAME,
        ("Ready", pod_ready),
        ("Status", pod_status),
        ("Restarts", lambda pod: sum(status.get("restartCount", 0) for status in statuses(pod))),
        _AGE,
        ("+IP", at("status.podIP", "<none>")),
        ("+Node", at("spec.nodeName", "<none>")),
        ("+Nominated Node", at("status.nominatedNodeName", "<none>")),
        ("+Readiness Gates", lambda _: "<none>"),
    ],
    "Node": [
        _NAME,
        ("Status", node_status),
        ("Roles", node_roles),
        _AGE,
        ("Version", at("status.nodeInfo.kubeletVersion")),
        ("+Internal-IP", address("InternalIP")),
        ("+External-IP", address("ExternalIP")),
        ("+OS-Image", at("status.nodeInfo.osImage", "<unknown>")),
        ("+Kernel-Version", at("status.nodeInfo.kernelVersion", "<unknown>")),
        ("+Container-Runtime", at("status.nodeInfo.containerRuntimeVersion", "<unknown>")),
    ],
    "Namespace": [_NAME, ("Status", at("status.phase")), _AGE],
    "Service": [
        _NAME,
        ("Type", at("spec.type")),
        ("Cluster-IP", at("spec.clusterIP", "<none>")),
        ("External-IP", external),
        ("Port(s)", ports),
        _AGE,
    ],
    "Endpoints": [_NAME, ("Endpoints", endpoints), _AGE],
    "EndpointSlice": [
        _NAME,
        ("AddressType", at("addressType")),
        ("Ports", slice_ports),
        ("Endpoints", slice_addresses),
        _AGE,
    ],
    "ConfigMap": [_NAME, ("Data", count("data")), _AGE],
    "Secret": [_NAME, ("Type", at("type")), ("Data", count("data")), _AGE],
    "Event": [
        ("Last Seen", event_age),
        ("Type", at("type")),
        ("Reason", at("reason")),
        ("Object", event_object),
        ("Message", lambda event: event.get("message") or event.get("note") or ""),
    ],
    "Deployment": [
        _NAME,
        ("Ready", of("status.readyReplicas", "spec.replicas")),
        ("Up-to-date", at("status.updatedReplicas", 0)),
        ("Available", at("status.availableReplicas", 0)),
        _AGE,
        *_WIDE,
    ],
    "ReplicaSet": [
        _NAME,
        ("Desired", at("spec.replicas", 0)),
        ("Current", at("status.replicas", 0)),
        ("Ready", at("status.readyReplicas", 0)),
        _AGE,
        *_WIDE,
    ],
    "StatefulSet": [_NAME, ("Ready", of("status.readyReplicas", "spec.replicas")), _AGE],
    "DaemonSet": [
        _NAME,
        ("Desired", at("status.desiredNumberScheduled", 0)),
        ("Current", at("status.currentNumberScheduled", 0)),
        ("Ready", at("status.numberReady", 0)),
        ("Up-to-date", at("status.updatedNumberScheduled", 0)),
        ("Available", at("status.numberAvailable", 0)),
        _AGE,
        *_WIDE,
    ],
    "Job": [
        _NAME,
        ("Status", lambda job: "Complete" if condition(job, "Complete") == "True" else "Running"),
        ("Completions", of("status.succeeded", "spec.completions")),
        _AGE,
    ],
    "CronJob": [
        _NAME,
        ("Schedule", at("spec.schedule")),
        ("Timezone", at("spec.timeZone", "<none>")),
        ("Suspend", lambda cron_job: str(bool(cron_job["spec"].get("suspend")))),
        ("Active", count("status.active")),
        ("Last Schedule", age_or_none("status.lastScheduleTime")),
        _AGE,
    ],
    "HorizontalPodAutoscaler": [
        _NAME,
        ("Reference", scale_target),
        ("Targets", scale_metrics),
        ("MinPods", at("spec.minReplicas")),
        ("MaxPods", at("spec.maxReplicas")),
        ("Replicas", at("status.currentReplicas", 0)),
        _AGE,
    ],
    "Ingress": [
        _NAME,
        ("Class", at("spec.ingressClassName", "<none>")),
        ("Hosts", hosts),
        ("Address", lambda _: ""),
        ("Ports", lambda ingress: "80, 443" if ingress["spec"].get("tls") else "80"),
        _AGE,
    ],
    "PodDisruptionBudget": [
        _NAME,
        ("Min Available", at("spec.minAvailable", "N/A")),
        ("Max Unavailable", at("spec.maxUnavailable", "N/A")),
        ("Allowed Disruptions", at("status.disruptionsAllowed", 0)),
        _AGE,
    ],
    "PersistentVolumeClaim": [
        _NAME,
        ("Status", at("status.phase")),
        ("Volume", at("spec.volumeName")),
        ("Capacity", at("status.capacity.storage")),
        ("Access Modes", access_modes("status.accessModes")),
        ("StorageClass", at("spec.storageClassName")),
        _AGE,
    ],
    "PersistentVolume": [
        _NAME,
        ("Capacity", at("spec.capacity.storage")),
        ("Access Modes", access_modes("spec.accessModes")),
        ("Reclaim Policy", at("spec.persistentVolumeReclaimPolicy")),
        ("Status", at("status.phase")),
        ("Claim", claim),
        ("StorageClass", at("spec.storageClassName")),
        ("Reason", at("status.reason")),
        _AGE,
    ],
    "StorageClass": [
        _NAME,
        ("Provisioner", at("provisioner")),
        ("ReclaimPolicy", at("reclaimPolicy")),
        ("VolumeBindingMode", at("volumeBindingMode")),
        _AGE,
    ],
    "PriorityClass": [_NAME, ("Value", at("value")), _AGE],
    "Lease": [_NAME, ("Holder", at("spec.holderIdentity")), _AGE],
    "CustomResourceDefinition": [_NAME, ("Created At", at("metadata.creationTimestamp"))],
}


def _json_path(path: str) -> Cell:
    """Compile the subset of JSONPath printer columns use: names, `[n]`, `[?(@.a=="b")]`."""
    steps = re.findall(r'\.((?:\\.|[^.\[\]])+)|\[(\d+)\]|\[\?\(@\.(\w+)=="([^"]*)"\)\]', path)

    def cell(obj: JsonObject) -> Any:
        value: Any = obj
        for name, index, key, wanted in steps:
            if name and isinstance(value, dict):
                value = value.get(name.replace("\\.", "."))
            elif index and isinstance(value, list) and int(index) < len(value):
                value = value[int(index)]
            elif key and isinstance(value, list):
                value = next((entry for entry in value if entry.get(key) == wanted), None)
            else:
                return None
        return value

    return cell


def _printer_column(column: JsonObject) -> Column:
    cell = _json_path(column["jsonPath"])
    name = f"{'+' if column.get('priority') else ''}{column['name']}"
    return name, (lambda obj: age(cell(obj))) if column["type"] == "date" else cell


def _columns(resource: Resource) -> list[Column]:
    if resource.custom is None:
        return _COLUMNS.get(resource.kind, [_NAME, _AGE])
    own = [
        _printer_column(additional_printer_column)
        for additional_printer_column in resource.custom.get("additionalPrinterColumns") or ()
    ]
    return [_NAME, *(own or [_AGE])]


def _definition(name: str) -> JsonObject:
    shown = name.lstrip("+")
    return {
        "name": shown,
        "type": "string",
        "format": "name" if shown == "Name" else "",
        "description": shown,
        "priority": 1 if name.startswith("+") else 0,
    }


def table(resource: Resource, objects: Sequence[JsonObject], include: str) -> JsonObject:
    """Return a `Table` of the objects, without list metadata.

    Args:
        resource: The kind of the objects.
        objects: The rows, in order.
        include: What goes beside each row: `Metadata`, `Object` or `None`.
    """
    columns = _columns(resource)
    rows: list[JsonObject] = []
    for obj in objects:
        row: JsonObject = {"cells": [cell(obj) for _, cell in columns]}
        if include == "Object":
            row["object"] = {"kind": resource.kind, "apiVersion": resource.api_version} | obj
        elif include != "None":
            head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            row["object"] = head | {"metadata": obj["metadata"]}
        rows.append(row)
    definitions = [_definition(name) for name, _ in columns]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    return head | {"columnDefinitions": definitions, "rows": rows}

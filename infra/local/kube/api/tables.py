"""Tables for `kubectl get`: the columns of each kind, and what stands in their cells."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from infra.local.cluster_simulator.rules.matching import condition_of, is_true
from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Resource
from infra.local.kube.selectors import selector_text

Cell = Callable[[JsonObject], Any]
Column = tuple[str, Cell]
"""Name and cell; a name that starts with `+` is shown with `-o wide` only."""

# One kind a line, its columns after a bar each: `name=path`, with `?` what is shown where nothing
# is there; `path/path`: one number of another; `#path`: how many; `@path`: how long ago;
# `!function`: what one of the functions below returns.
_BUILT_IN = """
Pod|Name|Ready=!_pod_ready|Status=!_pod_status|Restarts=!_restarts|Age|+IP=status.podIP?<none>|\
+Node=spec.nodeName?<none>|+Nominated Node=status.nominatedNodeName?<none>|+Readiness Gates=?<none>
Node|Name|Status=!_node_status|Roles=!_node_roles|Age|Version=status.nodeInfo.kubeletVersion|\
+Internal-IP=!_internal_ip|+External-IP=!_external_ip|\
+OS-Image=status.nodeInfo.osImage?<unknown>|\
+Kernel-Version=status.nodeInfo.kernelVersion?<unknown>|\
+Container-Runtime=status.nodeInfo.containerRuntimeVersion?<unknown>
Namespace|Name|Status=status.phase|Age
Service|Name|Type=spec.type|Cluster-IP=spec.clusterIP?<none>|External-IP=!_external|\
Port(s)=!_ports|Age
Endpoints|Name|Endpoints=!endpoints|Age
EndpointSlice|Name|AddressType=addressType|Ports=!slice_ports|Endpoints=!slice_addresses|Age
ConfigMap|Name|Data=#data|Age
Secret|Name|Type=type|Data=#data|Age
Event|Last Seen=!_event_age|Type=type|Reason=reason|Object=!_event_object|Message=!_event_message
Deployment|Name|Ready=status.readyReplicas/spec.replicas|Up-to-date=status.updatedReplicas?0|\
Available=status.availableReplicas?0|Age|Wide
ReplicaSet|Name|Desired=spec.replicas?0|Current=status.replicas?0|Ready=status.readyReplicas?0|Age|\
Wide
StatefulSet|Name|Ready=status.readyReplicas/spec.replicas|Age
DaemonSet|Name|Desired=status.desiredNumberScheduled?0|Current=status.currentNumberScheduled?0|\
Ready=status.numberReady?0|Up-to-date=status.updatedNumberScheduled?0|\
Available=status.numberAvailable?0|Age|Wide
Job|Name|Status=!_job_status|Completions=status.succeeded/spec.completions|Age
CronJob|Name|Schedule=spec.schedule|Timezone=spec.timeZone?<none>|Suspend=!_suspend|\
Active=#status.active|Last Schedule=!_last_schedule|Age
HorizontalPodAutoscaler|Name|Reference=!_scale_target|Targets=!_scale_metrics|\
MinPods=spec.minReplicas|MaxPods=spec.maxReplicas|Replicas=status.currentReplicas?0|Age
Ingress|Name|Class=spec.ingressClassName?<none>|Hosts=!_hosts|Address=?|Ports=!_ingress_ports|Age
PodDisruptionBudget|Name|Min Available=spec.minAvailable?N/A|\
Max Unavailable=spec.maxUnavailable?N/A|Allowed Disruptions=status.disruptionsAllowed?0|Age
PersistentVolumeClaim|Name|Status=status.phase|Volume=spec.volumeName|\
Capacity=status.capacity.storage|Access Modes=!_claim_modes|StorageClass=spec.storageClassName|Age
PersistentVolume|Name|Capacity=spec.capacity.storage|Access Modes=!_volume_modes|\
Reclaim Policy=spec.persistentVolumeReclaimPolicy|Status=status.phase|Claim=!_claim|\
StorageClass=spec.storageClassName|Reason=status.reason|Age
StorageClass|Name|Provisioner=provisioner|ReclaimPolicy=reclaimPolicy|\
VolumeBindingMode=volumeBindingMode|Age
PriorityClass|Name|Value=value|Age
Lease|Name|Holder=spec.holderIdentity|Age
CustomResourceDefinition|Name|Created At=metadata.creationTimestamp
"""
_SHORT = {
    "Name": "Name=metadata.name",
    "Age": "Age=@metadata.creationTimestamp",
    "Wide": "+Containers=!_container_names|+Images=!_images|+Selector=!_selector",
}
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _column(text: str) -> Column:
    name, _, what = text.partition("=")
    if what.startswith("!"):
        return name, globals()[what[1:]]
    if what.startswith("@"):
        return name, lambda obj: _age(_at(obj, what[1:], None))
    if what.startswith("#"):
        return name, lambda obj: len(_at(obj, what[1:], ()))
    if "/" in what and "?" not in what:
        part, whole = what.split("/")
        return name, lambda obj: f"{_at(obj, part, 0)}/{_at(obj, whole, 0)}"
    path, _, nothing = what.partition("?")
    return name, lambda obj: _at(obj, path, 0 if nothing == "0" else nothing)


@cache
def _built_in() -> dict[str, list[Column]]:
    found = {}
    for line in _BUILT_IN.strip().split("\n"):
        kind, *columns = line.split("|")
        written = "|".join(_SHORT.get(column, column) for column in columns)
        found[kind] = [_column(text) for text in written.split("|")]
    return found


def _at(obj: JsonObject, path: str, nothing: Any = "") -> Any:
    """Return the value at a path."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return nothing if value is None else value


def _age(text: str | None) -> str:
    """Write how long ago a time was, the way kubectl does."""
    if not text:
        return "<unknown>"
    then = datetime.fromisoformat(text)
    seconds = max(int((datetime.now(UTC) - then).total_seconds()), 0)
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{days}d"


def _pod_ready(pod: JsonObject) -> str:
    ready = sum(bool(status.get("ready")) for status in _at(pod, "status.containerStatuses", ()))
    return f"{ready}/{len(_at(pod, 'spec.containers', ()))}"


def _pod_status(pod: JsonObject) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for entry in _at(pod, "status.containerStatuses", ()):
        for word in ("waiting", "terminated"):
            if reason := _at(entry, f"state.{word}.reason"):
                return str(reason)
    if pod["spec"].get("schedulingGates"):
        return "SchedulingGated"
    return str(_at(pod, "status.reason") or _at(pod, "status.phase") or "Unknown")


def _restarts(pod: JsonObject) -> int:
    statuses = _at(pod, "status.containerStatuses", ())
    return sum(status.get("restartCount", 0) for status in statuses)


def _node_status(node: JsonObject) -> str:
    ready = condition_of(node, "Ready").get("status", "")
    word = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    return f"{word},SchedulingDisabled" if _at(node, "spec.unschedulable") else word


def _node_roles(node: JsonObject) -> str:
    start = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(start) for key in labels if key.startswith(start))
    return ",".join(roles) or "<none>"


def _address(node: JsonObject, kind: str) -> str:
    found = _at(node, "status.addresses", ())
    return next((str(entry["address"]) for entry in found if entry["type"] == kind), "<none>")


def _internal_ip(node: JsonObject) -> str:
    return _address(node, "InternalIP")


def _external_ip(node: JsonObject) -> str:
    return _address(node, "ExternalIP")


def _containers(workload: JsonObject) -> Iterator[JsonObject]:
    yield from workload["spec"]["template"]["spec"].get("containers") or ()


def _container_names(workload: JsonObject) -> str:
    return ",".join(str(container["name"]) for container in _containers(workload))


def _images(workload: JsonObject) -> str:
    return ",".join(str(container.get("image", "")) for container in _containers(workload))


def _selector(workload: JsonObject) -> str:
    return selector_text(workload["spec"].get("selector")) or "<none>"


def _job_status(job: JsonObject) -> str:
    return "Complete" if is_true(job, "Complete") else "Running"


def _suspend(cron_job: JsonObject) -> str:
    return str(bool(cron_job["spec"].get("suspend")))


def _last_schedule(cron_job: JsonObject) -> str:
    last = _at(cron_job, "status.lastScheduleTime", None)
    return _age(last) if last else "<none>"


def _scale_target(autoscaler: JsonObject) -> str:
    target = autoscaler["spec"]["scaleTargetRef"]
    return f"{target['kind']}/{target['name']}"


def _scale_metrics(autoscaler: JsonObject) -> str:
    rows = _at(autoscaler, "status.currentMetrics", ())
    now = {row["resource"]["name"]: row["resource"]["current"] for row in rows}
    return ", ".join(_of_target(metric, now) for metric in _at(autoscaler, "spec.metrics", ()))


def _of_target(metric: JsonObject, now: Mapping[str, JsonObject]) -> str:
    """Write what is used of a resource, and what is aimed at."""
    resource = metric.get("resource")
    if resource is None:
        return f"<unknown> ({metric['type']})"
    used, target = now.get(resource["name"], {}), resource["target"]
    if "averageUtilization" in target:
        percent = used.get("averageUtilization")
        told = "<unknown>" if percent is None else f"{percent}%"
        return f"{resource['name']}: {told}/{target['averageUtilization']}%"
    return f"{resource['name']}: {used.get('averageValue', '<unknown>')}/{target['averageValue']}"


def _hosts(ingress: JsonObject) -> str:
    rules = _at(ingress, "spec.rules", ())
    return ",".join(str(rule.get("host") or "*") for rule in rules) or "*"


def _ingress_ports(ingress: JsonObject) -> str:
    return "80, 443" if ingress["spec"].get("tls") else "80"


def _modes(listed: Sequence[str]) -> str:
    return ",".join(_ACCESS_MODES.get(mode, mode) for mode in listed)


def _claim_modes(claim: JsonObject) -> str:
    return _modes(_at(claim, "status.accessModes", ()))


def _volume_modes(volume: JsonObject) -> str:
    return _modes(_at(volume, "spec.accessModes", ()))


def _claim(volume: JsonObject) -> str:
    found = volume["spec"].get("claimRef") or {}
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else ""


def _ports(service: JsonObject) -> str:
    ports = service["spec"].get("ports") or ()
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


def _external(service: JsonObject) -> str:
    """Write where a service is reached from outside: nothing here gives it an address."""
    spec = service["spec"]
    if spec.get("type") == "LoadBalancer":
        return "<pending>"
    return ",".join(spec.get("externalIPs") or ()) or spec.get("externalName") or "<none>"


def _event_age(event: JsonObject) -> str:
    times = (event.get("lastTimestamp"), event.get("eventTime"))
    return _age(next((time for time in times if time), event["metadata"].get("creationTimestamp")))


def _event_object(event: JsonObject) -> str:
    found = event.get("involvedObject") or {}
    return f"{str(found.get('kind', '')).lower()}/{found.get('name', '')}"


def _event_message(event: JsonObject) -> str:
    return str(event.get("message") or "")


def slice_ports(found: JsonObject) -> str:
    return _first([str(port.get("port", "*")) for port in found.get("ports") or ()], "<unset>")


def slice_addresses(found: JsonObject) -> str:
    return _first([entry["addresses"][0] for entry in found.get("endpoints") or ()], "<unset>")


def endpoints(found: JsonObject) -> str:
    """Write the ready addresses of Endpoints with their ports."""
    listed = [
        f"{address['ip']}:{port['port']}"
        for subset in found.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return _first(listed, "<none>")


def _first(found: list[str], nothing: str) -> str:
    """Write the first three, as kubectl does.

    Source: `formatDiscoveryPorts`, `formatDiscoveryEndpoints` and `formatEndpoints` of
    Kubernetes 1.35.
    """
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or nothing


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
    return name, (lambda obj: _age(cell(obj))) if column["type"] == "date" else cell


def _columns(resource: Resource) -> list[Column]:
    name, age = _column(_SHORT["Name"]), _column(_SHORT["Age"])
    if resource.custom is None:
        return _built_in().get(resource.kind, [name, age])
    own = [
        _printer_column(column) for column in resource.custom.get("additionalPrinterColumns", ())
    ]
    return [name, *(own or [age])]


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

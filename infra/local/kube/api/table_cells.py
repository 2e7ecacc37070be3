"""Cells of the tables `kubectl get` shows."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from infra.local.kube.errors import JsonObject
from infra.local.kube.selectors import selector_text

Cell = Callable[[JsonObject], Any]
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def at(path: str, fallback: Any = "") -> Cell:
    """Return the cell that shows the value at a path."""
    parts = path.split(".")

    def cell(obj: JsonObject) -> Any:
        value: Any = obj
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        return fallback if value is None else value

    return cell


def age(text: str | None, now: datetime | None = None) -> str:
    """Write how long ago a time was, the way kubectl does."""
    if not text:
        return "<unknown>"
    then = datetime.fromisoformat(text)
    seconds = max(int(((now or datetime.now(UTC)) - then).total_seconds()), 0)
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


def age_of(path: str) -> Cell:
    """Return the cell that shows how long ago the time at a path was."""
    value = at(path, None)
    return lambda obj: age(value(obj))


def age_or_none(path: str) -> Cell:
    """Return the cell of a time that may never have been."""
    value = at(path, None)
    return lambda obj: age(value(obj)) if value(obj) else "<none>"


def hosts(ingress: JsonObject) -> str:
    """Write the hosts of an ingress; `*` is any."""
    rules = ingress["spec"].get("rules") or ()
    return ",".join(str(rule.get("host") or "*") for rule in rules) or "*"


def access_modes(path: str) -> Cell:
    """Return the cell of a volume's access modes: `RWO` for ReadWriteOnce."""
    value = at(path, ())
    return lambda obj: ",".join(_ACCESS_MODES.get(mode, mode) for mode in value(obj))


def claim(volume: JsonObject) -> str:
    """Write the claim that a volume is for."""
    found = volume["spec"].get("claimRef") or {}
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else ""


def scale_target(autoscaler: JsonObject) -> str:
    """Write what an autoscaler scales."""
    target = autoscaler["spec"]["scaleTargetRef"]
    return f"{target['kind']}/{target['name']}"


def scale_metrics(autoscaler: JsonObject) -> str:
    """Write what is used of each resource, and what is aimed at."""
    rows = (autoscaler.get("status") or {}).get("currentMetrics") or ()
    now = {row["resource"]["name"]: row["resource"]["current"] for row in rows}
    return ", ".join(_of_target(metric, now) for metric in autoscaler["spec"].get("metrics") or ())


def _of_target(metric: JsonObject, now: Mapping[str, JsonObject]) -> str:
    resource = metric.get("resource")
    if resource is None:
        return f"<unknown> ({metric['type']})"
    used, target = now.get(resource["name"], {}), resource["target"]
    if "averageUtilization" in target:
        percent = used.get("averageUtilization")
        told = "<unknown>" if percent is None else f"{percent}%"
        return f"{resource['name']}: {told}/{target['averageUtilization']}%"
    return f"{resource['name']}: {used.get('averageValue', '<unknown>')}/{target['averageValue']}"


def statuses(pod: JsonObject) -> list[JsonObject]:
    """Return the container statuses of a pod."""
    found: list[JsonObject] = (pod.get("status") or {}).get("containerStatuses") or []
    return found


def pod_ready(pod: JsonObject) -> str:
    """Write how many containers are ready, of how many."""
    ready = sum(bool(status.get("ready")) for status in statuses(pod))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def pod_status(pod: JsonObject) -> str:
    """Write the one word that says how a pod is."""
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = pod.get("status") or {}
    for entry in statuses(pod):
        state = entry.get("state") or {}
        for word in ("waiting", "terminated"):
            if reason := (state.get(word) or {}).get("reason"):
                return str(reason)
    if pod["spec"].get("schedulingGates"):
        return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "Unknown")


def condition(obj: JsonObject, kind: str) -> str:
    """Return the status of a condition; empty when it is not there."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(entry["status"]) for entry in conditions if entry["type"] == kind), "")


def node_status(node: JsonObject) -> str:
    """Write whether a node is ready, and whether it is cordoned."""
    word = {"True": "Ready", "False": "NotReady"}.get(condition(node, "Ready"), "Unknown")
    cordoned = (node.get("spec") or {}).get("unschedulable")
    return f"{word},SchedulingDisabled" if cordoned else word


def node_roles(node: JsonObject) -> str:
    """Write the roles the labels of a node name."""
    start = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = sorted(key.removeprefix(start) for key in labels if key.startswith(start))
    return ",".join(roles) or "<none>"


def address(kind: str) -> Cell:
    """Return the cell that shows a node address of one type."""

    def cell(node: JsonObject) -> str:
        found = (node.get("status") or {}).get("addresses") or ()
        return next((str(entry["address"]) for entry in found if entry["type"] == kind), "<none>")

    return cell


def images(obj: JsonObject) -> str:
    """Write the images of a pod template."""
    spec = obj["spec"]["template"]["spec"]
    return ",".join(str(container.get("image", "")) for container in spec.get("containers") or ())


def container_names(obj: JsonObject) -> str:
    """Write the container names of a pod template."""
    spec = obj["spec"]["template"]["spec"]
    return ",".join(str(container["name"]) for container in spec.get("containers") or ())


def of(left: str, right: str) -> Cell:
    """Return the cell that shows one number of another."""
    first, second = at(left, 0), at(right, 0)
    return lambda obj: f"{first(obj)}/{second(obj)}"


def count(path: str) -> Cell:
    """Return the cell that shows how many entries the map or list at a path has."""
    value = at(path, ())
    return lambda obj: len(value(obj))


def selector(obj: JsonObject) -> str:
    """Write the label selector of a workload."""
    return selector_text(obj["spec"].get("selector")) or "<none>"


def ports(service: JsonObject) -> str:
    """Write the ports of a service."""
    ports = service["spec"].get("ports") or ()
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


def external(service: JsonObject) -> str:
    """Write where a service is reached from outside: nothing here gives it an address."""
    spec = service["spec"]
    if spec.get("type") == "LoadBalancer":
        return "<pending>"
    return ",".join(spec.get("externalIPs") or ()) or spec.get("externalName") or "<none>"


def event_object(event: JsonObject) -> str:
    """Write what an event is about."""
    found = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(found.get('kind', '')).lower()}/{found.get('name', '')}"


def event_age(event: JsonObject) -> str:
    """Write how long ago an event was last seen."""
    times = (event.get("lastTimestamp"), event.get("eventTime"))
    return age(next((time for time in times if time), event["metadata"].get("creationTimestamp")))


def slice_ports(endpoints: JsonObject) -> str:
    """Write the ports of an EndpointSlice."""
    found = [str(port.get("port", "*")) for port in endpoints.get("ports") or ()]
    return _first(found, "<unset>")


def slice_addresses(endpoints: JsonObject) -> str:
    """Write the addresses of an EndpointSlice."""
    found = [entry["addresses"][0] for entry in endpoints.get("endpoints") or ()]
    return _first(found, "<unset>")


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

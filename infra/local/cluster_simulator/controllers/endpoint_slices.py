"""The controller that lists the pods of Services.

A Service has one slice, with all its pods; Kubernetes makes one for each hundred. It has the older
Endpoints, too, which users still list and kubectl before 1.31 describes.

Source: https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/ (2026-11) and
`podToEndpoint` of k8s.io/endpointslice 1.35.
"""

from collections.abc import Iterable
from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.controllers.workload import owner_reference
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.kinds import ENDPOINT_SLICE, ENDPOINTS, SERVICE
from infra.local.cluster_simulator.rules.matching import is_finished, is_true, labels_of
from infra.local.cluster_simulator.world import World, is_terminating, node_of

_SETTLE_SECONDS: Final = 0.1
_OF_SERVICE: Final = "kubernetes.io/service-name"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_MANAGER: Final = "endpointslice-controller.k8s.io"
_OLD_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_OLD_MANAGER: Final = "endpoint-controller"
_NAMED: Final = ("name", "namespace", "uid")
_ZONE: Final = "topology.kubernetes.io/zone"


class EndpointSlices:
    """Keeps one EndpointSlice, and Endpoints, for each Service that selects pods."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._services = world.informer(SERVICE)
        self._slices = world.informer(ENDPOINT_SLICE)
        self._endpoints = world.informer(ENDPOINTS)
        self._queue = world.queue(self._write, parallel=4)
        self._services.subscribe(self._changed)
        world.pods.subscribe(self._pod_changed)

    def _changed(self, old: Json | None, new: Json | None) -> None:
        self._queue.add(key_of(new or old or {}))

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        for service in self._services:
            if any(pod is not None and _selects(service, pod) for pod in (old, new)):
                self._queue.add(key_of(service), _SETTLE_SECONDS)

    async def _write(self, key: Key) -> None:
        namespace, name = key
        service = self._services.objects.get(key)
        found = next((entry for entry in self._slices if _is_of(entry, namespace, name)), None)
        if service is None or is_terminating(service) or not service["spec"].get("selector"):
            if found is not None:
                await self._world.client.delete(ENDPOINT_SLICE, found)
                if old := self._endpoints.objects.get(key):
                    await self._world.client.delete(ENDPOINTS, old)
            return
        pods = sorted(filter(lambda pod: _selects(service, pod), self._world.pods), key=key_of)
        wanted = {
            "endpoints": [self._endpoint(service, pod) for pod in pods if _has_address(pod)],
            "ports": [_port(port, pods) for port in service["spec"].get("ports") or ()],
        }
        if found is None:
            metadata = {
                "name": f"{name}-{service['metadata']['uid'][:5]}",
                "namespace": namespace,
                "labels": {_OF_SERVICE: name, _MANAGED_BY: _MANAGER},
                "ownerReferences": [owner_reference(SERVICE, service)],
            }
            made = ENDPOINT_SLICE.document(metadata, addressType="IPv4", **wanted)
            await self._world.create(ENDPOINT_SLICE, made)
        elif any((found.get(field) or []) != value for field, value in wanted.items()):
            await self._world.patch(ENDPOINT_SLICE, found, wanted)
        await self._write_endpoints(service, _subsets(wanted))

    async def _write_endpoints(self, service: Json, subsets: list[Json]) -> None:
        metadata = {key: service["metadata"][key] for key in ("name", "namespace")}
        found = self._endpoints.objects.get(key_of(service))
        if found is None:
            labels = {**labels_of(service), _OLD_MANAGED_BY: _OLD_MANAGER}
            made = ENDPOINTS.document({**metadata, "labels": labels}, subsets=subsets)
            await self._world.create(ENDPOINTS, made)
        elif (found.get("subsets") or []) != subsets:
            await self._world.patch(ENDPOINTS, found, {"subsets": subsets})

    def _endpoint(self, service: Json, pod: Json) -> Json:
        serving, leaving = is_true(pod, "Ready"), is_terminating(pod)
        always = service["spec"].get("publishNotReadyAddresses") is True
        node = self._world.nodes.get(node_of(pod))
        zone = labels_of(node).get(_ZONE) if node else None
        reference = {"kind": "Pod", **{key: pod["metadata"][key] for key in _NAMED}}
        conditions = {
            "ready": always or (serving and not leaving),
            "serving": serving,
            "terminating": leaving,
        }
        return {
            "addresses": [pod["status"]["podIP"]],
            "conditions": conditions,
            "nodeName": node_of(pod),
            "targetRef": reference,
            **({"zone": zone} if zone else {}),
        }


def _subsets(wanted: Json) -> list[Json]:
    """Return what Endpoints say of the same pods; those that terminate are left out."""
    sides: dict[bool, list[Json]] = {True: [], False: []}
    for entry in wanted["endpoints"]:
        if entry["conditions"]["ready"] or not entry["conditions"]["terminating"]:
            address = {"ip": entry["addresses"][0]}
            address |= {key: entry[key] for key in ("nodeName", "targetRef")}
            sides[entry["conditions"]["ready"]].append(address)
    named = {"addresses": sides[True], "notReadyAddresses": sides[False]}
    ports = [{key: text for key, text in port.items() if text} for port in wanted["ports"]]
    subset = {key: value for key, value in {**named, "ports": ports}.items() if value}
    return [subset] if sides[True] or sides[False] else []


def _selects(service: Json, pod: Json) -> bool:
    wanted = service["spec"].get("selector") or {}
    same_namespace = service["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return bool(wanted) and same_namespace and wanted.items() <= labels_of(pod).items()


def _is_of(endpoints: Json, namespace: str, service: str) -> bool:
    labels = labels_of(endpoints)
    mine = endpoints["metadata"]["namespace"] == namespace and labels.get(_OF_SERVICE) == service
    return mine and labels.get(_MANAGED_BY) == _MANAGER


def _has_address(pod: Json) -> bool:
    return bool((pod.get("status") or {}).get("podIP")) and not is_finished(pod)


def _port(port: Json, pods: Iterable[Json]) -> Json:
    """Return a port of the slice: a name is that of a port of the pods' containers."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, str):
        named = (
            entry["containerPort"]
            for pod in pods
            for container in pod["spec"]["containers"]
            for entry in container.get("ports") or ()
            if entry.get("name") == target
        )
        target = next(named, port["port"])
    named_port = {"name": port.get("name") or "", "protocol": port.get("protocol") or "TCP"}
    return {**named_port, "port": target}

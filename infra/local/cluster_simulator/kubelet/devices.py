"""Devices: extended resources that a kubelet shows once something has registered them.

A device plugin is a DaemonSet whose pod registers what it finds at the kubelet's socket. The nvidia
variants of Bottlerocket run the plugin on the host.
Source: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/,
https://github.com/NVIDIA/k8s-device-plugin/tree/main/deployments/helm/nvidia-device-plugin,
https://github.com/aws-neuron/aws-neuron-sdk/blob/master/src/k8/k8s-neuron-device-plugin.yml and
https://bottlerocket.dev/en/os/latest/#/concepts/variants/ (2026-11).
"""

from collections.abc import Mapping
from typing import Any, Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.instances import Size
from infra.local.cluster_simulator.rules.matching import is_true
from infra.local.cluster_simulator.world import World, is_terminating

SOCKETS: Final = "/var/lib/kubelet/device-plugins"
# Part of the image's name of the plugin that registers each resource.
_PLUGINS: Final = {
    "nvidia.com/gpu": "nvidia/k8s-device-plugin",
    "aws.amazon.com/neuron": "neuron/neuron-device-plugin",
    "aws.amazon.com/neuroncore": "neuron/neuron-device-plugin",
}
# Of the variants whose name says nvidia.
_HOSTED: Final = frozenset({"nvidia.com/gpu"})


class Devices:
    """What has been registered at the kubelets of a cluster."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since: dict[tuple[str, str], float] = {}

    def shown(
        self, node: Json, size: Size, image_name: str, now: float
    ) -> tuple[Mapping[str, str], float | None]:
        """Return the extended resources a node shows now, and in how many seconds it shows more."""
        found: dict[str, str] = {}
        waits: list[float] = []
        for resource, amount in size.extended.items():
            place = (node["metadata"]["uid"], resource)
            if place not in self._since and self._is_registered(node, resource, image_name):
                self._since[place] = now
            if place not in self._since:
                continue
            timing = self._world.timing
            wait = self._since[place] + timing.real(timing.device_plugin_seconds) - now
            if wait > 0:
                waits.append(wait)
            else:
                found[resource] = amount
        return found, min(waits, default=None)

    def _is_registered(self, node: Json, resource: str, image_name: str) -> bool:
        plugin = _PLUGINS.get(resource)
        on_host = "bottlerocket" in image_name and "nvidia" in image_name and resource in _HOSTED
        return plugin is None or on_host or self._runs(node, plugin)

    def _runs(self, node: Json, plugin: str) -> bool:
        return any(
            is_plugin(pod)
            and is_true(pod, "Ready")
            and not is_terminating(pod)
            and any(
                plugin in (container.get("image") or "") for container in pod["spec"]["containers"]
            )
            for pod in self._world.pods_on(node["metadata"]["name"])
        )


def is_plugin(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod mounts the folder of the kubelet's sockets, as device plugins do."""
    volumes = pod["spec"].get("volumes") or ()
    return any(
        (volume.get("hostPath") or {}).get("path", "").rstrip("/") == SOCKETS for volume in volumes
    )

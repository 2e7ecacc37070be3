"""The cloud controller: initializes new nodes, deletes those whose instance is gone.

Source: https://github.com/kubernetes/cloud-provider/tree/v0.35.4/controllers (node, nodelifecycle)
and https://github.com/kubernetes/cloud-provider-aws (pkg/providers/v1: InstanceExistsByProviderID,
InstanceShutdownByProviderID, zone id label), read 2026-11-22.
"""

import asyncio
import logging
from typing import Final

import aiohttp

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.instances import GONE, STOPPED, Instance, Instances
from infra.local.cluster_simulator.kinds import NODE
from infra.local.cluster_simulator.rules.matching import is_true, labels_of, taints_of
from infra.local.cluster_simulator.world import World, is_terminating

UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN: Final = "node.cloudprovider.kubernetes.io/shutdown"
ZONE: Final = "topology.kubernetes.io/zone"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_OLD: Final = {
    ZONE: "failure-domain.beta.kubernetes.io/zone",
    REGION: "failure-domain.beta.kubernetes.io/region",
    INSTANCE_TYPE: "beta.kubernetes.io/instance-type",
}
_MONITOR_SECONDS: Final = 5.0
_LEAST_SECONDS: Final = 0.2
_LOG = logging.getLogger(__name__)


class Cloud:
    """The node parts of a cloud controller manager."""

    def __init__(self, world: World, instances: Instances) -> None:
        self._world = world
        self._instances = instances
        self._queue = world.queue(self._node)
        world.nodes.subscribe(self._changed)
        world.start(self._monitor)

    def _changed(self, _: Json | None, new: Json | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])

    async def _find(self, node: Json) -> Instance:
        return await self._instances.find(
            node["spec"].get("providerID") or "", node["metadata"]["name"]
        )

    # -- node controller --------------------------------------------------------------------

    async def _node(self, name: str) -> float | None:
        node = self._world.nodes.get(name)
        if node is None or is_terminating(node):
            return None
        if not any(taint["key"] == UNINITIALIZED for taint in taints_of(node)):
            return None
        instance = await self._find(node)
        if instance.state == GONE or not (instance.provider_id or node["spec"].get("providerID")):
            return self._world.timing.poll()
        await self._initialize(node, instance)
        return None

    async def _initialize(self, node: Json, instance: Instance) -> None:
        taints = [taint for taint in taints_of(node) if taint["key"] != UNINITIALIZED]
        spec: Json = {"taints": taints}
        if instance.provider_id and not node["spec"].get("providerID"):
            spec["providerID"] = instance.provider_id
        known = {
            ZONE: instance.zone,
            REGION: instance.zone[:-1],
            INSTANCE_TYPE: instance.instance_type,
            ZONE_ID: instance.zone_id,
        }
        known |= {old: known[key] for key, old in _OLD.items()}
        labels = labels_of(node)
        added = {key: value for key, value in known.items() if value and labels.get(key) != value}
        version = node["metadata"]["resourceVersion"]
        change = {"metadata": {"resourceVersion": version, "labels": added}, "spec": spec}
        await self._world.patch(NODE, node, change)

    # -- node lifecycle controller ----------------------------------------------------------

    async def _monitor(self) -> None:
        """Ask about every node that is not Ready, from its first second, every five seconds."""
        timing = self._world.timing
        while True:
            await asyncio.sleep(max(timing.real(_MONITOR_SECONDS), _LEAST_SECONDS))
            for node in list(self._world.nodes):
                try:
                    await self._check(node)
                except (ApiError, aiohttp.ClientError, OSError) as error:
                    _LOG.debug("%s: %s", node["metadata"]["name"], error)
                except Exception:  # noqa: BLE001 - an actor's outermost loop: EC2 may be away
                    _LOG.debug("%s", node["metadata"]["name"], exc_info=True)

    async def _check(self, node: Json) -> None:
        is_shut_down = any(taint["key"] == SHUTDOWN for taint in taints_of(node))
        if is_true(node, "Ready"):
            if is_shut_down:
                await self._taint(node, shut_down=False)
            return
        if is_terminating(node) or not node["spec"].get("providerID"):
            return
        instance = await self._find(node)
        if instance.state == GONE:
            await self._world.client.delete(NODE, node)
        elif instance.state == STOPPED and not is_shut_down:
            await self._taint(node, shut_down=True)

    async def _taint(self, node: Json, *, shut_down: bool) -> None:
        taints = [taint for taint in taints_of(node) if taint["key"] != SHUTDOWN]
        if shut_down:
            taints.append({"key": SHUTDOWN, "effect": "NoSchedule"})
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        await self._world.patch(NODE, node, {"metadata": version, "spec": {"taints": taints}})

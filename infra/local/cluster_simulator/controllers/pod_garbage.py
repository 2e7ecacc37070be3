"""The pod garbage collector: pods of Nodes that are gone or out of service.

Source: gcOrphaned and gcTerminating in
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podgc/gc_controller.go
(2026-11).
"""

import asyncio
from typing import Final

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.kinds import NODE, POD
from infra.local.cluster_simulator.rules.matching import taints_of
from infra.local.cluster_simulator.rules.view import is_finished
from infra.local.cluster_simulator.world import World, is_terminating, is_true, node_of

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class PodGarbage:
    """Looks every 20 s for pods that no kubelet will ever end, and deletes them by force."""

    def __init__(self, world: World) -> None:
        self._world = world
        # By name of a Node that is gone: when its quarantine ends.
        self._quarantined: dict[str, float] = {}
        self._looks = world.queue(self._look, parallel=1)
        self._looks.add(POD.name)

    async def _look(self, _: str) -> float:
        now = asyncio.get_running_loop().time()
        nodes = {node["metadata"]["name"]: node for node in self._world.nodes}
        pods = [pod for pod in self._world.pods if node_of(pod)]
        for pod in pods:
            node = nodes.get(node_of(pod))
            if node is not None and is_terminating(pod) and _is_out_of_service(node):
                await self._delete(pod)
        gone = {node_of(pod) for pod in pods} - set(nodes)
        timing = self._world.timing
        ends = now + timing.real(timing.quarantine_seconds)
        self._quarantined = {name: self._quarantined.get(name, ends) for name in gone}
        for name in sorted(name for name, end in self._quarantined.items() if end <= now):
            del self._quarantined[name]
            if not await self._exists(name):
                for pod in self._world.pods_on(name):
                    await self._delete(pod)
        return timing.real(timing.collection_seconds)

    async def _exists(self, name: str) -> bool:
        """Return whether the server knows a Node that the cache does not."""
        try:
            await self._world.client.get(NODE, "", name)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    async def _delete(self, pod: Json) -> None:
        """Mark a pod as failed, then delete it without a grace period."""
        try:
            if not is_finished(pod):
                await self._world.client.patch_status(POD, pod, {"phase": "Failed"})
            await self._world.client.delete(POD, pod, grace_seconds=0)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _is_out_of_service(node: Json) -> bool:
    tainted = any(taint["key"] == OUT_OF_SERVICE for taint in taints_of(node))
    return tainted and not is_true(node, "Ready")

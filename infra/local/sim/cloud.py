"""The cloud controller: initialises nodes whose machine runs, deletes nodes whose machine is gone.

Source: https://kubernetes.io/docs/concepts/architecture/cloud-controller/ (2026-08).
"""

from collections.abc import Coroutine, Iterable
from typing import Any, Final

from infra.local.sim.client import Json
from infra.local.sim.kinds import NODE
from infra.local.sim.machines import GONE, RUNNING, Machine, Machines
from infra.local.sim.matching import labels_of, taints_of
from infra.local.sim.workqueue import WorkQueue
from infra.local.sim.world import World, is_terminating, is_true

UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"


class Cloud:
    """The node part of a cloud controller manager."""

    def __init__(self, world: World, machines: Machines) -> None:
        self._world = world
        self._machines = machines
        self._queue: WorkQueue[str] = WorkQueue(self._node)
        world.nodes.subscribe(self._changed)

    def jobs(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Return the work loop."""
        return (self._queue.run(),)

    def _changed(self, _: Json | None, new: Json | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])

    async def _node(self, name: str) -> float | None:
        node = self._world.nodes.get(name)
        if node is None or is_terminating(node):
            return None
        raw = any(taint["key"] == UNINITIALIZED for taint in taints_of(node))
        # As the real one does, ask the cloud only about nodes that are new or not ready.
        if not raw and (is_true(node, "Ready") or not node["spec"].get("providerID")):
            return None
        machine = await self._machines.find(node["spec"].get("providerID") or "", name)
        if machine.state == GONE:
            await self._world.client.delete(NODE, node)
            return self._world.timing.poll()
        if machine.state == RUNNING and raw:
            await self._initialise(node, machine)
            return None
        return self._world.timing.poll()

    async def _initialise(self, node: Json, machine: Machine) -> None:
        taints = [taint for taint in taints_of(node) if taint["key"] != UNINITIALIZED]
        spec: Json = {"taints": taints}
        if machine.provider_id and not node["spec"].get("providerID"):
            spec["providerID"] = machine.provider_id
        known = {
            ZONE: machine.zone,
            REGION: machine.zone[:-1],
            INSTANCE_TYPE: machine.instance_type,
        }
        labels = labels_of(node)
        added = {key: value for key, value in known.items() if value and key not in labels}
        version = node["metadata"]["resourceVersion"]
        change = {"metadata": {"resourceVersion": version, "labels": added}, "spec": spec}
        await self._world.patch(NODE, node, change)

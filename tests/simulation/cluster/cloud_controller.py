"""The cloud controller's monitor of nodes that are not Ready."""

from typing import Final

from infra.local.cluster_simulator.controllers.cloud import SHUTDOWN
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from tests.simulation.aws.region import Region
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.schedule.kernel import Kernel
from tests.simulation.schedule.seeded_random import between

_EVERY: Final = 5.0
_MISSED: Final = 6.0
_TAINT: Final = Taint(key=SHUTDOWN, effect=Effect.NO_SCHEDULE)


class CloudController:
    """Asks EC2 about each Node that is not Ready, every five seconds.

    It deletes the Node of an instance that EC2 does not show or calls terminated, and taints that
    of a stopped one. A Node of a stopped instance is never deleted.

    Source: MonitorNodes in
    https://github.com/kubernetes/cloud-provider/blob/v0.35.4/controllers/nodelifecycle/node_lifecycle_controller.go,
    InstanceExistsByProviderID and InstanceShutdownByProviderID in
    https://github.com/kubernetes/cloud-provider-aws/blob/v1.34.3/pkg/providers/v1/aws.go (2026-11).
    """

    def __init__(self, kernel: Kernel, api: ApiServer, region: Region) -> None:
        self._kernel = kernel
        self._api = api
        self._region = region
        self._missed: dict[str, int] = {}
        kernel.after(between(0, _EVERY, region.seed, "monitor", api.name), self._monitor)

    def miss(self, instance_id: str) -> None:
        """Let the next request for an instance find nothing: EC2 is eventually consistent."""
        self._missed[instance_id] = self._kernel.time + int(_MISSED * 1e6)

    def _monitor(self) -> None:
        self._kernel.after(_EVERY, self._monitor)
        if self._kernel.time < self._api.away_until or self._region.away():
            return
        for node in list(self._api.node_values.values()):
            if node.ready is True:
                self._taint(node, shut_down=False)
            elif (state := self._state(node)) in {"", "terminated"}:
                self._api.delete_node(node)
            elif state == "stopped":
                self._taint(node, shut_down=True)

    def _state(self, node: Node) -> str:
        """Return what EC2 says about a Node's instance, nothing when it does not show it."""
        machine = self._region.machines[node.instance_id].model
        missed = self._missed.pop(node.instance_id, 0) > self._kernel.time
        if missed or not self._region.ec2.shows(machine):
            return ""
        return machine.state(self._kernel.now())

    def _taint(self, node: Node, *, shut_down: bool) -> None:
        if shut_down != (_TAINT in node.taints):
            others = tuple(taint for taint in node.taints if taint != _TAINT)
            taints = (*others, _TAINT) if shut_down else others
            self._api.put_node(replace(node, taints=taints))

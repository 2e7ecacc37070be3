"""Volumes of stateful pods: attached to one node at a time, and for minutes to a dead one."""

from typing import Final

from infra.local.cluster_simulator.volumes import OUT_OF_SERVICE
from shared.model.kubernetes.pods import Pod
from tests.simulation.aws.machines import Machine
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.schedule.kernel import Kernel

_DETACHES: Final = 2.0
_BY_FORCE: Final = 360


class Volumes:
    """The attach-detach controller of one cluster.

    A volume that no pod needs is detached when a living kubelet has unmounted it. A node without
    one keeps it for six minutes, or until its Node has the out-of-service taint. The
    VolumeAttachment outlives a terminated instance, though EC2 has detached the volume.

    Source:
    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/volume/attachdetach/reconciler/reconciler.go
    (2026-11).

    Args:
        kubelets: Those that live, by Node name.
    """

    def __init__(self, kernel: Kernel, api: ApiServer, kubelets: dict[str, Machine]) -> None:
        self._kernel = kernel
        self._api = api
        self._kubelets = kubelets
        self._unwanted: dict[tuple[str, str], int] = {}
        api.watched.append(self._look)

    def mounted(self, pod: Pod) -> bool:
        """Return whether the kubelet may start a pod; its volume is attached as soon as it can."""
        volume, attached = self._volume_of(pod), self._api.attachments
        if not volume or volume in attached.get(pod.node_name, ()):
            return True
        if not any(volume in names for names in attached.values()):
            attached[pod.node_name] = (*attached.get(pod.node_name, ()), volume)
        return False

    def _volume_of(self, pod: Pod) -> str:
        workload = self._api.workloads.get(pod.labels.get("app", ""))
        return f"volume-of-{pod.name}" if workload is not None and workload.volumes else ""

    def _look(self) -> None:
        for node, names in self._api.attachments.items():
            for volume in names:
                place = (node, volume)
                if place not in self._unwanted and not self._is_wanted(*place):
                    self._unwanted[place] = self._kernel.time
                    self._kernel.after(_DETACHES, lambda place=place: self._detach(*place))  # type: ignore[misc]

    def _is_wanted(self, node: str, volume: str) -> bool:
        return any(
            self._volume_of(pod) == volume and not pod.is_terminal
            for pod in self._api.pods_of_node(node)
        )

    def _detach(self, node: str, volume: str) -> None:
        if self._is_wanted(node, volume):
            del self._unwanted[node, volume]
        elif not self._may_detach(node, self._unwanted[node, volume]):
            self._kernel.after(_DETACHES, lambda: self._detach(node, volume))
        else:
            del self._unwanted[node, volume]
            left = tuple(
                attachment for attachment in self._api.attachments[node] if attachment != volume
            )
            self._api.attachments[node] = left
            self._api.touch()

    def _may_detach(self, name: str, since: int) -> bool:
        if name in self._kubelets or self._kernel.time - since >= _BY_FORCE * 1_000_000:
            return True
        node = self._api.node_values.get(name)
        return node is not None and any(taint.key == OUT_OF_SERVICE for taint in node.taints)

"""The kubelets of a trace: how long instances boot and containers start."""

from typing import Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Taint
from tests.simulation.aws.machines import Machine
from tests.simulation.cluster.kubelets import CLOUD_TAINT, NodeSide
from tests.simulation.schedule.seeded_random import between
from tests.weeks.workloads import Workload

# From launch to Ready: what AWS and users report of AL2023, from small to large.
BOOT_SECONDS: Final = (20.0, 90.0)
_REGISTRATION_SECONDS: Final = 3.0
_MINUTE: Final = 60_000_000


class Kubelets(NodeSide):
    """Instances that boot as their type, their zone and the minute decide, in whatever order.

    Attributes:
        given: Labels and taints that a kubelet registers its Node with, by instance id; for other
            instances the user data says it.
    """

    given: dict[str, tuple[dict[str, str], tuple[Taint, ...]]]

    def _register(self, machine: Machine) -> None:
        if machine.instance.instance_id not in self.given:
            super()._register(machine)
            return
        labels, taints = self.given[machine.instance.instance_id]
        name, offering = machine.instance.private_dns_name, machine.instance.offering
        own = {
            **self.types[offering.instance_type].labels,
            keys.INSTANCE_TYPE: offering.instance_type,
            keys.ZONE: offering.zone,
            keys.HOSTNAME: name,
        }
        node = Node(
            name=name,
            uid=f"uid-kubelet-{machine.instance.instance_id}",
            labels={**labels, **own},
            taints=(*taints, CLOUD_TAINT),
            provider_id=machine.instance.provider_id,
        )
        self.api.post_node(node)
        self.api.touch()

    def launched(self, machine: Machine) -> None:
        """Let an instance boot and join."""
        offering, minute = machine.instance.offering, machine.born // _MINUTE
        where = (offering.instance_type, offering.zone, minute)
        boots = between(*BOOT_SECONDS, self.faults.seed, "boot", *where)
        joins = machine.born + int(boots * 1e6)
        starts = joins - int(_REGISTRATION_SECONDS * 1e6)
        self.kernel.at(starts, lambda: self._start(machine))
        self.kernel.at(joins, lambda: self._join(machine))

    def _run(self, pod: Pod) -> None:
        """Let a pod be Ready when its containers have started."""
        name = pod.labels["app"]
        workload = self.api.workloads.get(name)
        seconds = workload.starts_seconds if isinstance(workload, Workload) else 1.0
        self.kernel.after(seconds, lambda: super(Kubelets, self)._run(pod))

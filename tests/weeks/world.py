"""One world for both autoscalers: a trace, a cluster, and an EC2 without faults."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.ec2.instance_types import CapacityType, InstanceType
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from tests.builders import ZONES
from tests.fakes.catalog import FakeCatalog
from tests.simulation.aws.functions import cut
from tests.simulation.schedule.faults import CallFaults
from tests.simulation.schedule.scenario import ClusterScene, Scene
from tests.simulation.schedule.world import World
from tests.weeks.cluster import Cluster
from tests.weeks.kubelets import Kubelets
from tests.weeks.traces import Change, Trace

Raw = Mapping[str, Any]
NAME: Final = "cluster-a"
SIZES: Final = (
    *("medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge"),
    *("16xlarge", "24xlarge", "48xlarge"),
)
_SECOND: Final = 1_000_000
NODE_CLASS: Final[Raw] = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default", "uid": "uid-class"},
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "instanceProfile": "nodes",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "test"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "test"}}],
    },
}


def node_pool(families: Sequence[str], consolidate_after: str) -> Raw:
    """Return the NodePool that both autoscalers have, with Karpenter's default budgets."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "uid": "uid-pool", "generation": 1},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "default",
                    },
                    "requirements": [
                        _among(keys.CAPACITY_TYPE, "on-demand"),
                        _among(keys.ARCH, "amd64"),
                        _among(keys.INSTANCE_FAMILY, *families),
                    ],
                    "expireAfter": "Never",
                }
            },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": consolidate_after,
                "budgets": [{"nodes": "10%"}],
            },
        },
    }


def _among(key: str, *values: str) -> Raw:
    return {"key": key, "operator": "In", "values": list(values)}


@functools.cache
def instance_types(families: tuple[str, ...]) -> tuple[InstanceType, ...]:
    """Return the types of some families that are not metal, on demand in three zones."""
    names = [f"{family}.{size}" for family in families for size in SIZES]
    return tuple(
        replace(
            known,
            offerings=tuple(
                way for way in known.offerings if way.capacity_type is CapacityType.ON_DEMAND
            ),
        )
        for known in FakeCatalog.embedded(*names, zones=ZONES).instance_types()
    )


class WeeksWorld(World):
    """The world of a trace."""

    api_servers = Cluster
    node_sides = Kubelets
    sweeps = True

    def __init__(self, trace: Trace, seed: int, consolidate_after: str) -> None:
        self.trace = trace
        self.types_allowed = instance_types(trace.families)
        self.pool = node_pool(trace.families, consolidate_after)
        cluster = ClusterScene(name=NAME, provisioners=(), workloads=(), scalings=())
        scene = Scene(seed=seed, clusters=(cluster,), types=self.types_allowed, sweeps=self.sweeps)
        super().__init__(scene, CallFaults.only((), seed))
        self._workloads = trace.fresh()
        for change in trace.changes:
            self.kernel.after(
                change.second,
                lambda change=change: self._change(change),  # type: ignore[misc]
            )

    @property
    def cluster(self) -> Cluster:
        """Its only cluster."""
        cluster = self.apis[NAME]
        assert isinstance(cluster, Cluster)
        return cluster

    @property
    def kubelets(self) -> Kubelets:
        """Those of its cluster."""
        side = self.sides[NAME]
        assert isinstance(side, Kubelets)
        return side

    def _build(self, cluster_scene: ClusterScene) -> None:
        super()._build(cluster_scene)
        self.cluster.prepare()
        self.cluster.apply(NODE_CLASS, self.pool)
        self.kubelets.given = {}

    def _change(self, change: Change) -> None:
        workload = self._workloads[change.workload]
        workload.scale(change.replicas)
        if change.rolls:
            workload.roll()
        self.cluster.change(workload)

    def play(self) -> None:
        """Let Dovetail serve the trace."""
        provision: Any = self.functions.runtimes["provision"]
        # Schedules of faults need no good plans and no good changes; these do.
        provision._disruption = DisruptionSettings()
        provision._packing = replace(
            provision._packing, improve_iterations=PackingSettings().improve_iterations
        )
        with cut(self.functions, lambda text, reason: self.delivery.dead.append(text)):
            try:
                self.kernel.run_until(int(self.trace.seconds * _SECOND))
            finally:
                self.kernel.end()
        left = itertools.chain(self.delivery.dead, self.timers.failed)
        assert not list(left), "a message or a timer was given up"

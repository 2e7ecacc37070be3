"""A cluster in memory for `dovetail shadow`: tests report its changes and say what lists hold."""

from collections.abc import Iterable, Mapping

from functions.cli.watch.cluster_watch import WatchedPod
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.provisioner import Provisioner
from shared.model.requirements import Requirements
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests import builders as make
from tests.unit.cli.watch.running import WatchedCluster


class ObservedCluster(WatchedCluster):
    """Raises `failure` in place of lists, but for those of nodes and pods.

    Attributes:
        zones: What the volumes of pods with claims require of nodes.
        refusals: Why volumes cannot be resolved.
    """

    url = "https://test"

    def __init__(self, *owners: Provisioner) -> None:
        super().__init__(*owners)
        self.zones: Requirements | None = None
        self.refusals: tuple[str, ...] = ()
        self.asked: list[str] = []

    def require_access(self) -> None:
        return

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        if self.failure is not None:
            raise self.failure
        return (make.budget(),)

    def namespaces_for(self, pods: Iterable[Pod]) -> Mapping[str, Mapping[str, str]]:
        return {pod.namespace: {} for pod in pods}

    def with_volumes(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        if self.failure is not None:
            raise self.failure
        self.asked += [pod.name for pod in snapshot.pending]
        terms = () if self.zones is None else ((self.zones,),)
        return replace(
            snapshot,
            pending=tuple(
                replace(
                    pod,
                    scheduling=replace(
                        pod.scheduling,
                        claims=RESOLVED,
                        volume_terms=terms,
                        refusals=self.refusals,
                    ),
                )
                for pod in snapshot.pending
            ),
        )

    def has(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        """Report nodes and pods that were not there before, and that the lists are complete."""
        of_nodes, of_pods = self.watches[:2]
        for node in nodes:
            of_nodes.changed(None, node)
        for pod in pods:
            of_pods.changed(None, WatchedPod(pod, ""))
        self.synced()

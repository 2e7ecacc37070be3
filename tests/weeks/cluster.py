"""The cluster of a trace: its API server with controllers and kube-scheduler."""

from collections.abc import Mapping
from typing import Any, Final

from shared.manifests.pods import PodDecoder
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.values import replace
from tests.simulation.cluster.apiserver import ApiServer
from tests.simulation.cluster.kept import Logged
from tests.simulation.cluster.workloads import JOB
from tests.weeks import workloads
from tests.weeks.manifests import node_manifest, open_nodes
from tests.weeks.scheduler import Nodes
from tests.weeks.storage import STORAGE_CLASS, Storage
from tests.weeks.workloads import Workload

Raw = Mapping[str, Any]
AGENT: Final = "agent"
_AGENT_SPEC: Final[Raw] = {
    "containers": [
        {
            "name": "main",
            "image": "example.com/agent",
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        }
    ],
    "tolerations": [{"operator": "Exists"}],
}
DAEMONSET: Final[Raw] = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"namespace": "kube-system", "name": AGENT, "uid": "uid-agent"},
    "spec": {
        "selector": {"matchLabels": {"app": AGENT}},
        "template": {"metadata": {"labels": {"app": AGENT}}, "spec": _AGENT_SPEC},
    },
}


class Cluster(ApiServer):
    """An API server whose workloads are those of a trace.

    Attributes:
        raws: The manifest of each pod as it was made, by UID.
        restarted: UIDs of pods that replace others without their user's wish.
        removed: Microsecond and pod of each eviction and deletion that was asked for from outside.
    """

    workloads: dict[str, Workload]  # type: ignore[assignment]

    def prepare(self) -> None:
        """Begin without pods."""
        self.raws: dict[str, Raw] = {}
        self.restarted: set[str] = set()
        self.removed: list[tuple[int, Pod]] = []
        self.pod_decoder = PodDecoder()
        self.storage = Storage()
        self._node_manifests: dict[str, tuple[Node, Raw]] = {}
        self.apply(DAEMONSET, STORAGE_CLASS)

    @property
    def log(self) -> list[tuple[int, Pod | None, Pod | None]]:
        """What happened to pods: microsecond, former, new."""
        assert isinstance(self.pods, Logged)
        return self.pods.log

    @property
    def node_log(self) -> list[tuple[int, Node | None, Node | None]]:
        """What happened to Nodes: microsecond, former, new."""
        assert isinstance(self.node_values, Logged)
        return self.node_values.log

    def change(self, workload: Workload) -> None:
        """Take a workload in, or go on with a changed one."""
        if workload.name not in self.workloads and workload.raw_budget is not None:
            self.apply(workload.raw_budget)
        self.workloads[workload.name] = workload
        self.touch()

    def make_of(self, workload: Workload, number: int) -> None:
        """Make a pod of a workload."""
        raw = workload.raw_pod(number)
        pod = self.pod_decoder.decode({**raw, "status": {"phase": "Pending"}})
        self.raws[pod.uid] = raw
        if workload.owed:
            workload.owed -= 1
        else:
            self.restarted.add(pod.uid)
        if workload.volumes and self.storage.claim(pod.name):
            self._show_storage()
        self.make(pod)

    def place(self, pod: Pod, node: str) -> None:
        if self.storage.bind(pod.name, self.node_values[node]):
            self._show_storage()
        super().place(pod, node)

    def _show_storage(self) -> None:
        self._claims, self._volumes = [], []
        self.apply(*self.storage.claims.values(), *self.storage.volumes.values())

    def evict(self, pod: Pod) -> None:
        before = self.pods.get(pod.key)
        super().evict(pod)
        self._note(before)

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        before = self.pods.get(pod.key)
        super().delete_pod(pod, grace_seconds)
        self._note(before)

    def _note(self, before: Pod | None) -> None:
        after = self.pods.get(before.key) if before is not None else None
        if before is not None and not before.is_terminating and after and after.is_terminating:
            self.removed.append((self.kernel.time, before))

    def disruption_budgets(self) -> tuple[PodDisruptionBudget, ...]:
        return tuple(
            replace(budget, disruptions_allowed=self.allowed(self.workloads[budget.name]))
            for budget in super().disruption_budgets()
            if budget.name in self.workloads
        )

    def allowed(self, workload: Workload) -> int:
        """Return how many pods of a workload its budget lets be evicted now."""
        assert workload.unavailable is not None
        return max(self.healthy(workload) - (workload.replicas - workload.unavailable), 0)

    def act(self) -> None:
        """Let controllers, kube-scheduler and kubelets act at this moment."""
        by_app: dict[str, list[Pod]] = {name: [] for name in self.workloads}
        covered = set()
        for pod in self.pods.values():
            name = pod.labels["app"]
            if name == AGENT:
                covered.add(pod.node_name)
            else:
                by_app[name].append(pod)
        for node in self.node_values.values():
            if node.name not in covered and node.ready and node.deletion_at is None:
                self._make_agent(node)
        for name, mine in by_app.items():
            workload = self.workloads[name]
            workloads.keep(self, workload, mine)
            ended = workload.kind == JOB and workload.finished >= workload.replicas
            if ended and not mine:
                del self.workloads[name]
        self._schedule()
        for watcher in self.watched:
            watcher()

    def _make_agent(self, node: Node) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": AGENT, "uid": "uid-agent"}
        metadata = {
            "namespace": "kube-system",
            "name": f"{AGENT}-{node.uid}",
            "uid": f"uid-{AGENT}-{node.uid}",
            "labels": {"app": AGENT},
            "ownerReferences": [{**owner, "controller": True}],
        }
        spec = {**_AGENT_SPEC, "nodeName": node.name}
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        pod = self.pod_decoder.decode({**raw, "status": {"phase": "Pending"}})
        self.raws[pod.uid] = raw
        self.make(pod)

    def _schedule(self) -> None:
        """Bind what fits somewhere, and mark the rest unschedulable."""
        pods = self.pods.values()
        waiting = [pod for pod in pods if not pod.node_name and pod.deletion_at is None]
        if not waiting:
            return
        nodes = Nodes(
            [self.manifest(node) for node in open_nodes(self.node_values.values())],
            [
                (self.raws[pod.uid], pod.node_name)
                for pod in pods
                if pod.node_name and not pod.is_terminal
            ],
            self.storage,
        )
        hopeless = set()
        for pod in sorted(waiting, key=lambda pod: (pod.created_at, pod.key)):
            kind = (pod.labels["app"], pod.labels["revision"])
            place = "" if kind in hopeless else nodes.place(self.raws[pod.uid])
            if place:
                self.place(pod, place)
            else:
                hopeless.add(kind)
                if not pod.unschedulable:
                    self.mark_unschedulable(pod)

    def manifest(self, node: Node) -> Raw:
        """Return a Node as an API server shows it."""
        known = self._node_manifests.get(node.name)
        if known is None or known[0] is not node:
            known = self._node_manifests[node.name] = (node, node_manifest(node))
        return known[1]

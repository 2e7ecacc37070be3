"""One cluster's API server, with the controllers that act by themselves."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from shared.model import labels as keys
from shared.model.errors import EvictionRefusedError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.taints import Effect, Taint
from shared.model.values import replace
from shared.ports import NodeChange
from shared.ports.cluster import EachPage, nothing
from tests.fakes.calls import Call
from tests.fakes.cluster import FakeCluster
from tests.simulation.cluster import workloads
from tests.simulation.cluster.kept import KEEPING, Bucket, Keeping, KeepingProcess, Logged
from tests.simulation.cluster.workloads import Workload
from tests.simulation.schedule.kernel import Kernel

_SOON = 0.2
# Until the node lifecycle controller writes what follows from a cordon onto the Node.
# Source: doNoScheduleTaintingPass,
# https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/nodelifecycle/node_lifecycle_controller.go
# (2026-11).
_TAINTED = 0.03
_UNSCHEDULABLE = Taint(key=keys.UNSCHEDULABLE_TAINT, effect=Effect.NO_SCHEDULE)


class ApiServer(FakeCluster):
    """Implements shared.ports.Cluster; whatever changes is looked at soon after.

    Attributes:
        away_until: Microsecond until which it does not answer.
        watched: Called after controllers have acted, with time to speak.
    """

    def __init__(self, name: str, kernel: Kernel, bucket: Bucket) -> None:
        self.kernel = kernel
        self.workloads: dict[str, Workload] = {}
        self.away_until = 0
        self.watched: list[Callable[[], None]] = []
        self._due = False
        super().__init__(name)
        self.pods = Logged(kernel, self.pods)
        self.node_values = Logged(kernel, self.node_values)
        looks = (super().pods_on, super().node)
        self.keeping = Keeping(name, kernel, bucket, (self.pods, self.node_values), looks)

    @property
    def now(self) -> datetime:
        return self.kernel.now().replace(microsecond=0)

    @now.setter
    def now(self, value: datetime) -> None:
        """Time is the kernel's."""

    # --- open to every client

    def touch(self) -> None:
        """Let the controllers look soon."""
        if not self._due:
            self._due = True
            self.kernel.after(_SOON, self._look)

    def pods_of(self, app: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.labels.get("app") == app]

    def pods_of_node(self, name: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node_name == name]

    def make(self, pod: Pod) -> None:
        version = self._next_version()
        self.pods[pod.key] = replace(
            pod, resource_version=version, created_at=self.now, phase="Pending"
        )
        self.touch()

    def put(self, pod: Pod, **changes: Any) -> None:
        """Store a changed pod, if it is still the same one."""
        known = self.pods.get(pod.key)
        if known is not None and known.uid == pod.uid:
            self.pods[pod.key] = replace(pod, resource_version=self._next_version(), **changes)
            self.touch()

    def put_node(self, node: Node) -> None:
        known = self.node_values.get(node.name)
        if known is None or known.ready is not node.ready:
            node = replace(node, ready_changed_at=self.now)
        self.node_values[node.name] = replace(node, resource_version=self._next_version())
        self.touch()

    def remove(self, pod: Pod) -> None:
        known = self.pods.get(pod.key)
        if known is not None and known.uid == pod.uid:
            del self.pods[pod.key]
            self.touch()

    def stop(self, pod: Pod) -> None:
        self._stop(pod)
        self.touch()

    def place(self, pod: Pod, node: str) -> None:
        self.put(pod, node_name=node, unschedulable=False)

    def mark_unschedulable(self, pod: Pod) -> None:
        self.put(pod, unschedulable=True)

    def scale(self, name: str, replicas: int) -> None:
        self.workloads[name].replicas = replicas
        self.touch()

    # --- the port, where it differs

    def bound_pods(self, each_page: EachPage = nothing) -> tuple[Pod, ...]:
        shown = super().bound_pods(each_page)
        process = self._keeper()
        return shown if process is None else process.reads("bound_pods", shown)

    def nodes(self, each_page: EachPage = nothing) -> tuple[Node, ...]:
        shown = super().nodes(each_page)
        process = self._keeper()
        return shown if process is None else process.reads("nodes", shown)

    def leave_copies(self) -> bool:
        process = self._keeper()
        return process is not None and process.state.save()

    def read_on(self) -> None:
        """Let the processes that keep copies read on: one that has drifted does not stay so."""
        for process in self.keeping.all():
            process.reads_on("bound_pods", super().bound_pods())
            process.reads_on("nodes", super().nodes())

    def is_misread(self) -> bool:
        """Return whether the last readings of the process that asks were of a drifted copy."""
        process = self._keeper()
        return process is not None and process.drifted and any(process.wrong.values())

    def _keeper(self) -> KeepingProcess | None:
        """Return the process that asks, where its function reads whole clusters."""
        process = self.kernel.current
        if process is None or process.function not in KEEPING:
            return None
        return self.keeping.of(process)

    def evict(self, pod: Pod) -> None:
        known = self.pods.get(pod.key)
        if known is None or known.uid != pod.uid or known.is_terminating:
            return
        if self.is_held(known):
            raise EvictionRefusedError(f"pod {pod.key}: a PodDisruptionBudget forbids it")
        self._write("evict", pod.key)
        self._stop(pod)

    def change_node(self, node: Node, change: NodeChange) -> Node:
        changed = super().change_node(node, change)
        if change.unschedulable is not None:
            self.kernel.after(_TAINTED, lambda: self._taint(node.name))
        return changed

    def _taint(self, name: str) -> None:
        """Let the node lifecycle controller taint a cordoned node, and untaint another."""
        node = self.node_values.get(name)
        if node is None or node.unschedulable == (_UNSCHEDULABLE in node.taints):
            return
        others = tuple(taint for taint in node.taints if taint != _UNSCHEDULABLE)
        self.put_node(
            replace(node, taints=(*others, *([_UNSCHEDULABLE] if node.unschedulable else ())))
        )

    def is_held(self, pod: Pod) -> bool:
        """Return whether a budget forbids to evict a pod now."""
        workload = self.workloads.get(pod.labels.get("app", ""))
        return (
            workload is not None
            and workload.unavailable is not None
            and pod.phase == "Running"
            and self.healthy(workload) - 1 < workload.replicas - workload.unavailable
        )

    def healthy(self, workload: Workload) -> int:
        return sum(1 for pod in self.pods_of(workload.name) if pod.ready and not pod.is_terminating)

    def bind(self, pod: Pod, node: str) -> None:
        super().bind(pod, node)
        self.touch()

    def _read(self, method: str) -> None:
        self._raise_planned(method)

    def _write(self, method: str, subject: str, argument: object = None) -> None:
        self._raise_planned(method)
        self.calls.append(Call(method, subject, argument)) if method == "happened" else None
        self.touch()

    def _look(self) -> None:
        self._due = False
        if self.kernel.time < self.away_until:
            # Controllers cannot reach it either.
            self._due = True
            self.kernel.at(self.away_until + 1, self._look)
            return
        self.act()

    def act(self) -> None:
        """Let controllers, kube-scheduler and kubelets act at this moment."""
        by_app: dict[str, list[Pod]] = {name: [] for name in sorted(self.workloads)}
        for pod in self.pods.values():
            by_app[pod.labels["app"]].append(pod)
        for name, mine in by_app.items():
            workloads.keep(self, self.workloads[name], mine)
        workloads.schedule(self)
        for watcher in self.watched:
            watcher()

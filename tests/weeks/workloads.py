"""What users run in a trace: workloads, and the controllers that keep their pods.

Sources of the controllers, below
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/ (2026-12):
deployment/util/deployment_util.go; controller_utils.go (which pod of a ReplicaSet is deleted
first); statefulset/stateful_set_control.go.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod
from tests.simulation.cluster import workloads as plain
from tests.simulation.cluster.workloads import FLOATING, JOB, STATEFUL

if TYPE_CHECKING:
    from tests.weeks.cluster import Cluster

Raw = Mapping[str, Any]
_API_VERSIONS: Final = {FLOATING: "apps/v1", STATEFUL: "apps/v1", JOB: "batch/v1"}
# maxSurge and maxUnavailable of a Deployment that says nothing.
_ROLLING: Final = 0.25
_TOLERATIONS: Final = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in (keys.NODE_NOT_READY_TAINT, keys.NODE_UNREACHABLE_TAINT)
]


@dataclass
class Workload(plain.Workload):
    """One workload; its pods are all alike.

    Attributes:
        kind: Of the owner of its pods; a Job's replicas are its completions, all at a time.
        gpus: Of each pod.
        extra: Further fields of its pods' spec.
        starts_seconds: From the start of a container until its pod is Ready.
        revision: Of its template.
        owed: Pods that its user asked for and that are not made yet; all others replace pods.
    """

    gpus: int = 0
    extra: Raw = field(default_factory=dict)
    starts_seconds: float = 5
    revision: int = 1
    owed: int = 0

    @property
    def spec(self) -> Raw:
        """The spec of its pods."""
        requests = {"cpu": f"{self.cpu}m", "memory": str(self.memory)}
        resources: dict[str, Any] = {"requests": requests}
        if self.gpus:
            requests["nvidia.com/gpu"] = str(self.gpus)
            resources["limits"] = {"nvidia.com/gpu": str(self.gpus)}
        container = {"name": "main", "image": "example.com/main", "resources": resources}
        return {
            "containers": [container],
            "tolerations": _TOLERATIONS,
            "terminationGracePeriodSeconds": 5,
            "schedulerName": "default-scheduler",
            **self.extra,
        }

    def raw_pod(self, number: int) -> Raw:
        """Return the manifest of one of its pods, with a UID of its own."""
        self.made += 1
        labels = {"app": self.name, "revision": str(self.revision)}
        owner = {
            "apiVersion": _API_VERSIONS[self.kind],
            "kind": self.kind,
            "name": self.name,
            "uid": f"uid-{self.name}-{self.revision if self.kind == FLOATING else 1}",
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "namespace": "default",
            "name": f"{self.name}-{number}",
            "uid": f"uid-{self.name}-pod-{self.made}",
            "labels": labels,
            "ownerReferences": [owner],
        }
        spec = {**self.spec}
        if self.volumes:
            claim = {"claimName": claim_of(str(metadata["name"]))}
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    @property
    def raw_budget(self) -> Raw | None:
        """The manifest of its PodDisruptionBudget."""
        if self.unavailable is None:
            return None
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "default", "name": self.name, "uid": f"uid-pdb-{self.name}"},
            "spec": {
                "maxUnavailable": self.unavailable,
                "selector": {"matchLabels": {"app": self.name}},
            },
        }

    def scale(self, replicas: int) -> None:
        """Let its user want another number of pods."""
        self.owed = max(self.owed + replicas - self.replicas, 0)
        self.replicas = replicas

    def roll(self) -> None:
        """Let its user change its template: all pods are replaced."""
        self.revision += 1
        self.owed += self.replicas


def claim_of(pod: str) -> str:
    """Return the name of the PersistentVolumeClaim of a StatefulSet's pod."""
    return f"data-{pod}"


def keep(cluster: "Cluster", workload: Workload, mine: list[Pod]) -> None:
    """Make and delete pods until there are as many as wanted.

    Args:
        mine: Those there are.
    """
    for pod in mine:
        if pod.phase == "Failed":
            cluster.remove(pod)
    present = [pod for pod in mine if not pod.is_terminal]
    if workload.kind == STATEFUL:
        _keep_ordered(cluster, workload, present)
        return
    active = [pod for pod in present if not pod.is_terminating]
    if workload.kind == JOB:
        _make(cluster, workload, workload.replicas - workload.finished - len(active))
        return
    revision = str(workload.revision)
    new = [pod for pod in active if pod.labels["revision"] == revision]
    old = [pod for pod in active if pod.labels["revision"] != revision]
    surge = math.ceil(_ROLLING * workload.replicas) if old else 0
    most = workload.replicas + surge - len(active)
    _make(cluster, workload, min(workload.replicas - len(new), most))
    _stop(cluster, new, len(new) - workload.replicas)
    if old:
        least = workload.replicas - math.floor(_ROLLING * workload.replicas)
        unready = [pod for pod in old if not pod.ready]
        spare = sum(pod.ready for pod in active) - least
        _stop(cluster, unready, len(unready))
        _stop(cluster, [pod for pod in old if pod.ready], spare)


def _make(cluster: "Cluster", workload: Workload, count: int) -> None:
    for _ in range(count):
        cluster.make_of(workload, workload.made)


def _stop(cluster: "Cluster", pods: list[Pod], count: int) -> None:
    """Delete pods: those that wait first, then those beside most others, then young ones."""
    if count <= 0:
        return
    beside = Counter(pod.node_name for pod in pods)
    order = sorted(
        pods,
        key=lambda pod: (
            bool(pod.node_name),
            pod.ready,
            -beside[pod.node_name],
            -int(pod.uid.rsplit("-", 1)[1]),
        ),
    )
    for pod in order[:count]:
        cluster.stop(pod)


def _keep_ordered(cluster: "Cluster", workload: Workload, present: list[Pod]) -> None:
    """Make the next pod once all before it are Ready; delete the last one."""
    by_number = {int(pod.name.rsplit("-", 1)[1]): pod for pod in present}
    for number in range(workload.replicas):
        pod = by_number.get(number)
        if pod is None:
            cluster.make_of(workload, number)
            return
        if not pod.ready:
            return
    surplus = [number for number in by_number if number >= workload.replicas]
    outdated = [
        number
        for number, pod in by_number.items()
        if pod.labels["revision"] != str(workload.revision)
    ]
    if any(pod.is_terminating for pod in present):
        return
    for number in sorted(surplus, reverse=True)[:1] or sorted(outdated, reverse=True)[:1]:
        cluster.stop(by_number[number])

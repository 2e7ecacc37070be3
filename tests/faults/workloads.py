"""What users run: workloads, the controllers that keep their pods, and kube-scheduler."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from shared.model import labels as keys
from shared.model.nodes import Node
from shared.model.pods import Owner, Pod, Scheduling
from shared.model.requirements import Requirements
from shared.model.resources import CPU, MEMORY, PODS
from shared.model.taints import first_untolerated
from tests.builders import DEFAULT_TOLERATIONS, MIB, needs, scheduling

if TYPE_CHECKING:
    from tests.faults.apiserver import ApiServer

FLOATING: Final = "ReplicaSet"
STATEFUL: Final = "StatefulSet"
JOB: Final = "Job"


@dataclass
class Workload:
    """One workload; its pods are all alike.

    Attributes:
        replicas: Wanted now.
        unavailable: How many its PodDisruptionBudget lets be away at once, None without one.
        seconds: How long a Job's pods run.
    """

    name: str
    kind: str = FLOATING
    cpu: int = 500
    memory: int = 512 * MIB
    replicas: int = 0
    unavailable: int | None = None
    seconds: float = 0
    never_evict: bool = False
    zone: str = ""
    made: int = 0
    finished: int = 0
    scheduling: Scheduling = field(init=False)

    def __post_init__(self) -> None:
        self.scheduling = scheduling(
            self.cpu,
            self.memory,
            tolerations=DEFAULT_TOLERATIONS,
            node_selector=needs(keys.ZONE, "In", self.zone) if self.zone else Requirements(),
        )

    def pod(self, number: int, cluster: str) -> Pod:
        self.made += 1
        owner = Owner(kind=self.kind, name=self.name, uid=f"uid-{self.name}", api_version="apps/v1")
        return Pod(
            namespace="default",
            name=f"{self.name}-{number}",
            uid=f"uid-{cluster}-{self.name}-{self.made}",
            labels={"app": self.name},
            annotations={keys.DO_NOT_EVICT: "true"} if self.never_evict else {},
            scheduling=self.scheduling,
            owner=owner,
            grace_period_seconds=5,
        )


def keep(api: "ApiServer", workload: Workload) -> None:
    """Make and delete pods until there are as many as wanted."""
    mine = api.pods_of(workload.name)
    for pod in mine:
        # Others leave what has failed where it is.
        if pod.phase == "Failed" and workload.kind == STATEFUL:
            api.remove(pod)
    present = [one for one in mine if not one.is_terminal]
    active = [one for one in present if not one.is_terminating]
    if workload.kind == STATEFUL:
        _keep_numbered(api, workload, present)
        return
    wanted = max(workload.replicas - workload.finished, 0)
    for _ in range(wanted - len(active)):
        api.make(workload.pod(workload.made, api.name))
    if workload.kind != JOB and len(active) > wanted:
        leaving = sorted(active, key=lambda one: (bool(one.node_name), one.key))
        for pod in leaving[: len(active) - wanted]:
            api.stop(pod)


def _keep_numbered(api: "ApiServer", workload: Workload, present: list[Pod]) -> None:
    names = {one.name for one in present}
    for number in range(workload.replicas):
        if f"{workload.name}-{number}" not in names:
            api.make(workload.pod(number, api.name))
    for pod in present:
        if int(pod.name.rsplit("-", 1)[1]) >= workload.replicas and not pod.is_terminating:
            api.stop(pod)


def fits(pod: Pod, node: Node, used: tuple[int, int, int]) -> bool:
    """Return whether a node has room for one more pod, whatever its taints."""
    room, wanted = node.allocatable, pod.scheduling.requests
    return (
        used[0] + wanted[CPU] <= room[CPU]
        and used[1] + wanted[MEMORY] <= room[MEMORY]
        and used[2] + 1 <= room[PODS]
    )


def used_on(pods: Iterable[Pod]) -> tuple[int, int, int]:
    cpu = memory = count = 0
    for pod in pods:
        if not pod.is_terminal:
            cpu += pod.scheduling.requests[CPU]
            memory += pod.scheduling.requests[MEMORY]
            count += 1
    return cpu, memory, count


def schedule(api: "ApiServer") -> None:
    """Bind what fits somewhere, and mark the rest unschedulable, as kube-scheduler does."""
    waiting = [one for one in api.pods.values() if not one.node_name and not one.is_terminating]
    if not waiting:
        return
    open_nodes = [
        one
        for one in api.node_values.values()
        if one.ready is True and not one.unschedulable and one.deletion_at is None
    ]
    standing: dict[str, list[Pod]] = {}
    for pod in api.pods.values():
        if pod.node_name:
            standing.setdefault(pod.node_name, []).append(pod)
    used = {one.name: used_on(standing.get(one.name, ())) for one in open_nodes}
    open_nodes.sort(key=lambda one: one.name)
    hopeless: set[str] = set()
    for pod in sorted(waiting, key=lambda one: one.key):
        # Its pods are all alike: where one finds no room, none does.
        for node in () if pod.labels["app"] in hopeless else open_nodes:
            if (
                first_untolerated(node.taints, pod.scheduling.tolerations) is None
                and pod.scheduling.node_selector.allow_labels(node.labels)
                and fits(pod, node, used[node.name])
            ):
                api.place(pod, node.name)
                taken = used_on([pod])
                old = used[node.name]
                used[node.name] = (old[0] + taken[0], old[1] + taken[1], old[2] + 1)
                # The fullest first, as far as that is cheap to keep.
                open_nodes.remove(node)
                open_nodes.insert(0, node)
                break
        else:
            hopeless.add(pod.labels["app"])
            if not pod.unschedulable:
                api.mark_unschedulable(pod)


def finishes(workload: Workload, pod: Pod) -> timedelta:
    """Return how long a Job's pod runs."""
    return timedelta(seconds=workload.seconds + sum(pod.name.encode()) % 17)


def ended(pod: Pod) -> Pod:
    return replace(pod, phase="Succeeded", ready=False)

"""What users run: workloads, the controllers that keep their pods, and kube-scheduler."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef, Pod, Scheduling
from shared.model.kubernetes.taints import first_untolerated
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.requirements import Requirements
from shared.model.resources import CPU, MEMORY, PODS, Resources
from shared.model.values import replace
from tests.builders import DEFAULT_TOLERATIONS, MIB, needs, scheduling

if TYPE_CHECKING:
    from tests.simulation.cluster.apiserver import ApiServer

FLOATING: Final = "ReplicaSet"
STATEFUL: Final = "StatefulSet"
JOB: Final = "Job"
_ENDED: Final = ("Succeeded", "Failed")


@dataclass
class Workload:
    """One workload; its pods are all alike.

    Attributes:
        replicas: Wanted now.
        unavailable: How many its PodDisruptionBudget lets be away at once, None without one.
        seconds: How long a Job's pods run.
        volumes: Whether each pod has a volume that goes with its name.
        unprovisioned: Whether its volumes are never provisioned: kube-scheduler binds none of it.
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
    volumes: bool = False
    unprovisioned: bool = False
    made: int = 0
    finished: int = 0
    scheduling: Scheduling = field(init=False)
    kept: tuple[list[Pod], int, int] = field(default_factory=lambda: ([], 0, 0))

    def __post_init__(self) -> None:
        self.scheduling = scheduling(
            self.cpu,
            self.memory,
            tolerations=DEFAULT_TOLERATIONS,
            node_selector=needs(keys.ZONE, "In", self.zone) if self.zone else Requirements(),
            claims=RESOLVED if self.volumes or self.unprovisioned else (),
        )

    def pod(self, number: int, cluster: str) -> Pod:
        self.made += 1
        owner = ControllerRef(
            kind=self.kind, name=self.name, uid=f"uid-{self.name}", api_version="apps/v1"
        )
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


def keep(api: "ApiServer", workload: Workload, mine: list[Pod]) -> None:
    """Make and delete pods until there are as many as wanted.

    Args:
        mine: Those there are.
    """
    seen = (mine, workload.replicas, workload.finished)
    if seen == workload.kept:
        return
    workload.kept = seen
    for pod in mine:
        # Others leave what has failed where it is.
        if pod.phase == "Failed" and workload.kind == STATEFUL:
            api.remove(pod)
    present = [pod for pod in mine if not pod.is_terminal]
    active = [pod for pod in present if not pod.is_terminating]
    if workload.kind == STATEFUL:
        _keep_numbered(api, workload, present)
        return
    wanted = max(workload.replicas - workload.finished, 0)
    for _ in range(wanted - len(active)):
        api.make(workload.pod(workload.made, api.name))
    if workload.kind != JOB and len(active) > wanted:
        leaving = sorted(active, key=lambda entry: (bool(entry.node_name), entry.key))
        for pod in leaving[: len(active) - wanted]:
            api.stop(pod)


def _keep_numbered(api: "ApiServer", workload: Workload, present: list[Pod]) -> None:
    names = {pod.name for pod in present}
    for number in range(workload.replicas):
        if f"{workload.name}-{number}" not in names:
            api.make(workload.pod(number, api.name))
    for pod in present:
        if int(pod.name.rsplit("-", 1)[1]) >= workload.replicas and not pod.is_terminating:
            api.stop(pod)


def room_on(node: Node) -> tuple[int, int, int]:
    """Return millicores, bytes and number of pods that a node has room for."""
    room = dict(node.allocatable.items)
    return room.get(CPU, 0), room.get(MEMORY, 0), room.get(PODS, 0)


def fits(wanted: tuple[int, int], used: tuple[int, int, int], room: tuple[int, int, int]) -> bool:
    """Return whether there is room for one more pod."""
    return (
        used[0] + wanted[0] <= room[0] and used[1] + wanted[1] <= room[1] and used[2] + 1 <= room[2]
    )


@functools.lru_cache(maxsize=512)
def _amounts(asked: Resources) -> tuple[int, int]:
    return asked[CPU], asked[MEMORY]


def wanted_by(pod: Pod) -> tuple[int, int]:
    """Return millicores and bytes that a pod asks for."""
    return _amounts(pod.scheduling.requests)


def used_on(pods: Iterable[Pod]) -> tuple[int, int, int]:
    """Return millicores, bytes and number of the pods that have not ended."""
    cpu = memory = count = 0
    for pod in pods:
        if pod.phase not in _ENDED:
            one = wanted_by(pod)
            cpu += one[0]
            memory += one[1]
            count += 1
    return cpu, memory, count


def schedule(api: "ApiServer") -> None:
    """Bind what fits somewhere, and mark the rest unschedulable, as kube-scheduler does."""
    pods = api.pods.values()
    waiting = sorted(
        [pod for pod in pods if not pod.node_name and pod.deletion_at is None],
        key=lambda entry: entry.key,
    )
    if not waiting:
        return
    open_nodes = [
        node_value
        for node_value in api.node_values.values()
        if node_value.ready is True
        and not node_value.unschedulable
        and node_value.deletion_at is None
    ]
    standing: dict[str, list[Pod]] = {open_node.name: [] for open_node in open_nodes}
    for pod in pods if open_nodes else ():
        if pod.node_name in standing:
            standing[pod.node_name].append(pod)
    used = {name: used_on(there) for name, there in standing.items()}
    rooms = {open_node.name: room_on(open_node) for open_node in open_nodes}
    open_nodes.sort(key=lambda node: node.name)
    hopeless = {workload.name for workload in api.workloads.values() if workload.unprovisioned}
    for pod in waiting:
        # Its pods are all alike: where one finds no room, none does.
        app = pod.labels["app"]
        if app in hopeless or not open_nodes:
            if not pod.unschedulable:
                api.mark_unschedulable(pod)
            continue
        wanted = wanted_by(pod)
        for node in open_nodes:
            name = node.name
            if (
                fits(wanted, used[name], rooms[name])
                and first_untolerated(node.taints, pod.scheduling.tolerations) is None
                and pod.scheduling.node_selector.allow_labels(node.labels)
            ):
                api.place(pod, name)
                old = used[name]
                used[name] = (old[0] + wanted[0], old[1] + wanted[1], old[2] + 1)
                # The fullest first, as far as that is cheap to keep.
                open_nodes.remove(node)
                open_nodes.insert(0, node)
                break
        else:
            hopeless.add(app)
            if not pod.unschedulable:
                api.mark_unschedulable(pod)


def finishes(workload: Workload, pod: Pod) -> timedelta:
    """Return how long a Job's pod runs."""
    return timedelta(seconds=workload.seconds + sum(pod.name.encode()) % 17)


def ended(pod: Pod) -> Pod:
    return replace(pod, phase="Succeeded", ready=False)

"""What was seen of pods, nodes and instances, and when: read from the APIs, nothing else."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.local.cluster_simulator.rules.amounts import pod_requests
from infra.local.cluster_simulator.rules.matching import condition_of, is_finished, is_true

Object = dict[str, Any]
PROVISIONER = "karpenter.sh/provisioner-name"
NODE_POOL = "karpenter.sh/nodepool"


@dataclass(slots=True)
class PodTrack:
    """Seconds, since the world began, at which a pod was first seen in each state.

    Attributes:
        requests: What it asks for: cpu in millicores, everything else in base units.
        early: Whether it was bound before its Node was Ready.
        refused: Whether the kubelet refused to run it.
    """

    name: str
    labels: Mapping[str, str]
    requests: Mapping[str, int] = field(default_factory=dict)
    seen: float | None = None
    unschedulable: float | None = None
    bound: float | None = None
    running: float | None = None
    gone: float | None = None
    node: str = ""
    early: bool = False
    refused: bool = False


@dataclass(slots=True)
class NodeTrack:
    """The same for a node.

    Attributes:
        emptied: When its last pod that counts was last seen to leave.
        shown: When it first showed each resource.
    """

    name: str
    labels: Mapping[str, str]
    provider_id: str
    ours: bool
    annotations: Mapping[str, str] = field(default_factory=dict)
    shown: dict[str, float] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    created: float | None = None
    ready: float | None = None
    initialized: float | None = None
    emptied: float | None = None
    cordoned: float | None = None
    deleting: float | None = None
    gone: float | None = None
    changed_by_others: bool = False
    most_pods: int = 0

    @property
    def owner(self) -> str:
        """Name of its Provisioner or NodePool, empty for a node that has none."""
        return self.labels.get(NODE_POOL) or self.labels.get(PROVISIONER, "")

    @property
    def instance_id(self) -> str:
        """EC2 instance id, empty for a node that has none."""
        tail = self.provider_id.rsplit("/", 1)[-1]
        return tail if tail.startswith("i-") else ""


@dataclass(slots=True)
class Timeline:
    """Everything seen so far, fed by `observe`."""

    pods: dict[str, PodTrack] = field(default_factory=dict)
    nodes: dict[str, NodeTrack] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    instance_types: dict[str, str] = field(default_factory=dict)

    def observe(
        self, now: float, pods: Iterable[Object], nodes: Iterable[Object], instances: Iterable[Any]
    ) -> None:
        listed = list(pods)
        self._pods(now, listed)
        self._nodes(now, list(nodes), listed)
        not_ready = {node.name for node in self.living_nodes() if node.ready is None}
        for track in self.pods.values():
            track.early |= track.bound == now and track.node in not_ready
        present = {instance["InstanceId"]: instance for instance in instances}
        for instance_id, entry in present.items():
            self.instances[instance_id] = entry["State"]["Name"]
            self.instance_types[instance_id] = entry["InstanceType"]
        for instance_id in self.instances:
            if instance_id not in present:
                self.instances[instance_id] = "terminated"

    def living_pods(self, selector: Mapping[str, str]) -> list[PodTrack]:
        """Return the pods that exist, were not refused and carry the labels, by name.

        A pod that its kubelet refused stays until garbage collection; its owner has made another.
        """
        return sorted(
            (
                pod
                for pod in self.pods.values()
                if pod.gone is None and not pod.refused and selector.items() <= pod.labels.items()
            ),
            key=lambda pod: pod.name,
        )

    def living_nodes(self) -> list[NodeTrack]:
        return sorted((n for n in self.nodes.values() if n.gone is None), key=lambda n: n.name)

    def bound_early(self) -> list[PodTrack]:
        """Return every pod ever seen that was bound before its Node was Ready, by name."""
        return sorted((pod for pod in self.pods.values() if pod.early), key=lambda pod: pod.name)

    def our_nodes(self) -> list[NodeTrack]:
        """Return every Dovetail node ever observed, by name."""
        return sorted((n for n in self.nodes.values() if n.ours), key=lambda n: n.name)

    def _pods(self, now: float, pods: list[Object]) -> None:
        present = set()
        for pod in pods:
            uid = pod["metadata"]["uid"]
            present.add(uid)
            track = self.pods.get(uid)
            if track is None:
                labels = pod["metadata"].get("labels") or {}
                track = PodTrack(
                    name=pod["metadata"]["name"], labels=labels, requests=pod_requests(pod)
                )
                self.pods[uid] = track
            status = pod.get("status") or {}
            track.seen = track.seen if track.seen is not None else now
            reason = condition_of(pod, "PodScheduled").get("reason")
            if track.unschedulable is None and reason == "Unschedulable":
                track.unschedulable = now
            if track.bound is None and pod["spec"].get("nodeName"):
                track.bound, track.node = now, pod["spec"]["nodeName"]
            if track.running is None and status.get("phase") == "Running":
                track.running = now
            track.refused |= track.running is None and status.get("phase") == "Failed"
        for uid, track in self.pods.items():
            if uid not in present and track.gone is None:
                track.gone = now

    def _nodes(self, now: float, nodes: list[Object], pods: list[Object]) -> None:
        counting = Counter(pod["spec"].get("nodeName") for pod in pods if _counts(pod))
        present = set()
        for node in nodes:
            uid = node["metadata"]["uid"]
            present.add(uid)
            if uid not in self.nodes:
                labels = node["metadata"].get("labels") or {}
                self.nodes[uid] = NodeTrack(
                    name=node["metadata"]["name"],
                    labels=labels,
                    provider_id=node["spec"].get("providerID", ""),
                    ours=PROVISIONER in labels or NODE_POOL in labels,
                    created=now,
                )
            self._node(now, self.nodes[uid], node, counting[node["metadata"]["name"]])
        for uid, track in self.nodes.items():
            if uid not in present and track.gone is None:
                track.gone = now

    def _node(self, now: float, track: NodeTrack, node: Object, pods: int) -> None:
        taints = {taint["key"] for taint in node["spec"].get("taints") or []}
        status = node.get("status") or {}
        track.provider_id = node["spec"].get("providerID", track.provider_id)
        track.labels = node["metadata"].get("labels") or {}
        track.annotations = node["metadata"].get("annotations") or {}
        track.allocatable = status.get("allocatable") or {}
        for resource in track.allocatable:
            track.shown.setdefault(resource, now)
        ready = is_true(node, "Ready")
        if ready and track.ready is None:
            track.ready = now
        if ready and track.initialized is None and "karpenter.sh/not-ready" not in taints:
            track.initialized = now
        if pods:
            track.emptied = None
            track.most_pods = max(track.most_pods, pods)
        elif track.emptied is None and track.initialized is not None:
            track.emptied = now
        if track.cordoned is None and node["spec"].get("unschedulable"):
            track.cordoned = now
        if track.deleting is None and node["metadata"].get("deletionTimestamp"):
            track.deleting = now
        if not track.ours and (
            node["spec"].get("unschedulable")
            or "karpenter.sh/termination" in (node["metadata"].get("finalizers") or [])
        ):
            track.changed_by_others = True


def _counts(pod: Object) -> bool:
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or []}
    return not is_finished(pod) and not owners & {"DaemonSet", "Node"}

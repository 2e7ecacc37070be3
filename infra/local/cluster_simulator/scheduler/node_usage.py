"""How full the nodes are: the scheduler's running account of bound and assumed pods."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.rules.amounts import amounts, pod_requests
from infra.local.cluster_simulator.rules.claims import claim_names
from infra.local.cluster_simulator.rules.matching import (
    Object,
    is_finished,
    matches_node_term,
    taints_of,
    tolerates,
)
from infra.local.cluster_simulator.rules.predicates import allocatable_of, host_ports
from infra.local.cluster_simulator.rules.topology import PodTopology
from infra.local.cluster_simulator.world import node_of

_CLASS_FIELDS: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "hostNetwork",
)


@dataclass(slots=True, kw_only=True)
class Room:
    """One node and what is on it; the node is None while only its pods are known."""

    node: Json | None = None
    allocatable: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    pods: dict[Key, Json] = field(default_factory=dict)

    def free(self) -> dict[str, int]:
        return {name: n - self.used.get(name, 0) for name, n in self.allocatable.items()}

    def holds(self, requests: dict[str, int]) -> bool:
        used, allocatable = self.used, self.allocatable
        return all(
            amount + used.get(name, 0) <= allocatable.get(name, 0)
            for name, amount in requests.items()
        )

    def ports(self) -> Iterator[tuple[str, str, int]]:
        for pod in self.pods.values():
            yield from host_ports(pod)

    def fullness(self, requests: dict[str, int]) -> float:
        """Return the mean used share of cpu and memory once requests are placed (0 to 1)."""
        shares = [
            (self.used.get(name, 0) + requests.get(name, 0)) / self.allocatable[name]
            for name in ("cpu", "memory")
            if self.allocatable.get(name)
        ]
        return sum(shares) / len(shares) if shares else 0.0


class Rooms:
    """All nodes with their pods, by node name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Room] = {}
        self._place: dict[Key, tuple[str, dict[str, int]]] = {}

    def set_node(self, name: str, node: Json | None) -> None:
        """Take in a node's new state, or its end."""
        room = self.by_name.setdefault(name, Room())
        room.node = node
        room.allocatable = amounts(allocatable_of(node)) if node else {}
        if node is None and not room.pods:
            del self.by_name[name]

    def place(self, pod: Json, name: str) -> bool:
        """Count a pod on a node, or nowhere for an empty name; return whether this moved it."""
        key = key_of(pod)
        before, requests = self._place.get(key, ("", {}))
        if before == name:
            if name:
                self.by_name[name].pods[key] = pod
            return False
        if before:
            self._leave(key, before, requests)
        if name:
            requests = pod_requests(pod)
            room = self.by_name.setdefault(name, Room())
            room.pods[key] = pod
            for resource, amount in requests.items():
                room.used[resource] = room.used.get(resource, 0) + amount
            self._place[key] = name, requests
        return True

    def open(self) -> list[tuple[str, Room]]:
        """Return the rooms whose node exists, by name."""
        return sorted((n, room) for n, room in self.by_name.items() if room.node is not None)

    def bound(self) -> list[Json]:
        """Return every pod counted, with the node it is counted on."""
        return [
            pod if node_of(pod) else {**pod, "spec": {**pod["spec"], "nodeName": name}}
            for name, room in sorted(self.by_name.items())
            for _, pod in sorted(room.pods.items())
        ]

    def _leave(self, key: Key, name: str, requests: dict[str, int]) -> None:
        room = self.by_name[name]
        room.pods.pop(key, None)
        for resource, amount in requests.items():
            room.used[resource] -= amount
        del self._place[key]
        if room.node is None and not room.pods:
            del self.by_name[name]


def counts(pod: Json) -> bool:
    """Return whether a pod takes room on a node."""
    return bool(node_of(pod)) and not is_finished(pod)


def placement_class(pod: Json) -> bytes:
    """Return a text that is the same for pods that any node treats alike."""
    spec: Json = pod["spec"]
    own: dict[str, Any] = {name: spec.get(name) for name in _CLASS_FIELDS}
    own["requests"] = pod_requests(pod)
    own["ports"] = list(host_ports(pod))
    own["claims"] = claim_names(pod)
    own["who"] = [pod["metadata"]["namespace"], pod["metadata"].get("labels")]
    return orjson.dumps(own, option=orjson.OPT_SORT_KEYS)


def topology_class(pod: Json) -> bytes:
    """Return a text that is the same for pods with the same spread and affinity rules."""
    spec: Json = pod["spec"]
    spread = spec.get("topologySpreadConstraints")
    affinity = dict(spec.get("affinity") or {})
    own: list[Any] = [pod["metadata"]["namespace"], pod["metadata"].get("labels"), spread]
    if spread:
        # Which nodes form domains depends on these too.
        own += [spec.get("nodeSelector"), spec.get("tolerations")]
    else:
        affinity.pop("nodeAffinity", None)
    return orjson.dumps([*own, affinity], option=orjson.OPT_SORT_KEYS)


Score = tuple[int, int, int, float]


def score(pod: Object, room: Room, topology: PodTopology, requests: dict[str, int]) -> Score:
    """Return how well a pod suits a node; the least score is the best."""
    node = room.node
    assert node is not None
    return (
        0 if topology.is_free else topology.penalty(node),
        -_preference(pod, node),
        _unwelcome(pod, node),
        room.fullness(requests),
    )


def _preference(pod: Object, node: Object) -> int:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return sum(
        rule["weight"]
        for rule in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if matches_node_term(rule["preference"], node)
    )


def _unwelcome(pod: Object, node: Object) -> int:
    """Return how many taints would rather not have the pod."""
    tolerations = pod["spec"].get("tolerations") or ()
    return sum(
        taint["effect"] == "PreferNoSchedule" and not any(tolerates(t, taint) for t in tolerations)
        for taint in taints_of(node)
    )

"""kube-scheduler's default profile: filters and scores, pod by pod.

The filters are those of the local world, which have been compared with the real ones. The scores
and their weights are those of the default plugins, without ImageLocality and InterPodAffinity: all
images are equal, and no trace prefers pods near others.

Sources (2026-12), all below https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/scheduler/:
apis/config/v1/default_plugins.go (weights), framework/plugins/noderesources/least_allocated.go and
balanced_allocation.go, framework/plugins/podtopologyspread/scoring.go and plugin.go (constraints of
the system), framework/plugins/helper/normalize_score.go.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from infra.local.cluster_simulator.rules.amounts import amounts, pod_requests
from infra.local.cluster_simulator.rules.claims import claim_names, volume_reasons
from infra.local.cluster_simulator.rules.matching import (
    ClusterView,
    labels_of,
    matches_node_term,
    taints_of,
    tolerates,
)
from infra.local.cluster_simulator.rules.predicates import allocatable_of, node_reasons
from infra.local.cluster_simulator.rules.topology import PodTopology
from shared.model import labels as keys
from tests.weeks.storage import STORAGE_CLASS, Storage

Raw = Mapping[str, Any]
_MOST: Final = 100
_SCORED: Final = ("cpu", "memory")
# A container that asks for nothing counts as this much in scores, in the units of `amounts`.
_UNSAID: Final = amounts({"cpu": "100m", "memory": "200Mi"})
# What a pod of a controller that says nothing is spread over: key and maxSkew.
_SYSTEM_SPREADS: Final = ((keys.HOSTNAME, 3), (keys.ZONE, 5))
_SPREAD, _AFFINITY, _TAINT = 2, 2, 3


@dataclass(slots=True)
class Filled:
    """A node and what its pods request."""

    raw: Raw
    allocatable: Mapping[str, int]
    used: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)

    def add(self, pod: Raw, requests: Mapping[str, int]) -> None:
        """Count a pod."""
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + amount
        owner = _owner_of(pod)
        self.owners[owner] = self.owners.get(owner, 0) + 1

    def holds(self, requests: Mapping[str, int]) -> bool:
        """Return whether there is room for a pod."""
        return all(
            amount + self.used.get(name, 0) <= self.allocatable.get(name, 0)
            for name, amount in requests.items()
        )


class Nodes:
    """The nodes of a cluster as one pass of the scheduler sees them."""

    def __init__(
        self, nodes: Iterable[Raw], bound: Sequence[tuple[Raw, str]], storage: Storage
    ) -> None:
        self._storage = storage
        self._by_name: dict[str, Filled] = {
            raw["metadata"]["name"]: Filled(raw, amounts(allocatable_of(raw))) for raw in nodes
        }
        self._bound: list[Raw] = []
        self._crowded = False
        for pod, name in bound:
            if name in self._by_name:
                self._count(pod, name)

    def place(self, pod: Raw) -> str:
        """Return the node that a pod goes to, counted there from now on, empty for none."""
        requests = pod_requests(pod)
        fitting = [
            (name, filled)
            for name, filled in self._by_name.items()
            if filled.holds(requests) and not node_reasons(pod, filled.raw)
        ]
        if claim_names(pod):
            view = self._view()
            fitting = [entry for entry in fitting if not volume_reasons(pod, entry[1].raw, view)]
        ruled = pod["spec"].get("topologySpreadConstraints") or pod["spec"].get("affinity")
        if fitting and (ruled or self._crowded):
            topology = PodTopology(pod, self._view())
            fitting = [entry for entry in fitting if not topology.reasons(entry[1].raw)]
        if not fitting:
            return ""
        scores = self._scores(pod, requests, [filled for _, filled in fitting])
        best = max(range(len(fitting)), key=lambda at: (scores[at], fitting[at][0]))
        name: str = fitting[best][0]
        self._count(pod, name)
        return name

    def _count(self, pod: Raw, name: str) -> None:
        self._by_name[name].add(pod, pod_requests(pod))
        self._bound.append({**pod, "spec": {**pod["spec"], "nodeName": name}})
        self._crowded |= "podAntiAffinity" in (pod["spec"].get("affinity") or {})

    def _view(self) -> ClusterView:
        nodes = [filled.raw for filled in self._by_name.values()]
        return ClusterView(
            nodes=nodes,
            pods=self._bound,
            namespaces={"default": {}},
            claims=self._storage.claims,
            volumes=self._storage.volumes,
            storage_classes={STORAGE_CLASS["metadata"]["name"]: STORAGE_CLASS},
        )

    def _scores(self, pod: Raw, requests: Mapping[str, int], nodes: Sequence[Filled]) -> list[int]:
        own = [_resources(filled, requests) for filled in nodes]
        for weight, scores in (
            (_SPREAD, self._spread(pod, nodes)),
            (_AFFINITY, _normalized([_preferred(pod, filled.raw) for filled in nodes])),
            (_TAINT, _reversed([_unwelcome(pod, filled.raw) for filled in nodes])),
        ):
            own = [mine + weight * more for mine, more in zip(own, scores, strict=True)]
        return own

    def _spread(self, pod: Raw, nodes: Sequence[Filled]) -> list[int]:
        """Score how few pods of the same owner a node's domains have."""
        said = pod["spec"].get("topologySpreadConstraints")
        constraints = (
            [
                (rule["topologyKey"], rule["maxSkew"])
                for rule in said
                if rule["whenUnsatisfiable"] == "ScheduleAnyway"
            ]
            if said
            else _SYSTEM_SPREADS
        )
        if not constraints:
            return [0] * len(nodes)
        owner, raw_scores = _owner_of(pod), [0.0] * len(nodes)
        for key, max_skew in constraints:
            values = [labels_of(filled.raw).get(key, "") for filled in nodes]
            counts = dict.fromkeys(values, 0)
            for filled in self._by_name.values():
                value = labels_of(filled.raw).get(key, "")
                if value in counts:
                    counts[value] += filled.owners.get(owner, 0)
            weight = math.log(len(counts) + 2)
            for at, value in enumerate(values):
                raw_scores[at] += counts[value] * weight + max_skew - 1
        rounded = [round(score) for score in raw_scores]
        most, least = max(rounded), min(rounded)
        if not most:
            return [_MOST] * len(nodes)
        return [_MOST * (most + least - score) // most for score in rounded]


def _owner_of(pod: Raw) -> str:
    owners = pod["metadata"].get("ownerReferences")
    return str(owners[0]["uid"]) if owners else ""


def _resources(filled: Filled, requests: Mapping[str, int]) -> int:
    """Score how much is left, and how alike the used parts of cpu and memory are."""
    least, parts = 0, []
    for name in _SCORED:
        whole = filled.allocatable.get(name, 0)
        wanted = filled.used.get(name, 0) + (requests.get(name, 0) or _UNSAID[name])
        least += (whole - wanted) * _MOST // whole if 0 < wanted <= whole else 0
        parts.append(min(wanted / whole, 1.0) if whole else 1.0)
    return least // len(_SCORED) + int((1 - abs(parts[0] - parts[1]) / 2) * _MOST)


def _preferred(pod: Raw, node: Raw) -> int:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return sum(
        rule["weight"]
        for rule in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if matches_node_term(rule["preference"], node)
    )


def _unwelcome(pod: Raw, node: Raw) -> int:
    tolerations = pod["spec"].get("tolerations") or ()
    return sum(
        taint["effect"] == "PreferNoSchedule" and not any(tolerates(t, taint) for t in tolerations)
        for taint in taints_of(node)
    )


def _normalized(scores: list[int]) -> list[int]:
    most = max(scores)
    return [_MOST * score // most for score in scores] if most else scores


def _reversed(scores: list[int]) -> list[int]:
    most = max(scores)
    return [_MOST - _MOST * score // most if most else _MOST for score in scores]

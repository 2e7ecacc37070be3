"""DaemonSet: a pod on every node that may have one.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/ (2026-08).
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.controllers.workload import (
    Workload,
    is_active,
    pod_for,
    ready_count,
    scaled,
    template_hash,
    together,
)
from infra.local.cluster_simulator.informer import key_of
from infra.local.cluster_simulator.kinds import DAEMON_SET, POD
from infra.local.cluster_simulator.rules.matching import (
    is_finished,
    is_true,
    labels_of,
    matches_node_affinity,
    taints_of,
    untolerated,
)
from infra.local.cluster_simulator.world import World, is_terminating, node_of

HASH_LABEL: Final = "controller-revision-hash"

_TOLERATIONS: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSets(Workload):
    """One pod per eligible node, renewed slowly when the template changes."""

    kind = DAEMON_SET

    def __init__(self, world: World) -> None:
        super().__init__(world)
        world.nodes.subscribe(self._node_changed)

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Create what is missing, delete what is out of place or old, then write the counts."""
        version = template_hash(owner["spec"]["template"])
        template_pod = _daemon_pod(owner, version, "")
        nodes = {node["metadata"]["name"]: node for node in self.world.nodes}
        wanted = {name for name, node in nodes.items() if _should_run(template_pod, node)}
        leaving: list[Json] = []
        by_node: dict[str, Json] = {}
        for pod in owned:
            home = _home(pod)
            misplaced = home not in wanted and (
                home not in nodes or not _may_stay(template_pod, nodes[home])
            )
            if is_finished(pod) or misplaced or (home in by_node and is_active(pod)):
                leaving.append(pod)
            else:
                by_node[home] = pod
        leaving += _outdated(owner, version, by_node.values(), len(wanted))
        leaving = [pod for pod in leaving if not is_terminating(pod)]
        await together(partial(self.world.client.delete, POD), leaving)
        made = [_daemon_pod(owner, version, name) for name in sorted(wanted - by_node.keys())]
        await together(partial(self.world.create, POD), made)
        await self._report(owner, version, wanted)
        return None

    async def _report(self, owner: Json, version: str, wanted: set[str]) -> None:
        owned = self.world.pods.owned_by(owner["metadata"]["uid"])
        active = [pod for pod in owned if is_active(pod)]
        placed = [pod for pod in active if _home(pod) in wanted]
        ready = ready_count(placed)
        status = {
            "currentNumberScheduled": len(placed),
            "desiredNumberScheduled": len(wanted),
            "numberAvailable": ready,
            "numberMisscheduled": len(active) - len(placed),
            "numberReady": ready,
            "numberUnavailable": len(wanted) - ready,
            "observedGeneration": owner["metadata"]["generation"],
            "updatedNumberScheduled": sum(
                labels_of(pod).get(HASH_LABEL) == version for pod in placed
            ),
        }
        await self.world.replace_status(DAEMON_SET, owner, status)

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        if old is not None and new is not None:
            same_marks = labels_of(old) == labels_of(new) and old["spec"] == new["spec"]
            if same_marks:
                return
        for owner in self.cache:
            self.queue.add(key_of(owner), 0.05)


def _daemon_pod(owner: Json, version: str, node_name: str) -> Json:
    """Return a daemon pod that can go to one node only; to any for an empty name."""
    pod = pod_for(DAEMON_SET, owner, labels={HASH_LABEL: version})
    keys = {key for key, _ in _TOLERATIONS}
    spec = pod["spec"]
    # The controller's own tolerations have no limit in time, so they replace the default ones.
    kept = [t for t in spec["tolerations"] if t.get("key") not in keys or t.get("effect") is None]
    added = [{"key": k, "operator": "Exists", "effect": effect} for k, effect in _TOLERATIONS]
    if spec.get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        added.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    spec["tolerations"] = kept + added
    if node_name:
        spec["affinity"] = _affinity_to(spec.get("affinity") or {}, node_name)
    return pod


def _affinity_to(affinity: Json, node_name: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    rules = affinity.get("nodeAffinity") or {}
    required = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    # As the real controller: the node's name takes the place of the fields of each term.
    terms = [{**term, "matchFields": [field]} for term in required.get("nodeSelectorTerms") or [{}]]
    pinned = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**affinity, "nodeAffinity": {**rules, **pinned}}


def _should_run(pod: Json, node: Json) -> bool:
    return matches_node_affinity(pod, node) and untolerated(taints_of(node), pod) is None


def _may_stay(pod: Json, node: Json) -> bool:
    taint = untolerated(taints_of(node), pod, ("NoExecute",))
    return matches_node_affinity(pod, node) and taint is None


def _home(pod: Json) -> str:
    """Return the node a daemon pod is meant for, bound to it or not."""
    if node_of(pod):
        return node_of(pod)
    rules = pod["spec"]["affinity"]["nodeAffinity"]
    term = rules["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    name: str = term["matchFields"][0]["values"][0]
    return name


def _outdated(owner: Json, version: str, pods: Iterable[Json], wanted: int) -> list[Json]:
    """Return the pods of an older template that may be renewed now."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    rules = strategy.get("rollingUpdate") or {}
    budget = max(scaled(rules.get("maxUnavailable", 1), wanted, up=True), 1)
    here = sorted(pods, key=key_of)
    budget -= wanted - sum(is_true(pod, "Ready") and is_active(pod) for pod in here)
    old = [p for p in here if labels_of(p).get(HASH_LABEL) != version and is_active(p)]
    idle = [pod for pod in old if not is_true(pod, "Ready")]
    busy = [pod for pod in old if is_true(pod, "Ready")]
    return idle + busy[: max(budget, 0)]

"""The controller that keeps PodDisruptionBudgets counted.

Source: https://kubernetes.io/docs/tasks/run-application/configure-pdb/ (2026-08).
"""

from typing import Final

from infra.local.cluster_simulator.client import Json
from infra.local.cluster_simulator.controllers.workload import condition, scaled
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.kinds import BUDGET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from infra.local.cluster_simulator.rules.matching import (
    is_finished,
    is_true,
    labels_of,
    matches_selector,
)
from infra.local.cluster_simulator.world import World, age, is_terminating

_SETTLE_SECONDS: Final = 0.05
_EVICTION_SECONDS: Final = 120.0
_SCALABLE: Final = {kind.name: kind for kind in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET)}


class Budgets:
    """Writes how many evictions each PodDisruptionBudget allows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._budgets = world.informer(BUDGET)
        self._queue = world.queue(self._count, parallel=4)
        for kind in _SCALABLE.values():
            world.informer(kind)
        self._budgets.feed(self._queue.add)
        world.pods.subscribe(self._pod_changed)

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        pod = new or old or {}
        for budget in self._budgets:
            if _covers(budget, pod):
                self._queue.add(key_of(budget), _SETTLE_SECONDS)

    async def _count(self, key: Key) -> float | None:
        budget = self._budgets.objects.get(key)
        if budget is None or is_terminating(budget):
            return None
        pods = {
            pod["metadata"]["name"]: pod
            for pod in self._world.pods
            if _covers(budget, pod) and not is_finished(pod)
        }
        evicted = {
            name: moment
            for name, moment in ((budget.get("status") or {}).get("disruptedPods") or {}).items()
            if name in pods
            and not is_terminating(pods[name])
            and age(moment).total_seconds() < _EVICTION_SECONDS
        }
        healthy = sum(
            is_true(pod, "Ready") and not is_terminating(pod) and name not in evicted
            for name, pod in pods.items()
        )
        expected, desired = self._desired(budget, list(pods.values()))
        allowed = max(healthy - desired, 0) if expected else 0
        reason = "SufficientPods" if allowed else "InsufficientPods"
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "expectedPods": expected,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "conditions": [
                condition("DisruptionAllowed", holds=bool(allowed), reason=reason, old=budget)
            ],
        }
        before = (budget.get("status") or {}).get("disruptedPods") or {}
        gone = {name: None for name in before if name not in evicted}
        if gone:
            status["disruptedPods"] = gone
        await self._world.replace_status(BUDGET, budget, status)
        return _EVICTION_SECONDS if evicted else None

    def _desired(self, budget: Json, pods: list[Json]) -> tuple[int, int]:
        """Return how many pods there should be and how many of them have to be healthy."""
        spec = budget["spec"]
        least = spec.get("minAvailable")
        if isinstance(least, int):
            return len(pods), least
        expected = self._expected(pods)
        if least is not None:
            return expected, scaled(least, expected, up=True)
        most = scaled(spec.get("maxUnavailable", 1), expected, up=True)
        return expected, max(expected - most, 0)

    def _expected(self, pods: list[Json]) -> int:
        """Return the scale of the workloads behind the pods; a pod without one counts itself."""
        total, seen = 0, set()
        for pod in pods:
            owner = self._scale_owner(pod)
            if owner is None:
                total += 1
            elif owner["metadata"]["uid"] not in seen:
                seen.add(owner["metadata"]["uid"])
                total += owner["spec"].get("replicas", 1)
        return total

    def _scale_owner(self, thing: Json) -> Json | None:
        """Return the topmost workload with a replica count that a pod belongs to."""
        for reference in thing["metadata"].get("ownerReferences") or ():
            kind = _SCALABLE.get(reference["kind"])
            if kind is not None and reference.get("controller"):
                cache = self._world.informer(kind)
                owner = cache.get(reference["name"], thing["metadata"]["namespace"])
                if owner is not None:
                    return self._scale_owner(owner) or owner
        return None


def _covers(budget: Json, pod: Json) -> bool:
    same_namespace = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same_namespace and matches_selector(budget["spec"].get("selector"), labels_of(pod))

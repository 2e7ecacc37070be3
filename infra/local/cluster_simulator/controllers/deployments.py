"""Deployment and ReplicaSet."""

from functools import partial
from typing import Final

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.controllers.workload import (
    Workload,
    condition,
    is_active,
    owner_reference,
    pod_for,
    ready_count,
    scaled,
    template_hash,
    together,
)
from infra.local.cluster_simulator.informer import Key, key_of
from infra.local.cluster_simulator.kinds import DEPLOYMENT, POD, REPLICA_SET
from infra.local.cluster_simulator.rules.matching import is_true
from infra.local.cluster_simulator.world import annotation, node_of

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"


class ReplicaSets(Workload):
    """As many pods as asked for."""

    kind = REPLICA_SET

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Create or delete pods, then write the counts."""
        active = [pod for pod in owned if is_active(pod)]
        wanted = _replicas(owner)
        if len(active) < wanted:
            missing = wanted - len(active)
            made = [pod_for(REPLICA_SET, owner) for _ in range(missing)]
            await together(partial(self.world.create, POD), made)
        elif len(active) > wanted:
            surplus = sorted(active, key=_least_useful)[: len(active) - wanted]
            await together(partial(self.world.client.delete, POD), surplus)
        # What was just created is in the cache by now.
        current = self.world.pods.owned_by(owner["metadata"]["uid"])
        active = [pod for pod in current if is_active(pod)]
        ready = ready_count(active)
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": len(active),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": owner["metadata"]["generation"],
        }
        await self.world.replace_status(REPLICA_SET, owner, status)
        return None


class Deployments(Workload):
    """One ReplicaSet per template, moved over step by step when the template changes."""

    kind = DEPLOYMENT
    owned = REPLICA_SET

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Make the current ReplicaSet, scale all of them, then write the status."""
        name = f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"
        current = next((entry for entry in owned if entry["metadata"]["name"] == name), None)
        if current is None:
            current = await self._add(owner, owned, name)
            if current is None:
                return 0.2
        older = [entry for entry in owned if entry["metadata"]["name"] != name]
        await self._scale(owner, current, older)
        await self._report(owner, current, older)
        return None

    async def _add(self, owner: Json, owned: list[Json], name: str) -> Json | None:
        short = name.rsplit("-", 1)[-1]
        spec = owner["spec"]
        meta = spec["template"].get("metadata") or {}
        labels = {**(meta.get("labels") or {}), HASH_LABEL: short}
        selector = spec["selector"]
        match = {**(selector.get("matchLabels") or {}), HASH_LABEL: short}
        revision = 1 + max((_revision(entry) for entry in owned), default=0)
        metadata = {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [owner_reference(DEPLOYMENT, owner)],
        }
        template = {**spec["template"], "metadata": {**meta, "labels": labels}}
        body = {"replicas": 0, "selector": {**selector, "matchLabels": match}}
        replica_set = REPLICA_SET.document(metadata, spec={**body, "template": template})
        try:
            return await self.world.create(REPLICA_SET, replica_set)
        except ApiError as error:
            if error.code != 409:
                raise
            return None

    async def _scale(self, owner: Json, current: Json, older: list[Json]) -> None:
        wanted = _replicas(owner)
        old_total = sum(_replicas(entry) for entry in older)
        surge, lacking = _rolling(owner, wanted)
        target = wanted
        if old_total:
            room = wanted + surge - old_total
            target = min(wanted, max(room, _replicas(current)))
        if _replicas(current) != target:
            await self._set_replicas(current, target)
        # Old pods that are not ready serve no requests and may be deleted at once.
        old_ready = sum(_ready(entry) for entry in older)
        spare = max(_ready(current) + old_ready - (wanted - lacking), 0) + old_total - old_ready
        for entry in sorted(older, key=_revision):
            step = min(_replicas(entry), spare)
            if step > 0:
                spare -= step
                await self._set_replicas(entry, _replicas(entry) - step)

    async def _set_replicas(self, replica_set: Json, count: int) -> None:
        await self.world.patch(REPLICA_SET, replica_set, {"spec": {"replicas": count}})

    async def _report(self, owner: Json, current: Json, older: list[Json]) -> None:
        caches = self.world.informer(REPLICA_SET)
        keys: list[Key] = [key_of(current), *(key_of(entry) for entry in older)]
        sets = [found for key in keys if (found := caches.objects.get(key))]
        wanted = _replicas(owner)
        total = sum(_count(entry, "replicas") for entry in sets)
        ready = sum(_ready(entry) for entry in sets)
        updated = sum(
            _count(entry, "replicas") for entry in sets if key_of(entry) == key_of(current)
        )
        done = updated == wanted == ready == total
        available = ready >= wanted - _rolling(owner, wanted)[1]
        revision = annotation(current, REVISION)
        if annotation(owner, REVISION) != revision:
            change = {"metadata": {"annotations": {REVISION: revision}}}
            owner = await self.world.patch(DEPLOYMENT, owner, change)
        reasons = (
            "MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable",
            "NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
        )
        status = {
            "observedGeneration": owner["metadata"]["generation"],
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(wanted - ready, 0),
            "conditions": [
                condition("Available", holds=available, reason=reasons[0], old=owner),
                condition("Progressing", holds=True, reason=reasons[1], old=owner),
            ],
        }
        await self.world.replace_status(DEPLOYMENT, owner, status)


def _least_useful(pod: Json) -> tuple[bool, bool, list[int], str]:
    newest_first = [-ord(letter) for letter in pod["metadata"]["creationTimestamp"]]
    return bool(node_of(pod)), is_true(pod, "Ready"), newest_first, pod["metadata"]["name"]


def _rolling(owner: Json, wanted: int) -> tuple[int, int]:
    """Return how many pods may exist beyond, and be missing from, the wanted count."""
    strategy = owner["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, wanted
    rules = strategy.get("rollingUpdate") or {}
    surge = scaled(rules.get("maxSurge", "25%"), wanted, up=True)
    lacking = scaled(rules.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, lacking if surge or lacking else 1


def _replicas(workload: Json) -> int:
    count: int = workload["spec"].get("replicas", 1)
    return count


def _count(workload: Json, name: str) -> int:
    count: int = (workload.get("status") or {}).get(name) or 0
    return count


def _ready(replica_set: Json) -> int:
    return min(_count(replica_set, "readyReplicas"), _replicas(replica_set))


def _revision(replica_set: Json) -> int:
    return int(annotation(replica_set, REVISION) or 0)

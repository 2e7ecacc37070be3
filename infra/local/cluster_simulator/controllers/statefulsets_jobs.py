"""StatefulSet and Job."""

from functools import partial

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.controllers.workload import (
    Workload,
    condition,
    is_active,
    pod_for,
    ready_count,
    template_hash,
    together,
)
from infra.local.cluster_simulator.kinds import CLAIM, JOB, POD, STATEFUL_SET
from infra.local.cluster_simulator.rules.matching import is_finished, is_true, labels_of
from infra.local.cluster_simulator.world import is_terminating, stamp

_REVISION_LABEL = "controller-revision-hash"


class StatefulSets(Workload):
    """Numbered pods, one after the other unless they are managed in parallel."""

    kind = STATEFUL_SET

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Take the next steps up or down, then write the counts."""
        name, wanted = owner["metadata"]["name"], owner["spec"].get("replicas", 1)
        version = template_hash(owner["spec"]["template"])
        pods = {pod["metadata"]["name"]: pod for pod in owned}
        in_parallel = owner["spec"].get("podManagementPolicy") == "Parallel"
        for ordinal in range(wanted):
            pod = pods.get(f"{name}-{ordinal}")
            if pod is None:
                await self._create(owner, ordinal, version)
            elif is_finished(pod) and not is_terminating(pod):
                await self.world.client.delete(POD, pod)
            if not in_parallel and (pod is None or not is_true(pod, "Ready")):
                break
        else:
            await self._renew_or_shrink(owner, pods, version)
        await self._report(owner, version)
        return None

    async def _renew_or_shrink(self, owner: Json, pods: dict[str, Json], version: str) -> None:
        name, wanted = owner["metadata"]["name"], owner["spec"].get("replicas", 1)
        by_ordinal = sorted(pods.values(), key=_ordinal, reverse=True)
        if any(is_terminating(pod) for pod in by_ordinal):
            return
        strategy = (owner["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate")
        for pod in by_ordinal:
            surplus = _ordinal(pod) >= wanted
            old = strategy != "OnDelete" and labels_of(pod).get(_REVISION_LABEL) != version
            if pod["metadata"]["name"].startswith(f"{name}-") and (surplus or old):
                await self.world.client.delete(POD, pod)
                return

    async def _create(self, owner: Json, ordinal: int, version: str) -> None:
        name = f"{owner['metadata']['name']}-{ordinal}"
        labels = {
            _REVISION_LABEL: version,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
        }
        pod = pod_for(STATEFUL_SET, owner, name=name, labels=labels)
        volumes = list(pod["spec"].get("volumes") or ())
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            claim = f"{template['metadata']['name']}-{name}"
            reference = {"claimName": claim}
            volumes.append(
                {"name": template["metadata"]["name"], "persistentVolumeClaim": reference}
            )
            metadata = {"name": claim, "namespace": owner["metadata"]["namespace"]}
            await self._create_once(CLAIM.document(metadata, spec=template["spec"]))
        if volumes:
            pod["spec"]["volumes"] = volumes
        await self.world.create(POD, pod)

    async def _create_once(self, claim: Json) -> None:
        try:
            await self.world.client.create(CLAIM, claim)
        except ApiError as error:
            if error.code != 409:  # a claim outlives its pod and is taken up again
                raise

    async def _report(self, owner: Json, version: str) -> None:
        owned = self.world.pods.owned_by(owner["metadata"]["uid"])
        active = [pod for pod in owned if is_active(pod)]
        current = sum(labels_of(pod).get(_REVISION_LABEL) == version for pod in active)
        revision = f"{owner['metadata']['name']}-{version}"
        renewed = current == len(active)
        before = (owner.get("status") or {}).get("currentRevision", revision)
        status = {
            "observedGeneration": owner["metadata"]["generation"],
            "replicas": len(active),
            "readyReplicas": ready_count(active),
            "availableReplicas": ready_count(active),
            "currentReplicas": current,
            "updatedReplicas": current,
            "updateRevision": revision,
            "currentRevision": revision if renewed else before,
        }
        await self.world.replace_status(STATEFUL_SET, owner, status)


class Jobs(Workload):
    """Pods that run until enough of them succeeded."""

    kind = JOB

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Start what may run now, or end the job, then write the counts."""
        if is_true(owner, "Complete") or is_true(owner, "Failed"):
            return None
        spec = owner["spec"]
        succeeded = sum(pod["status"].get("phase") == "Succeeded" for pod in owned)
        failed = sum(pod["status"].get("phase") == "Failed" for pod in owned)
        active = [pod for pod in owned if is_active(pod)]
        completions = spec.get("completions") or spec.get("parallelism", 1)
        gave_up = failed > spec.get("backoffLimit", 6)
        done = succeeded >= completions
        if done or gave_up:
            await together(partial(self.world.client.delete, POD), active)
            active = []
        elif not spec.get("suspend"):
            room = min(spec.get("parallelism", 1), completions - succeeded) - len(active)
            await together(self._create, [owner] * room)
            owned = self.world.pods.owned_by(owner["metadata"]["uid"])
            active = [pod for pod in owned if is_active(pod)]
        now = stamp()
        status: Json = {
            "active": len(active),
            "ready": ready_count(active),
            "succeeded": succeeded,
            "failed": failed,
            "startTime": (owner.get("status") or {}).get("startTime", now),
        }
        if done:
            status["completionTime"] = now
        if done or gave_up:
            kinds = ("SuccessCriteriaMet", "Complete") if done else ("FailureTarget", "Failed")
            reason = "CompletionsReached" if done else "BackoffLimitExceeded"
            status["conditions"] = [
                condition(kind, holds=True, reason=reason, old=owner) for kind in kinds
            ]
        await self.world.replace_status(JOB, owner, status)
        return None

    async def _create(self, owner: Json) -> None:
        meta = owner["metadata"]
        labels = {
            "job-name": meta["name"],
            "controller-uid": meta["uid"],
            "batch.kubernetes.io/job-name": meta["name"],
            "batch.kubernetes.io/controller-uid": meta["uid"],
        }
        await self.world.create(POD, pod_for(JOB, owner, labels=labels))


def _ordinal(pod: Json) -> int:
    return int(pod["metadata"]["name"].rsplit("-", 1)[-1])

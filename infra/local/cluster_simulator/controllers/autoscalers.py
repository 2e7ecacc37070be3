"""HorizontalPodAutoscaler: scales by the resources that the metrics API says pods use.

Read from https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/ and
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/controller/podautoscaler/horizontal.go
(2026-11-25). Metrics of type Resource count, others are reported as missing; of `behavior`, the
window of scaling down; scaling up at most doubles, or adds four pods, at each look.
"""

import asyncio
import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from infra.local.cluster_simulator.client import ApiError, Json
from infra.local.cluster_simulator.controllers.workload import Workload, condition, is_active
from infra.local.cluster_simulator.kinds import (
    AUTOSCALER,
    DEPLOYMENT,
    EVENT,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from infra.local.cluster_simulator.rules.amounts import parse, pod_requests
from infra.local.cluster_simulator.world import World, event_about, stamp

_TARGETS: Final[Mapping[tuple[str, str], Kind]] = {
    (kind.api, kind.name): kind for kind in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET)
}
_LOOK_SECONDS: Final = 15.0
_TOLERANCE_PERCENT: Final = 10
_WINDOW_SECONDS: Final = 300.0
_LEAST_STEP: Final = 4
_NOT_FOUND: Final = 404
_METRICS: Final = "/apis/metrics.k8s.io/v1beta1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What pods use of one resource, in its smallest unit, and what they ask for.

    Attributes:
        pods: How many pods are counted.
    """

    used: int
    requested: int
    pods: int

    @property
    def percent(self) -> int:
        """Return what is used, in percent of what is asked for."""
        return 100 * self.used // self.requested


def wanted(target: Json, use: Use, current: int) -> int:
    """Return how many pods bring a resource to its target; the current number if it is near.

    Args:
        target: `averageUtilization` in percent of the requests, or `averageValue`.
    """
    if "averageUtilization" in target:
        over, under = 100 * use.used, target["averageUtilization"] * use.requested
    else:
        over, under = use.used, target["averageValue"] * use.pods
    if abs(over - under) * 100 <= _TOLERANCE_PERCENT * under:
        return current
    return int(-(-over * use.pods // under))


class Autoscalers(Workload):
    """Looks at each autoscaler every fifteen seconds."""

    kind = AUTOSCALER

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._advised: defaultdict[str, deque[tuple[float, int]]] = defaultdict(deque)

    async def reconcile(self, owner: Json, owned: list[Json]) -> float | None:
        """Scale the target once, as far as its metrics say."""
        del owned
        spec, namespace = owner["spec"], owner["metadata"]["namespace"]
        target = spec["scaleTargetRef"]
        kind = _TARGETS.get((target.get("apiVersion", ""), target["kind"]))
        look_again = self.world.timing.real(_LOOK_SECONDS)
        path = f"{kind.path(namespace, target['name'])}/scale" if kind is not None else ""
        scale = await self._scale(path)
        if scale is None:
            await self._tell(owner, {}, ("AbleToScale", False, "FailedGetScale"))
            return look_again
        current = scale["spec"].get("replicas", 0)
        counts = {"currentReplicas": scale["status"].get("replicas", 0)}
        if not current:
            await self._tell(owner, counts, ("ScalingActive", False, "ScalingDisabled"))
            return look_again
        measured = await self._measure(namespace, scale["status"]["selector"], spec["metrics"])
        if not measured:
            facts = {**counts, "desiredReplicas": current}
            await self._tell(owner, facts, ("ScalingActive", False, "FailedGetResourceMetric"))
            return look_again
        advice = max(wanted(goal, use, current) for _, goal, use in measured)
        desired = self._steady(owner, self._within(spec, advice, current), current)
        facts = {
            **counts,
            "desiredReplicas": desired,
            "currentMetrics": [_metric(name, use) for name, _, use in measured],
        }
        if desired != current:
            await self.world.client.call(
                "PATCH",
                path,
                body={"spec": {"replicas": desired}},
                content="application/merge-patch+json",
            )
            facts["lastScaleTime"] = stamp()
            await self._announce(owner, desired, _why(measured, desired, current))
        await self._tell(owner, facts, ("ScalingActive", True, "ValidMetricFound"))
        return look_again

    async def _announce(self, owner: Json, desired: int, why: str) -> None:
        message = f"New size: {desired}; reason: {why}"
        told = {"type": "Normal", "reason": "SuccessfulRescale", "message": message}
        name = uuid.uuid4().hex[:16]
        event = event_about(AUTOSCALER, owner, "horizontal-pod-autoscaler", name, **told)
        await self.world.client.create(EVENT, event)

    async def _scale(self, path: str) -> Json | None:
        try:
            return await self.world.client.call("GET", path) if path else None
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise
            return None

    async def _measure(
        self, namespace: str, selector: str, metrics: Iterable[Json]
    ) -> list[tuple[str, Json, Use]]:
        """Return name, target and use of each resource that pods ask for and use."""
        listed = await self.world.client.call(
            "GET", f"{_METRICS}/namespaces/{namespace}/pods", query={"labelSelector": selector}
        )
        found = []
        for metric in metrics:
            resource = metric.get("resource") or {}
            name, target = resource.get("name", ""), dict(resource.get("target") or {})
            use = self._use(namespace, name, listed["items"])
            if metric["type"] != "Resource" or not use.pods:
                continue
            if "averageUtilization" in target and not use.requested:
                continue
            if "averageValue" in target:
                target["averageValue"] = parse(name, str(target["averageValue"]))
            found.append((name, target, use))
        return found

    def _use(self, namespace: str, name: str, measured: Iterable[Json]) -> Use:
        used = requested = pods = 0
        for row in measured:
            pod = self.world.pods.objects.get((namespace, row["metadata"]["name"]))
            if pod is None or not is_active(pod):
                continue
            pods += 1
            requested += pod_requests(pod).get(name, 0)
            used += sum(parse(name, each["usage"].get(name, "0")) for each in row["containers"])
        return Use(used=used, requested=requested, pods=pods)

    @staticmethod
    def _within(spec: Json, advice: int, current: int) -> int:
        most: int = min(spec["maxReplicas"], max(2 * current, current + _LEAST_STEP))
        least: int = spec.get("minReplicas", 1)
        return max(least, min(advice, most))

    def _steady(self, owner: Json, advice: int, current: int) -> int:
        """Scale down only to the highest number advised within the window."""
        behavior = (owner["spec"].get("behavior") or {}).get("scaleDown") or {}
        window = behavior.get("stabilizationWindowSeconds", _WINDOW_SECONDS)
        now, real = asyncio.get_running_loop().time(), self.world.timing.real(window)
        advised = self._advised[owner["metadata"]["uid"]]
        advised.append((now, advice))
        while advised and advised[0][0] < now - real:
            advised.popleft()
        if advice >= current:
            return advice
        return min(current, max(number for _, number in advised))

    async def _tell(self, owner: Json, facts: Json, said: tuple[str, bool, str]) -> None:
        kind, holds, reason = said
        conditions = [condition(kind, holds=holds, reason=reason, old=owner)]
        if kind != "AbleToScale":
            able = condition("AbleToScale", holds=True, reason="ReadyForNewScale", old=owner)
            conditions.append(able)
        await self.world.replace_status(AUTOSCALER, owner, {**facts, "conditions": conditions})


def _why(measured: Iterable[tuple[str, Json, Use]], desired: int, current: int) -> str:
    name, target, use = max(measured, key=lambda metric: wanted(metric[1], metric[2], current))
    advised = wanted(target, use, current)
    if desired < current:
        above = "Current number of replicas above Spec.MaxReplicas"
        return "All metrics below target" if advised < current else above
    if advised <= current:
        return "Current number of replicas below Spec.MinReplicas"
    percent = " utilization (percentage of request)" if "averageUtilization" in target else ""
    return f"{name} resource{percent} above target"


def _metric(name: str, use: Use) -> Json:
    each = use.used // use.pods
    value = f"{each}m" if name == "cpu" else str(each)
    current: Json = {"averageValue": value}
    if use.requested:
        current["averageUtilization"] = use.percent
    return {"type": "Resource", "resource": {"name": name, "current": current}}

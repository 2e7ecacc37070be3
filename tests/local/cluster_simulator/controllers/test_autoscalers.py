"""Autoscalers follow what the metrics API says that pods use."""

from typing import Any

import pytest

from infra.local.cluster_simulator.controllers.autoscalers import Use, wanted
from tests.local.cluster_simulator.bench import (
    DEPLOYMENTS,
    PODS,
    Bench,
    condition,
    is_true,
    template,
    workload,
)
from tests.waiting import until

EVENTS = "/api/v1/namespaces/default/events"
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def scaler(percent: int, most: int, **spec: Any) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    named = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    wishes = {"scaleTargetRef": named, "maxReplicas": most, "metrics": [metric], **spec}
    return {"metadata": {"name": "web"}, "spec": wishes}


@pytest.mark.parametrize(
    ("target", "used", "pods"),
    [
        ({"averageUtilization": 50}, 4000, 8),
        ({"averageUtilization": 95}, 4000, 4),
        ({"averageUtilization": 80}, 800, 1),
        ({"averageUtilization": 90}, 4400, 5),
        ({"averageValue": 500}, 4000, 8),
        ({"averageValue": 3000}, 4000, 2),
    ],
)
def test_as_many_pods_as_bring_use_to_its_target(
    target: dict[str, int], used: int, pods: int
) -> None:
    assert wanted(target, Use(used=used, requested=4000, pods=4), 4) == pods


def test_a_deployment_is_scaled_up_at_most_twofold_or_by_four_and_never_past_the_most(
    bench: Bench,
) -> None:
    bench.add_node("n0")
    bench.create(DEPLOYMENTS, workload("Deployment", "web", template("web", cpu="100m")))
    until(lambda: len(bench.ready_pods("web")) == 1)
    bench.create(SCALERS, scaler(20, 7))

    def told() -> list[str]:
        return [event["message"] for event in bench.items(EVENTS) if event["type"] == "Normal"]

    until(lambda: len(told()) == 2)
    why = "cpu resource utilization (percentage of request) above target"
    assert {*told()} == {f"New size: {size}; reason: {why}" for size in (5, 7)}
    assert bench.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 7
    found = bench.get(f"{SCALERS}/web")
    (metric,) = found["status"]["currentMetrics"]
    assert metric["resource"]["current"]["averageUtilization"] == 100
    assert is_true(found, "ScalingActive")


def test_a_deployment_is_scaled_down_when_its_pods_have_been_idle_for_the_window(
    bench: Bench,
) -> None:
    bench.add_node("n0")
    idle = template("web", cpu="100m")
    idle["metadata"]["annotations"] = {"sim.dovetail.dev/usage-percent": "10"}
    bench.create(DEPLOYMENTS, workload("Deployment", "web", idle, replicas=4))
    until(lambda: len(bench.ready_pods("web")) == 4)
    bench.create(SCALERS, scaler(50, 9))
    until(lambda: bench.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 1, "a tenth is used")
    (pod,) = until(lambda: len(bench.pods("web")) == 1 and bench.pods("web"))
    bench.patch(
        f"{PODS}/{pod['metadata']['name']}",
        {"metadata": {"annotations": {"sim.dovetail.dev/usage-percent": "100"}}},
    )
    until(lambda: bench.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 2, "it is busy again")


@pytest.mark.parametrize(
    ("made", "kind", "reason"),
    [
        ({"replicas": 0}, "ScalingActive", "ScalingDisabled"),
        ({"replicas": 1}, "ScalingActive", "FailedGetResourceMetric"),
        (None, "AbleToScale", "FailedGetScale"),
    ],
    ids=["switched-off", "no-requests", "no-target"],
)
def test_an_autoscaler_that_cannot_scale_says_why(
    bench: Bench, made: dict[str, int] | None, kind: str, reason: str
) -> None:
    if made is not None:
        bare = template("web", cpu="100m")
        bare["spec"]["containers"][0].pop("resources")
        bench.create(DEPLOYMENTS, workload("Deployment", "web", bare, **made))
    bench.create(SCALERS, scaler(50, 3))
    until(
        lambda: condition(bench.get(f"{SCALERS}/web"), kind).get("reason") == reason,
        f"{kind} is {reason}",
    )

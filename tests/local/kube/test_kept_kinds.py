"""What `kubectl create` makes beside workloads: kept, and told where it has no effect here."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.kube.auth import Authenticator
from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import MERGE, TABLE, Api, Json

BATCH = "/apis/batch/v1/namespaces/default"
NETWORK = "/apis/networking.k8s.io/v1/namespaces/default"
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
CONTAINER = {"name": "c", "image": "busybox"}
CRON_JOB: Json = {
    "metadata": {"name": "c"},
    "spec": {
        "schedule": "*/5 * * * *",
        "jobTemplate": {
            "spec": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
        },
    },
}
SCALER: Json = {
    "metadata": {"name": "h"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
    },
}
RULE = {
    "host": "a.example",
    "http": {
        "paths": [
            {
                "path": "/",
                "pathType": "Prefix",
                "backend": {"service": {"name": "web", "port": {"number": 80}}},
            }
        ]
    },
}
INGRESS: Json = {"metadata": {"name": "i"}, "spec": {"rules": [RULE]}}
QUOTA: Json = {"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1"}}}
VOLUME: Json = {
    "metadata": {"name": "v"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "claimRef": {"namespace": "default", "name": "data"},
        "storageClassName": "local",
        "local": {"path": "/x"},
    },
}
SERVICE: Json = {
    "metadata": {"name": "s"},
    "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.9", "ports": [{"port": 80}]},
}
CONTROLLER: Json = {"metadata": {"name": "r"}, "spec": {"replicas": 1}}
LIMITS: Json = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"}]}}


@pytest.mark.parametrize(
    ("path", "body", "cells"),
    [
        (f"{BATCH}/cronjobs", CRON_JOB, ["c", "*/5 * * * *", "<none>", "False", 0, "<none>"]),
        (SCALERS, SCALER, ["h", "Deployment/web", "cpu: <unknown>/80%", 1, 3, 0]),
        (f"{NETWORK}/ingresses", INGRESS, ["i", "<none>", "a.example", "", "80"]),
        ("/api/v1/namespaces/default/resourcequotas", QUOTA, ["q"]),
        ("/api/v1/namespaces/default/replicationcontrollers", CONTROLLER, ["r"]),
        (
            "/api/v1/namespaces/default/services",
            SERVICE,
            ["s", "LoadBalancer", "10.96.0.9", "<pending>", "80/TCP"],
        ),
        (
            "/api/v1/persistentvolumes",
            VOLUME,
            ["v", "1Gi", "RWO,ROX", "Retain", "Pending", "default/data", "local", ""],
        ),
        ("/api/v1/namespaces/default/limitranges", LIMITS, ["l"]),
    ],
    ids=["cronjob", "hpa", "ingress", "quota", "rc", "service", "volume", "limits"],
)
def test_a_kind_is_kept_and_shown_as_kubectl_shows_it(
    api: Api, path: str, body: Json, cells: list[Any]
) -> None:
    made = api.post(path, body)
    assert made.status == 201
    shown = api.get(path, accept=TABLE).body["rows"][0]["cells"]
    assert shown[:-1] == cells
    warns = "but the cluster is simulated" in made.headers.get("warning", "")
    assert warns is not path.endswith(
        ("cronjobs", "horizontalpodautoscalers", "persistentvolumes", "services")
    )


def test_a_cron_job_has_the_defaults_of_a_real_server(api: Api) -> None:
    spec = api.post(f"{BATCH}/cronjobs", CRON_JOB).body["spec"]
    kept = ("concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    assert [spec[key] for key in kept] == ["Allow", False, 3, 1]


def test_an_autoscaler_of_the_first_version_is_the_same_object(api: Api) -> None:
    """`kubectl autoscale` wrote autoscaling/v1 for long; v2 is stored."""
    first = SCALERS.replace("/v2/", "/v1/")
    spec = SCALER["spec"] | {"targetCPUUtilizationPercentage": 60}
    assert api.post(first, {**SCALER, "spec": spec}).body["spec"] == spec | {"minReplicas": 1}
    found = api.get(f"{SCALERS}/h").body
    cpu = {"type": "Utilization", "averageUtilization": 60}
    assert found["spec"]["metrics"] == [resource_metric("cpu", cpu)]
    assert "targetCPUUtilizationPercentage" not in found["spec"]
    changed = api.patch(f"{first}/h", {"spec": {"targetCPUUtilizationPercentage": 70}}, MERGE)
    assert (changed.status, changed.body["apiVersion"]) == (200, "autoscaling/v1")
    listed = api.get(first).body["items"]
    assert [item["spec"]["targetCPUUtilizationPercentage"] for item in listed] == [70]
    assert api.get(SCALERS, accept=TABLE).body["rows"][0]["cells"][2] == "cpu: <unknown>/70%"


def test_what_the_first_version_has_no_field_for_stays_through_it(api: Api) -> None:
    first = SCALERS.replace("/v2/", "/v1/")
    metrics = [
        resource_metric("memory", {"type": "AverageValue", "averageValue": "1Gi"}),
        {
            "type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "30"}},
        },
    ]
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max"}}
    spec = SCALER["spec"] | {"metrics": metrics, "behavior": behavior}
    made = api.post(SCALERS, {**SCALER, "spec": spec}).body
    used = {"name": "cpu", "current": {"averageValue": "5m", "averageUtilization": 50}}
    told = [{"type": "ScalingActive", "status": "True"}]
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 2,
        "currentMetrics": [{"type": "Resource", "resource": used}],
        "conditions": told,
    }
    api.patch(f"{SCALERS}/h/status", {"status": status}, MERGE)
    shown = api.get(f"{first}/h").body
    assert shown["status"]["currentCPUUtilizationPercentage"] == 50
    annotations = shown["metadata"]["annotations"]
    assert json.loads(annotations["autoscaling.alpha.kubernetes.io/metrics"]) == [
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
        {"type": "External", "external": {"metricName": "q", "targetValue": "30"}},
    ]
    assert "ScaleDown" in annotations["autoscaling.alpha.kubernetes.io/behavior"]
    assert (
        api.put(f"{first}/h", {**shown, "spec": {**shown["spec"], "maxReplicas": 5}}).status == 200
    )
    after = api.get(f"{SCALERS}/h").body
    assert after["spec"] == made["spec"] | {"maxReplicas": 5}
    assert after["status"] == status
    assert "annotations" not in after["metadata"]


def test_an_autoscaler_that_scales_nothing_is_refused(api: Api) -> None:
    body = {"metadata": {"name": "h"}, "spec": {"metrics": [{"type": "Resource"}]}}
    causes = {cause["field"] for cause in api.post(SCALERS, body).causes}
    assert causes == {
        "spec.scaleTargetRef.kind",
        "spec.scaleTargetRef.name",
        "spec.maxReplicas",
        "spec.metrics[0].resource",
    }


def resource_metric(name: str, target: Json) -> Json:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def test_a_token_of_a_service_account_is_let_in_until_it_ends(tmp_path: Path) -> None:
    settings = tmp_path / "auth.json"
    settings.write_text(json.dumps({"admin_token": "admin"}))
    now = [1000.0]
    authenticator = Authenticator(settings, clock=lambda: now[0])
    with EmbeddedKube(authenticator=authenticator) as kube:
        admin = Api(kube.url, token="admin")
        admin.post(ACCOUNTS, {"metadata": {"name": "robot"}})
        made = admin.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 600}})
        assert made.status == 201
        robot = Api(kube.url, token=made.body["status"]["token"])
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        told = robot.post(path, {"kind": "SelfSubjectReview"}).body["status"]["userInfo"]
        assert told["username"] == "system:serviceaccount:default:robot"
        now[0] += 600
        assert robot.get(ACCOUNTS).status == 401
        short = admin.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 60}})
        assert (short.status, "less than 10 minutes" in short.body["message"]) == (422, True)
        assert admin.post(f"{ACCOUNTS}/absent/token", {}).status == 404
        admin.close()
        robot.close()

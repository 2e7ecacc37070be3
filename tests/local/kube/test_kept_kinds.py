"""What `kubectl create` makes beside workloads: kept, and told where it has no effect here."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.kube.auth import Authenticator
from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import TABLE, Api, Json

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
LIMITS: Json = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container"}]}}


@pytest.mark.parametrize(
    ("path", "body", "cells"),
    [
        (f"{BATCH}/cronjobs", CRON_JOB, ["c", "*/5 * * * *", "<none>", "False", 0, "<none>"]),
        (SCALERS, SCALER, ["h", "Deployment/web", "cpu: <unknown>/80%", 1, 3, 0]),
        (f"{NETWORK}/ingresses", INGRESS, ["i", "<none>", "a.example", "", "80"]),
        ("/api/v1/namespaces/default/resourcequotas", QUOTA, ["q"]),
        ("/api/v1/namespaces/default/limitranges", LIMITS, ["l"]),
    ],
    ids=["cronjob", "hpa", "ingress", "quota", "limits"],
)
def test_a_kind_is_kept_and_shown_as_kubectl_shows_it(
    api: Api, path: str, body: Json, cells: list[Any]
) -> None:
    made = api.post(path, body)
    assert made.status == 201
    shown = api.get(path, accept=TABLE).body["rows"][0]["cells"]
    assert shown[:-1] == cells
    warns = "but the cluster is simulated" in made.headers.get("warning", "")
    assert warns is not path.endswith(("cronjobs", "horizontalpodautoscalers"))


def test_a_cron_job_has_the_defaults_of_a_real_server(api: Api) -> None:
    spec = api.post(f"{BATCH}/cronjobs", CRON_JOB).body["spec"]
    kept = ("concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    assert [spec[key] for key in kept] == ["Allow", False, 3, 1]


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

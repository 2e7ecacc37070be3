"""What kubectl sends since 1.32: protobuf, reviews, and questions about running programs.

`typed_bodies.json` holds what kubectl 1.33 sent for each command, and what the same command
prints with `--dry-run=client -o json`.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.kube.schemas.messages import decode, messages
from tests.local.kube.client import DEPLOYMENTS, PODS, Api, Json, pod

PROTOBUF = "application/vnd.kubernetes.protobuf"
BODIES = json.loads(Path(__file__).with_name("typed_bodies.json").read_text(encoding="utf-8"))
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
MYSELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
METRICS = "/apis/metrics.k8s.io/v1beta1"


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("command", BODIES)
def test_protobuf_of_kubectl_means_the_same_as_its_json(command: str) -> None:
    decoded = decode(base64.b64decode(BODIES[command]["body"]))
    assert without_nulls(decoded) == without_nulls(BODIES[command]["object"])


def test_deployment_that_comes_as_protobuf_is_made(api: Api) -> None:
    sent = next(body for command, body in BODIES.items() if "deployment" in command)
    made = api.call("POST", DEPLOYMENTS, base64.b64decode(sent["body"]), PROTOBUF)
    assert (made.status, made.body["spec"]["replicas"]) == (201, 0)
    container = made.body["spec"]["template"]["spec"]["containers"][0]
    assert (container["ports"][0]["containerPort"], container["imagePullPolicy"]) == (80, "Always")


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def body_of(version: bytes, kind: bytes, content: bytes = b"") -> bytes:
    return b"k8s\0" + field(1, field(1, version) + field(2, kind)) + field(2, content)


def test_delete_options_come_with_the_version_of_what_is_deleted() -> None:
    grace = bytes([1 << 3, 0])
    decoded = decode(body_of(b"apps/v1", b"DeleteOptions", grace + field(4, b"Foreground")))
    assert decoded["gracePeriodSeconds"] == 0
    assert decoded["propagationPolicy"] == "Foreground"


def test_times_quantities_and_unknown_fields_are_read() -> None:
    since = field(8, bytes([1 << 3, 0x80, 0x90, 0x9E, 0x8D, 0x06]))
    storage = field(2, field(1, b"storage") + field(2, field(1, b"1Gi")))
    spec = field(2, storage) + field(5, b"") + field(15, b"a field of a later release")
    content = field(1, since) + field(2, spec)
    decoded = decode(body_of(b"v1", b"PersistentVolumeClaim", content))
    assert decoded["metadata"] == {"creationTimestamp": "2021-12-01T14:34:40Z"}
    assert decoded["spec"] == {
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", 400),
        (b"k8s\0" + field(1, b"\x0a\x7f"), 400),
        (b"k8s\0" + bytes([1 << 3 | 3]), 400),
        (b"k8s\0" + b"\xff" * 12, 400),
        (body_of(b"apps/v1", b"Deployment", field(1, b"\x0a\x09short")), 400),
        (body_of(b"apps/v1", b"Deployment", bytes([1 << 3, 1])), 400),
        (body_of(b"apps/v1", b"Deployment\xff"), 400),
        (body_of(b"flowcontrol.apiserver.k8s.io/v1", b"FlowSchema"), 415),
        (body_of(b"v1", b"Pod"), 400),
    ],
)
def test_protobuf_that_cannot_be_read_is_refused(api: Api, body: bytes, status: int) -> None:
    answer = api.call("POST", DEPLOYMENTS, body, PROTOBUF)
    assert answer.status == status
    assert "defect" not in answer.body["message"]


def test_every_message_that_is_named_is_there() -> None:
    named = {field.code for fields in messages().values() for field in fields.values()}
    assert {code for code in named if "." in code} <= messages().keys()


def test_reviews_say_what_holds_here(api: Api) -> None:
    may = api.post(ACCESS, {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}})
    assert (may.status, may.body["status"]["allowed"]) == (201, True)
    assert may.body["spec"]["resourceAttributes"]["verb"] == "create"
    assert api.post(RULES, {}).body["status"]["resourceRules"][0]["verbs"] == ["*"]
    user = api.post(MYSELF, {}).body["status"]["userInfo"]
    assert user == {
        "username": "kubernetes-admin",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert api.get(ACCESS).status == 405
    assert api.post(ACCESS, {"kind": "Pod"}).status == 400


@pytest.mark.parametrize("what", ["exec", "attach", "portforward", "ephemeralcontainers"])
def test_what_needs_a_program_is_refused_with_a_sentence(api: Api, what: str) -> None:
    api.post(PODS, pod("web"))
    answer = api.get(f"{PODS}/web/{what}")
    assert (answer.status, answer.body["reason"]) == (501, "NotImplemented")
    assert answer.body["message"].startswith("pod web is simulated: it runs no program, so ")


def start(api: Api, name: str, node: str) -> None:
    api.post(PODS, pod(name, node=node))
    running: Json = {"running": {"startedAt": "2026-11-24T12:00:00Z"}}
    names = [c["name"] for c in api.get(f"{PODS}/{name}").body["spec"]["containers"]]
    status = {
        "phase": "Running",
        "containerStatuses": [{"name": name, "state": running} for name in names],
    }
    assert api.patch(f"{PODS}/{name}/status", {"status": status}).status == 200


def test_log_says_when_a_container_started_and_that_it_is_simulated(api: Api) -> None:
    start(api, "web", "n1")
    log = api.get(f"{PODS}/web/log")
    assert log.status == 200
    lines = log.body.decode().splitlines()
    assert lines[0].startswith("2026-11-24T12:00:00Z ")
    assert lines[0].endswith(" started on n1")
    assert "simulated" in lines[1]


def test_log_of_a_container_that_is_not_there_yet_says_why(api: Api) -> None:
    api.post(PODS, pod("waits"))
    assert "does not have a host" in api.get(f"{PODS}/waits/log").body["message"]
    api.post(PODS, pod("boots", node="n1"))
    assert "ContainerCreating" in api.get(f"{PODS}/boots/log").body["message"]
    assert "not valid for pod" in api.get(f"{PODS}/boots/log", container="x").body["message"]
    assert "previous" in api.get(f"{PODS}/boots/log", previous="true").body["message"]
    assert api.get(f"{PODS}/absent/log").status == 404


def test_metrics_are_what_running_pods_request(api: Api) -> None:
    api.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
    body = pod("web", node="n1")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1500m", "memory": "1Gi"}}
    api.post(PODS, body)
    assert api.get(f"{METRICS}/pods").body["items"] == []
    api.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}})
    used = {"cpu": "1500m", "memory": "1048576Ki"}
    one = api.get(f"{METRICS}/namespaces/default/pods/web").body
    assert one["containers"][0]["usage"] == used
    assert [node["usage"] for node in api.get(f"{METRICS}/nodes").body["items"]] == [used]
    assert api.get(f"{METRICS}/nodes/absent").status == 404
    assert api.get(f"{METRICS}/services").status == 404
    assert api.get(METRICS).body["resources"][0]["kind"] == "NodeMetrics"


def test_kind_that_is_not_served_is_found_in_no_document(api: Api) -> None:
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert api.get("/openapi/v2", accept=protobuf).body == b""
    assert api.get("/openapi/v2").body["paths"] == {}


def test_every_built_in_kind_has_a_document_and_fields(api: Api) -> None:
    for name in api.get("/openapi/v3").body["paths"]:
        assert api.get(f"/openapi/v3/{name}").status == 200, name


def test_network_policy_is_kept(api: Api) -> None:
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    policy = {"metadata": {"name": "none"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}}
    assert api.post(path, policy).status == 201
    assert api.get(f"{path}/none").body["spec"]["podSelector"] == {"matchLabels": {"a": "b"}}

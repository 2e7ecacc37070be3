"""Answers of an API server that no well-behaved cluster gives every day."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.kube.server import EmbeddedKube
from shared.kube.api import RejectedError
from shared.kube.cluster import KubeCluster
from shared.kube.connection import connect_endpoint
from shared.manifests.nodes import decode_node
from shared.manifests.pods import decode_pod
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    EvictionRefusedError,
    NotFoundError,
    NotInstalledError,
    ThrottledError,
    UnauthorizedError,
    UnavailableError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.provisioner import Provisioner
from shared.ports import KubernetesEvent, NodeChange, NodeManifest, Severity
from tests.contract.kube.scripted import Answer, Request, ScriptedServer, scripted

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cluster(server: ScriptedServer) -> KubeCluster:
    return KubeCluster("c1", server.api, now=lambda: NOW)


def raw_pod(uid: str = "u", node: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "shop", "name": "p", "uid": uid, **more}
    return {"metadata": metadata, "spec": {"nodeName": node}}


def raw_node(version: str = "5", uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"name": "n1", "uid": uid, "resourceVersion": version}, "spec": {}}


def a_pod() -> Pod:
    return decode_pod(raw_pod())


def a_node() -> Node:
    return decode_node(raw_node())


def failed(status: int, cause: str = "", **headers: str) -> Answer:
    details = {"causes": [{"reason": cause}]} if cause else {}
    return Answer(status=status, body={"kind": "Status", "details": details}, headers=headers)


BUDGET = "DisruptionBudget"


@pytest.mark.parametrize(
    ("answer", "expected", "delay"),
    [
        (failed(429, BUDGET), EvictionRefusedError, None),
        (failed(429), EvictionRefusedError, None),
        (failed(429, BUDGET, **{"Retry-After": "10"}), EvictionRefusedError, 10),
        (failed(429, **{"Retry-After": "1"}), ThrottledError, 1),
        (failed(500), EvictionRefusedError, None),
        (failed(403), UnauthorizedError, None),
    ],
)
def test_eviction_refused_by_a_budget_is_distinguished_from_a_busy_server(
    answer: Answer, expected: type[AutoscalerError], delay: int | None
) -> None:
    with scripted([answer]) as server, pytest.raises(expected) as caught:
        cluster(server).evict(a_pod())
    assert type(caught.value) is expected
    found = getattr(caught.value, "delay", None)
    assert found == (None if delay is None else timedelta(seconds=delay))
    assert server.requests[0].path == "/api/v1/namespaces/shop/pods/p/eviction"
    assert server.requests[0].body["apiVersion"] == "policy/v1"
    assert server.requests[0].body["deleteOptions"]["preconditions"] == {"uid": "u"}


def test_a_conflict_about_the_very_pod_is_a_conflict() -> None:
    with scripted([failed(409), Answer(body=raw_pod())]) as server, pytest.raises(ConflictError):
        cluster(server).evict(a_pod())


def test_a_pod_that_went_while_it_was_bound_is_not_found() -> None:
    with scripted([failed(409), failed(404)]) as server, pytest.raises(NotFoundError):
        cluster(server).bind(a_pod(), "n1")


def test_refused_value_is_distinguished_from_a_failed_test() -> None:
    change = NodeChange(set_labels={"a": "b"})
    with scripted([failed(422), Answer(body=raw_node())]) as server:
        with pytest.raises(RejectedError):
            cluster(server).change_node(a_node(), change)
        tests = server.requests[0].body[:2]
        assert [test["value"] for test in tests] == ["u", "5"]
    for current in (raw_node("6"), raw_node(uid="other")):
        script = [failed(422), Answer(body=current)]
        with scripted(script) as server, pytest.raises(ConflictError):
            cluster(server).change_node(a_node(), change)
    with scripted([failed(422), failed(404)]) as server, pytest.raises(NotFoundError):
        cluster(server).change_node(a_node(), change)


def test_a_node_that_may_not_be_made_says_why() -> None:
    manifest = NodeManifest(
        name="n1",
        labels={},
        annotations={},
        taints=(),
        finalizers=(),
        provider_id="",
        owner=None,
    )
    with scripted([failed(403)]) as server, pytest.raises(UnauthorizedError, match="create node"):
        cluster(server).create_node(manifest)


def test_node_is_owned_by_its_provisioner_and_deleted_with_it() -> None:
    manifest = NodeManifest(
        name="n1",
        labels={},
        annotations={},
        taints=(),
        finalizers=(),
        provider_id="",
        owner=Provisioner(name="default", uid="p-uid"),
    )
    with scripted([Answer(status=201, body=raw_node())]) as server:
        cluster(server).create_node(manifest)
        assert server.requests[0].body["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "karpenter.sh/v1alpha5",
                "kind": "Provisioner",
                "name": "default",
                "uid": "p-uid",
            }
        ]


def test_an_answer_that_breaks_off_is_unavailable() -> None:
    cut = Answer(lines=[b'{"metadata": {'], then="abort")
    with scripted([cut]) as server, pytest.raises(UnavailableError):
        cluster(server).nodes()


def test_events_that_cannot_be_written_are_logged_one_by_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def kube_event(name: str) -> KubernetesEvent:
        return KubernetesEvent(
            kind="Node",
            namespace="",
            name=name,
            uid="u",
            severity=Severity.NORMAL,
            reason="Launched",
            message="x" * 2000,
        )

    with scripted([failed(403)]) as server, caplog.at_level(logging.WARNING):
        kube = cluster(server)
        kube.record_events([kube_event("a"), kube_event("b" * 253)])
        said = sorted(record.getMessage()[:36] for record in caplog.records)
        assert said == [
            "event Launched about Node a: event a",
            "event Launched about Node bbbbbbbbbb",
        ]
        for request in server.requests:
            assert request.path == "/api/v1/namespaces/default/events"
            assert len(request.body["metadata"]["name"]) <= 253
            assert len(request.body["message"]) == 1024


def test_condition_is_written_only_if_unchanged_and_keeps_its_time() -> None:
    old = {
        "type": "Active",
        "status": "False",
        "reason": "Invalid",
        "message": "one",
        "lastTransitionTime": "2025-01-01T00:00:00Z",
    }
    other = {"type": "Other", "status": "True"}
    raw = {"metadata": {"resourceVersion": "7"}, "status": {"conditions": [other, old]}}
    with scripted([Answer(body=raw), failed(409)]) as server:
        kube = cluster(server)
        with pytest.raises(ConflictError):
            kube.set_provisioner_condition("p", active=False, reason="Invalid", message="two")
        body = server.requests[1].body
        assert body["metadata"] == {"resourceVersion": "7"}
        assert body["status"]["conditions"] == [other, {**old, "message": "two"}]
    with scripted([Answer(body=raw), Answer(body={})]) as server:
        cluster(server).set_provisioner_condition("p", active=True, reason="Ready", message="")
        written = server.requests[1].body["status"]["conditions"][1]
        assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    with scripted([Answer(body=raw), failed(404)]) as server:
        cluster(server).set_provisioner_condition("p", active=True, reason="Ready", message="")


def test_condition_without_a_time_gets_one() -> None:
    old = {"type": "Active", "status": "False", "reason": "Odd", "message": ""}
    raw = {"metadata": {"resourceVersion": "7"}, "status": {"conditions": [old]}}
    with scripted([Answer(body=raw), Answer(body={})]) as server:
        cluster(server).set_provisioner_condition("p", active=False, reason="Invalid", message="")
        (written,) = server.requests[1].body["status"]["conditions"]
        assert written["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_volumes_of_daemonset_and_static_pods_are_not_waited_for() -> None:
    def attachment(name: str, node: str, **source: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"nodeName": node, "source": source}}

    daemon = raw_pod(node="n1", ownerReferences=[{"kind": "DaemonSet", "controller": True}])
    daemon["spec"]["volumes"] = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "agent"}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "unbound"}},
    ]

    def answer(request: Request) -> Answer:
        if request.path.endswith("volumeattachments"):
            items = [
                attachment("va-daemon", "n1", persistentVolumeName="pv-agent"),
                attachment("va-data", "n1", persistentVolumeName="pv-data"),
                attachment("va-inline", "n1"),
                attachment("va-else", "n2", persistentVolumeName="pv-else"),
            ]
            return Answer(body={"metadata": {}, "items": items})
        if request.path.endswith("/persistentvolumeclaims/agent"):
            return Answer(body={"spec": {"volumeName": "pv-agent"}})
        if "persistentvolumeclaims" in request.path:
            return failed(404)
        return Answer(body={"metadata": {}, "items": [daemon]})

    with scripted(answer) as server:
        assert cluster(server).volume_attachments("n1") == ("va-data",)


def test_many_small_pods_come_in_pages_that_grow() -> None:
    def answer(request: Request) -> Answer:
        begin = int(request.query.get("continue", "0"))
        assert request.query["limit"] == ("1000" if begin else "250")
        end = min(begin + int(request.query["limit"]), 1000)
        items = [raw_pod(uid=str(n), name=f"p{n:04d}") for n in range(begin, end)]
        token = str(end) if end < 1000 else ""
        return Answer(body={"metadata": {"continue": token}, "items": items})

    with scripted(answer) as server:
        found = cluster(server).pending_pods()
        assert [pod.name for pod in found] == [f"p{n:04d}" for n in range(1000)]
        assert len({id(pod.scheduling) for pod in found}) == 1
        assert server.requests[0].query["fieldSelector"] == (
            "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
        )


def test_a_cluster_without_the_definition_of_provisioners_says_so() -> None:
    with scripted([failed(404)]) as server, pytest.raises(NotInstalledError, match="not defined"):
        cluster(server).provisioners()


def test_a_list_that_the_server_puts_off_may_be_asked_for_again_after_its_delay() -> None:
    with EmbeddedKube(initializing_seconds=60) as kube:
        api = connect_endpoint(kube.url, "", lambda: "token")
        manifests = Path(__file__).parents[4] / "infra" / "cluster"
        raw = yaml.safe_load((manifests / "provisioners.yaml").read_text())
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert api.send("POST", path, body=raw).ok
        with pytest.raises(ThrottledError, match="initializing") as caught:
            KubeCluster("c1", api).provisioners()
        assert caught.value.delay == timedelta(seconds=1)


def test_a_binding_that_is_refused_is_logged_and_keeps_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [failed(403, "NamespaceTerminating"), Answer(status=201, body={})]
    with scripted(answers) as server:
        bound = cluster(server).bind_all([(a_pod(), "n1"), (a_pod(), "n1")])
    assert len(bound) == 1
    assert "pod shop/p is not bound" in caplog.text

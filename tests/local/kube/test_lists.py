"""Lists: selectors, pages, versions, forms."""

import gzip
import json
import urllib.request

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import MAPS, NODES, PODS, TABLE, Api, config_map, node, pod


@pytest.fixture
def pods(api: Api) -> Api:
    api.post(PODS, pod("a", labels={"app": "x", "size": "1"}))
    api.post(PODS, pod("b", labels={"app": "x", "size": "20"}, node="n"))
    api.post(PODS, pod("c", labels={"other": "y"}))
    return api


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=x", ["a", "b"]),
        ("app==x,size!=1", ["b"]),
        ("size in (1,3)", ["a"]),
        ("app, size notin (1)", ["b"]),
        ("size notin (1)", ["b", "c"]),
        ("!app", ["c"]),
        ("size>5", ["b"]),
        ("size<5", ["a"]),
        ("", ["a", "b", "c"]),
    ],
)
def test_label_selectors(pods: Api, selector: str, names: list[str]) -> None:
    assert pods.get(PODS, labelSelector=selector).names == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("spec.nodeName=", ["a", "c"]),
        ("spec.nodeName=n", ["b"]),
        ("spec.nodeName!=n,metadata.name=c", ["c"]),
        ("status.phase=Running", []),
        ("status.phase=Pending,metadata.namespace=default", ["a", "b", "c"]),
        ("spec.schedulerName=default-scheduler", ["a", "b", "c"]),
    ],
)
def test_field_selectors(pods: Api, selector: str, names: list[str]) -> None:
    assert pods.get("/api/v1/pods", fieldSelector=selector).names == names


def test_the_pods_of_a_node_are_those_bound_to_it_and_not_gone(pods: Api) -> None:
    bound = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    pods.post(f"{PODS}/a/binding", {"apiVersion": "v1", "kind": "Binding", **bound})
    pods.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "z"}}})
    first = pods.get(PODS, fieldSelector="spec.nodeName=n", limit=1)
    token = first.body["metadata"]["continue"]
    then = pods.get(PODS, fieldSelector="spec.nodeName=n", limit=1, continue_=token)
    assert (first.names, then.names) == (["a"], ["b"])
    pods.delete(f"{PODS}/b", gracePeriodSeconds=0)
    assert pods.get(PODS, fieldSelector="spec.nodeName=n").names == ["a"]
    assert pods.get(PODS, fieldSelector="spec.nodeName=n", labelSelector="app=x").names == []


def test_a_selector_that_cannot_be_read_is_a_bad_request(api: Api) -> None:
    assert api.get(PODS, fieldSelector="spec.foo=x").status == 400
    assert api.get(PODS, labelSelector="a in b").status == 400
    assert api.get(PODS, fieldSelector="nonsense").status == 400


def test_cordoned_nodes_and_the_events_of_an_object_can_be_selected(api: Api) -> None:
    api.post(NODES, node("n"))
    api.post(NODES, node("m"))
    api.patch(f"{NODES}/n", {"spec": {"unschedulable": True}})
    assert api.get(NODES, fieldSelector="spec.unschedulable=true").names == ["n"]
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "involvedObject": about}
    events = "/api/v1/namespaces/default/events"
    assert api.post(events, event | {"reason": "Seen", "type": "Normal"}).status == 201
    assert api.get(events, fieldSelector="involvedObject.name=a,reason=Seen").names == ["e"]
    assert api.get(events, fieldSelector="involvedObject.name=b").names == []


def test_pages_cover_the_list_under_the_version_of_the_first(api: Api) -> None:
    for index in range(7):
        api.post(MAPS, config_map(f"m{index}"))
    first = api.get(MAPS, limit=3)
    assert first.body["metadata"]["remainingItemCount"] == 4
    api.post(MAPS, config_map("later"))
    names, token = first.names, first.body["metadata"]["continue"]
    while token:
        page = api.get(MAPS, limit=3, continue_=token)
        assert page.version == first.version
        names += page.names
        token = page.body["metadata"].get("continue")
    assert set(names) >= {f"m{index}" for index in range(7)}
    assert len(names) == len(set(names))


def test_an_old_continue_token_is_expired_and_comes_with_a_fresh_one(
    kube: EmbeddedKube, api: Api
) -> None:
    for index in range(4):
        api.post(MAPS, config_map(f"m{index}"))
    token = api.get(MAPS, limit=2).body["metadata"]["continue"]
    api.post(MAPS, config_map("z"))
    kube.compact()
    old = api.get(MAPS, limit=2, continue_=token)
    assert (old.status, old.body["reason"]) == (410, "Expired")
    rest = api.get(MAPS, continue_=old.body["metadata"]["continue"])
    assert rest.names == ["m2", "m3", "z"]


def test_a_version_from_the_future_times_out(api: Api) -> None:
    reply = api.get(PODS, resourceVersion=str(10**12))
    assert (reply.status, reply.body["reason"]) == (504, "Timeout")
    assert [cause["reason"] for cause in reply.causes] == ["ResourceVersionTooLarge"]
    assert reply.body["details"]["retryAfterSeconds"] == 1


def test_a_typed_list_names_the_kind_once(pods: Api) -> None:
    reply = pods.get(PODS)
    assert reply.body["kind"] == "PodList"
    assert "kind" not in reply.body["items"][0]
    assert pods.get(f"{PODS}/a").body["kind"] == "Pod"


def test_tables_and_metadata_are_served_when_asked_for(pods: Api) -> None:
    table = pods.get(PODS, accept=TABLE).body
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]][:3] == [
        "Name",
        "Ready",
        "Status",
    ]
    assert table["rows"][0]["cells"][:3] == ["a", "0/1", "Pending"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    slim = pods.get(PODS, accept=TABLE.replace("Table", "PartialObjectMetadataList")).body
    assert [set(item) for item in slim["items"]] == [{"metadata"}] * 3
    assert pods.get(PODS, accept="application/vnd.kubernetes.protobuf").status == 406


def test_a_large_list_is_compressed_when_the_client_says_so(kube: EmbeddedKube, api: Api) -> None:
    api.post(MAPS, config_map("large", a="x" * 200_000))
    request = urllib.request.Request(kube.url + MAPS, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=60) as response:
        raw = response.read()
        assert response.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(raw))["items"][0]["metadata"]["name"] == "large"

"""Create and update."""

import pytest

from tests.local.kube.client import (
    DEPLOYMENTS,
    JSON_PATCH,
    MAPS,
    NODES,
    PODS,
    Api,
    config_map,
    deployment,
    node,
    pod,
)


def test_a_created_pod_carries_what_the_server_sets(api: Api) -> None:
    reply = api.post(PODS, pod("a"))
    metadata = reply.body["metadata"]
    assert reply.status == 201
    assert {"uid", "resourceVersion", "creationTimestamp"} <= metadata.keys()
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"].endswith("Z")
    assert reply.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_pod_gets_the_defaults_the_scheduler_and_the_drain_read(api: Api) -> None:
    spec = api.post(PODS, pod("a")).body["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["priority"] == 0
    seconds = {
        toleration["key"]: toleration["tolerationSeconds"] for toleration in spec["tolerations"]
    }
    assert seconds == {
        "node.kubernetes.io/not-ready": 300,
        "node.kubernetes.io/unreachable": 300,
    }


def test_limits_become_requests_where_these_are_missing(api: Api) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    made = api.post(PODS, body).body
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert made["status"]["qosClass"] == "Guaranteed"


def test_a_pod_gets_the_priority_of_its_class_and_is_refused_without_the_class(api: Api) -> None:
    body = pod("a")
    body["spec"]["priorityClassName"] = "system-node-critical"
    assert api.post(PODS, body).body["spec"]["priority"] == 2_000_001_000
    body = pod("b")
    body["spec"]["priorityClassName"] = "absent"
    assert api.post(PODS, body).status == 403


def test_a_new_node_is_tainted_not_ready_and_keeps_its_status(api: Api) -> None:
    made = api.post(NODES, node("n")).body
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert made["spec"]["taints"] == [taint]
    assert len(made["status"]["conditions"]) == 2
    assert "namespace" not in made["metadata"]


@pytest.mark.parametrize("name", ["Bad_Name", "-a", "a..b", ""])
def test_a_bad_name_is_invalid(api: Api, name: str) -> None:
    assert api.post(PODS, pod(name)).status == 422


@pytest.mark.parametrize(
    ("taint", "reason"),
    [
        ({"key": "a b", "effect": "NoSchedule"}, "FieldValueInvalid"),
        ({"key": "a", "effect": "Sometimes"}, "FieldValueNotSupported"),
        ({"key": "a", "value": "b c", "effect": "NoSchedule"}, "FieldValueInvalid"),
    ],
)
def test_a_bad_taint_is_invalid(api: Api, taint: dict[str, str], reason: str) -> None:
    body = node("n")
    body["spec"]["taints"] = [taint]
    reply = api.post(NODES, body)
    assert reply.status == 422
    assert [cause["reason"] for cause in reply.causes] == [reason]


def test_a_bad_label_and_a_bad_quantity_are_refused(api: Api) -> None:
    assert api.post(PODS, pod("a", labels={"a/b/c": "1"})).status == 422
    body = pod("a")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "two"}}
    assert api.post(PODS, body).status == 400


def test_a_wrong_type_is_refused_and_an_unknown_field_dropped_with_a_warning(api: Api) -> None:
    body = deployment("web")
    body["spec"]["replicas"] = "two"
    assert api.post(DEPLOYMENTS, body).status == 400
    body["spec"]["replicas"] = 2
    body["spec"]["replicaz"] = 2
    assert api.post(DEPLOYMENTS, body, fieldValidation="Strict").status == 400
    reply = api.post(DEPLOYMENTS, body)
    assert "replicaz" in reply.headers["warning"]
    assert "replicaz" not in reply.body["spec"]


def test_a_selector_must_match_its_template(api: Api) -> None:
    body = deployment("web")
    body["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    assert api.post(DEPLOYMENTS, body).status == 422


def test_a_name_is_generated(api: Api) -> None:
    body = pod("x")
    body["metadata"] = {"generateName": "gen-"}
    first, second = (api.post(PODS, body).body["metadata"]["name"] for _ in range(2))
    assert first.startswith("gen-")
    assert len(first) == len("gen-") + 5
    assert first != second


def test_duplicates_and_absent_namespaces_are_refused(api: Api) -> None:
    api.post(PODS, pod("a"))
    assert api.post(PODS, pod("a")).body["reason"] == "AlreadyExists"
    assert api.post("/api/v1/namespaces/absent/pods", pod("a")).status == 404


def test_a_write_that_changes_nothing_keeps_the_version(api: Api) -> None:
    made = api.post(MAPS, config_map("m", a="1"))
    same = api.put(f"{MAPS}/m", made.body)
    assert same.version == made.version
    assert api.patch(f"{MAPS}/m", {"data": {"a": "1"}}).version == made.version
    assert api.patch(f"{MAPS}/m", {"data": {"a": "2"}}).version != made.version


def test_a_stale_version_or_a_foreign_uid_is_a_conflict(api: Api) -> None:
    made = api.post(MAPS, config_map("m")).body
    api.patch(f"{MAPS}/m", {"data": {"a": "1"}})
    assert api.put(f"{MAPS}/m", made).body["reason"] == "Conflict"
    other = config_map("m", a="2")
    other["metadata"]["uid"] = "other"
    assert api.put(f"{MAPS}/m", other).body["reason"] == "Conflict"
    assert api.put(f"{MAPS}/m", config_map("m", a="2")).status == 200


def test_what_the_server_set_cannot_be_changed(api: Api) -> None:
    made = api.post(MAPS, config_map("m")).body["metadata"]
    lies = {"creationTimestamp": "2000-01-01T00:00:00Z", "deletionTimestamp": None}
    now = api.patch(f"{MAPS}/m", {"metadata": {**lies, "labels": {"a": "b"}}}).body["metadata"]
    assert now["creationTimestamp"] == made["creationTimestamp"]
    assert now["uid"] == made["uid"]


def test_the_generation_counts_changes_of_the_spec_only(api: Api) -> None:
    path = f"{DEPLOYMENTS}/web"
    assert api.post(DEPLOYMENTS, deployment("web")).body["metadata"]["generation"] == 1
    labelled = api.patch(path, {"metadata": {"labels": {"a": "b"}}}).body
    assert labelled["metadata"]["generation"] == 1
    assert api.patch(path, {"spec": {"replicas": 3}}).body["metadata"]["generation"] == 2
    status = api.patch(f"{path}/status", {"status": {"replicas": 3}}).body
    assert status["metadata"]["generation"] == 2


def test_a_pod_spec_is_immutable_but_for_a_few_fields(api: Api) -> None:
    api.post(PODS, pod("a"))
    path = f"{PODS}/a"
    refused = api.patch(path, {"spec": {"nodeName": "n"}})
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    assert api.patch(path, {"spec": {"nodeSelector": {"a": "b"}}}).status == 422
    assert api.patch(path, {"spec": {"activeDeadlineSeconds": 5}}).status == 200
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "example.com/app:2"}]
    assert api.patch(path, image, JSON_PATCH).status == 200
    more = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]
    assert api.patch(path, more, JSON_PATCH).status == 200
    fewer = [{"op": "remove", "path": "/spec/tolerations/0"}]
    assert api.patch(path, fewer, JSON_PATCH).status == 422


def test_a_provider_id_is_set_once_and_a_selector_never_changes(api: Api) -> None:
    api.post(NODES, node("n"))
    assert api.patch(f"{NODES}/n", {"spec": {"providerID": "aws:///a/i-1"}}).status == 200
    assert api.patch(f"{NODES}/n", {"spec": {"providerID": "aws:///a/i-2"}}).status == 422
    api.post(DEPLOYMENTS, deployment("web"))
    other = {"spec": {"selector": {"matchLabels": {"app": "x"}}}}
    assert api.patch(f"{DEPLOYMENTS}/web", other).status == 422


def test_a_dry_run_stores_nothing(api: Api) -> None:
    assert api.post(PODS, pod("a"), dryRun="All").status == 201
    assert api.get(f"{PODS}/a").status == 404
    api.post(MAPS, config_map("m", a="1"))
    dry = api.patch(f"{MAPS}/m", {"data": {"a": "2"}}, dryRun="All")
    assert dry.body["data"] == {"a": "2"}
    assert api.get(f"{MAPS}/m").body["data"] == {"a": "1"}


def test_bodies_are_read_as_json_or_yaml_and_never_as_cbor(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: '1'}\n"
    assert api.call("POST", MAPS, text, "application/yaml").body["data"] == {"a": "1"}
    refused = api.call("POST", MAPS, b"\xd9\xd9\xf7\xa0", "application/cbor")
    assert refused.status == 415
    assert api.call("POST", MAPS, b"{").status == 400
    assert api.post(MAPS, pod("a")).status == 400


def test_an_unknown_path_or_method_is_refused(api: Api) -> None:
    assert api.get("/apis/nowhere/v1/things").body["reason"] == "NotFound"
    assert api.get(f"{PODS}/absent").body["details"] == {"name": "absent", "kind": "pods"}
    assert api.post(f"{PODS}/absent", pod("a")).status == 405
    assert api.get("/api/v1/pods/absent").status == 404


def test_empty_lists_and_maps_are_left_out(api: Api) -> None:
    api.post(NODES, node("n", labels={"a": "b"}))
    emptied = {"spec": {"taints": []}, "metadata": {"labels": {"a": None}}}
    made = api.patch(f"{NODES}/n", emptied).body
    assert "taints" not in made["spec"]
    assert "labels" not in made["metadata"]


def test_generated_names_never_collide_with_what_is_there(api: Api) -> None:
    body = config_map("x")
    body["metadata"] = {"generateName": "g-"}
    names = {api.post(MAPS, body).body["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50


def test_a_namespaced_object_is_not_made_without_a_namespace_in_the_path(api: Api) -> None:
    assert api.post("/api/v1/pods", pod("a")).status == 405
    assert api.delete("/api/v1/pods").status == 405


def test_an_event_lives_beside_its_object(api: Api) -> None:
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "involvedObject": about}
    assert api.post("/api/v1/namespaces/kube-system/events", event).status == 422
    event["involvedObject"] = {"kind": "Node", "name": "n"}
    assert api.post("/api/v1/namespaces/kube-system/events", event).status == 422
    assert api.post("/api/v1/namespaces/default/events", event).status == 201


def test_a_whole_pod_is_put_back_as_it_came_or_without_its_priority(api: Api) -> None:
    made = api.post(PODS, pod("a")).body
    made["metadata"]["labels"] = {"x": "1"}
    del made["spec"]["priority"]
    reply = api.put(f"{PODS}/a", made)
    assert (reply.status, reply.body["spec"]["priority"]) == (200, 0)


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    assert api.post(MAPS, config_map("m", a="x" * 1_100_000)).status == 413

"""JSON, merge, strategic and apply patches."""

from typing import Any

import pytest

from tests.local.kube.client import (
    APPLY,
    DEPLOYMENTS,
    JSON_PATCH,
    MAPS,
    NODES,
    PODS,
    STRATEGIC,
    Api,
    Json,
    Reply,
    config_map,
    deployment,
    node,
    pod,
)


def test_a_json_patch_applies_whole_or_not_at_all(api: Api) -> None:
    api.post(MAPS, config_map("m", a="1"))
    good = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/b", "value": "2"},
    ]
    assert api.patch(f"{MAPS}/m", good, JSON_PATCH).body["data"] == {"a": "1", "b": "2"}
    bad = [
        {"op": "remove", "path": "/data/b"},
        {"op": "test", "path": "/data/a", "value": "other"},
    ]
    assert api.patch(f"{MAPS}/m", bad, JSON_PATCH).status == 422
    assert api.get(f"{MAPS}/m").body["data"] == {"a": "1", "b": "2"}
    assert api.patch(f"{MAPS}/m", [{"op": "jump", "path": "/"}], JSON_PATCH).status == 400


def test_a_merge_patch_drops_what_it_says_is_null(api: Api) -> None:
    api.post(MAPS, config_map("m", a="1", b="2"))
    assert api.patch(f"{MAPS}/m", {"data": {"a": None, "c": "3"}}).body["data"] == {
        "b": "2",
        "c": "3",
    }


def test_a_patch_with_a_stale_version_is_a_conflict(api: Api) -> None:
    api.post(MAPS, config_map("m"))
    stale = {"metadata": {"resourceVersion": "1"}, "data": {"a": "1"}}
    assert api.patch(f"{MAPS}/m", stale).body["reason"] == "Conflict"


def test_an_unknown_patch_type_is_refused(api: Api) -> None:
    api.post(MAPS, config_map("m"))
    assert api.patch(f"{MAPS}/m", {}, "application/json").status == 415


def test_a_strategic_patch_merges_conditions_by_type_and_replaces_taints(api: Api) -> None:
    api.post(NODES, node("n"))
    ready = {"type": "Ready", "status": "False"}
    changed = api.patch(f"{NODES}/n/status", {"status": {"conditions": [ready]}}, STRATEGIC).body
    states = {
        condition["type"]: condition["status"] for condition in changed["status"]["conditions"]
    }
    assert states == {"Ready": "False", "MemoryPressure": "False"}
    gone = {"$patch": "delete", "type": "MemoryPressure"}
    changed = api.patch(f"{NODES}/n/status", {"status": {"conditions": [gone]}}, STRATEGIC).body
    assert [condition["type"] for condition in changed["status"]["conditions"]] == ["Ready"]
    taints = [{"key": "a", "effect": "NoSchedule"}]
    changed = api.patch(f"{NODES}/n", {"spec": {"taints": taints}}, STRATEGIC).body
    assert changed["spec"]["taints"] == taints


def test_a_strategic_patch_merges_containers_by_name_and_finalizers_as_a_set(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("web"))
    more = {"name": "side", "image": "example.com/side:1"}
    patch: Json = {"spec": {"template": {"spec": {"containers": [more]}}}}
    made = api.patch(f"{DEPLOYMENTS}/web", patch, STRATEGIC).body
    names = [container["name"] for container in made["spec"]["template"]["spec"]["containers"]]
    assert names == ["main", "side"]
    for value in ("example.com/a", "example.com/b"):
        made = api.patch(
            f"{DEPLOYMENTS}/web", {"metadata": {"finalizers": [value]}}, STRATEGIC
        ).body
    assert made["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    made = api.patch(f"{DEPLOYMENTS}/web", less, STRATEGIC).body
    assert made["metadata"]["finalizers"] == ["example.com/b"]


def test_a_strategic_patch_retains_named_keys_and_keeps_an_order(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("web"))
    patch: Json = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    made = api.patch(f"{DEPLOYMENTS}/web", patch, STRATEGIC).body
    assert made["spec"]["strategy"] == {"type": "Recreate"}
    order = [{"name": "side"}, {"name": "main"}]
    more = {"name": "side", "image": "example.com/side:1"}
    inner = {"$setElementOrder/containers": order, "containers": [more]}
    made = api.patch(f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": inner}}}, STRATEGIC).body
    names = [container["name"] for container in made["spec"]["template"]["spec"]["containers"]]
    assert names == ["side", "main"]


def test_a_strategic_patch_of_an_item_without_its_key_is_refused(api: Api) -> None:
    api.post(NODES, node("n"))
    patch = {"status": {"conditions": [{"status": "True"}]}}
    assert api.patch(f"{NODES}/n/status", patch, STRATEGIC).status == 400


# -- server-side apply --------------------------------------------------------------------


def apply(api: Api, manager: str, data: dict[str, str], **query: Any) -> Reply:
    body = config_map("m", **data)
    return api.patch(f"{MAPS}/m", body, APPLY, fieldManager=manager, **query)


def test_apply_creates_and_managers_hold_their_own_fields(api: Api) -> None:
    assert apply(api, "one", {"a": "1"}).status == 201
    assert apply(api, "two", {"b": "2"}).body["data"] == {"a": "1", "b": "2"}
    assert apply(api, "one", {"c": "3"}).body["data"] == {"b": "2", "c": "3"}


def test_apply_conflicts_with_another_manager_unless_forced(api: Api) -> None:
    apply(api, "one", {"a": "1"})
    refused = apply(api, "two", {"a": "2"})
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert [(cause["reason"], cause["field"]) for cause in refused.causes] == [
        ("FieldManagerConflict", ".data.a")
    ]
    assert apply(api, "two", {"a": "2"}, force="true").body["data"] == {"a": "2"}
    assert apply(api, "one", {"a": "1"}).status == 409


def test_a_shared_value_is_dropped_with_its_last_holder(api: Api) -> None:
    apply(api, "one", {"a": "1"})
    apply(api, "two", {"a": "1"})
    assert apply(api, "one", {"b": "2"}).body["data"] == {"a": "1", "b": "2"}
    assert apply(api, "two", {"c": "3"}).body["data"] == {"b": "2", "c": "3"}


def test_an_ordinary_write_takes_the_field_from_the_applier(api: Api) -> None:
    apply(api, "one", {"a": "1"})
    api.patch(f"{MAPS}/m", {"data": {"a": "9"}}, fieldManager="editor")
    refused = apply(api, "one", {"a": "1"})
    assert refused.status == 409
    assert "editor" in refused.body["message"]


def test_apply_onto_a_created_object_conflicts_with_its_creator(api: Api) -> None:
    api.post(MAPS, config_map("m", a="1"), fieldManager="creator")
    assert apply(api, "one", {"a": "1", "b": "2"}).status == 200
    assert apply(api, "one", {"a": "5"}).status == 409


def test_apply_needs_a_manager_and_repeating_it_changes_nothing(api: Api) -> None:
    assert api.patch(f"{MAPS}/m", config_map("m"), APPLY).status == 400
    first = apply(api, "one", {"a": "1"})
    assert apply(api, "one", {"a": "1"}).version == first.version


def test_apply_merges_and_drops_keyed_items(api: Api) -> None:
    body = pod("a")
    path = f"{PODS}/a"
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 80}, {"containerPort": 81}]
    assert api.patch(path, body, APPLY, fieldManager="one").status == 201
    body["metadata"]["labels"] = {"x": "1"}
    again = api.patch(path, body, APPLY, fieldManager="one")
    assert again.status == 200
    assert len(again.body["spec"]["containers"][0]["ports"]) == 2
    web = deployment("web")
    containers = web["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": "example.com/side:1"})
    assert api.patch(f"{DEPLOYMENTS}/web", web, APPLY, fieldManager="one").status == 201
    containers.pop()
    made = api.patch(f"{DEPLOYMENTS}/web", web, APPLY, fieldManager="one").body
    assert [container["name"] for container in made["spec"]["template"]["spec"]["containers"]] == [
        "main"
    ]


@pytest.mark.parametrize("text", [b"apiVersion: v1\nkind: ConfigMap\ndata: {a: '1'}\n"])
def test_apply_reads_yaml(api: Api, text: bytes) -> None:
    reply = api.call("PATCH", f"{MAPS}/m", text, APPLY, fieldManager="one")
    assert reply.body["data"] == {"a": "1"}

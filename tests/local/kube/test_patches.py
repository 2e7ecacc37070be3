"""JSON, merge, strategic and apply patches."""

from typing import Any

import pytest

from tests.local.kube.client import (
    APPLY,
    DEPLOYMENTS,
    JSON_PATCH,
    MAPS,
    NODES,
    STRATEGIC,
    Api,
    Json,
    Reply,
    config_map,
    deployment,
    node,
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


def test_apply_creates_and_then_merges_by_force(api: Api) -> None:
    assert apply(api, "one", {"a": "1", "b": "1"}).status == 201
    assert apply(api, "two", {"a": "2"}).body["data"] == {"a": "2", "b": "1"}


def test_apply_merges_and_drops_keyed_items(api: Api) -> None:
    web = deployment("web")
    containers = web["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": "example.com/side:1"})
    assert api.patch(f"{DEPLOYMENTS}/web", web, APPLY, fieldManager="one").status == 201
    containers[:] = [{"name": "side", "image": "example.com/side:2"}]
    made = api.patch(f"{DEPLOYMENTS}/web", web, APPLY, fieldManager="two").body
    found = made["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in found] == ["main", "side"]
    assert found[1]["image"] == "example.com/side:2"
    made = api.patch(f"{DEPLOYMENTS}/web", web, APPLY, fieldManager="one").body
    found = made["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in found] == ["side"]


def test_apply_drops_what_the_same_manager_leaves_out(api: Api) -> None:
    apply(api, "one", {"a": "1", "b": "1"})
    assert apply(api, "one", {"c": "3"}).body["data"] == {"c": "3"}
    apply(api, "two", {"c": "3", "d": "4"})
    assert apply(api, "one", {"e": "5"}).body["data"] == {"c": "3", "d": "4", "e": "5"}


def test_apply_needs_a_manager_and_repeating_it_changes_nothing(api: Api) -> None:
    assert api.patch(f"{MAPS}/m", config_map("m"), APPLY).status == 400
    first = apply(api, "one", {"a": "1"})
    assert apply(api, "one", {"a": "1"}).version == first.version


@pytest.mark.parametrize("text", [b"apiVersion: v1\nkind: ConfigMap\ndata: {a: '1'}\n"])
def test_apply_reads_yaml(api: Api, text: bytes) -> None:
    reply = api.call("PATCH", f"{MAPS}/m", text, APPLY, fieldManager="one")
    assert reply.body["data"] == {"a": "1"}

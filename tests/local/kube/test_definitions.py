"""Custom resources: registration, schema, rules, columns."""

from typing import Any

import pytest

from infra.local.kube.server import EmbeddedKube
from tests.local.kube.client import CRDS, MERGE, STRATEGIC, TABLE, Api, Json, definition

WIDGETS = "/apis/example.dev/v1/widgets"
SCHEMA: Json = {
    "spec": {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "ttl": {"type": "integer", "default": 30},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "word": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "limits": {
                "type": "object",
                "additionalProperties": {"x-kubernetes-int-or-string": True},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "requirements": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key"],
                    "properties": {
                        "key": {"type": "string"},
                        "operator": {"type": "string"},
                        "values": {"type": "array", "items": {"type": "string"}},
                    },
                    "x-kubernetes-validations": [
                        {
                            "rule": "self.operator != 'In' || size(self.values) > 0",
                            "message": "In needs values",
                        }
                    ],
                },
            },
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.color) || self.color != 'red' || self.size < 5",
                "message": "red widgets are small",
            },
        ],
    },
    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


@pytest.fixture
def widgets(api: Api) -> Api:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    reply = api.post(CRDS, definition(SCHEMA, additionalPrinterColumns=columns))
    assert reply.status == 201
    return api


def widget(name: str = "w", **spec: Any) -> Json:
    head: Json = {"apiVersion": "example.dev/v1", "kind": "Widget"}
    return head | {"metadata": {"name": name}, "spec": {"size": 1, **spec}}


def test_lists_and_watches_of_a_new_definition_are_put_off() -> None:
    with EmbeddedKube(initializing_seconds=60) as kube:
        api = Api(kube.url)
        assert api.post(CRDS, definition(SCHEMA)).status == 201
        for query in ({}, {"watch": "true"}):
            refused = api.get(WIDGETS, **query)
            assert refused.status == 429
            assert refused.body["reason"] == "TooManyRequests"
            assert refused.body["message"] == "storage is (re)initializing"
            assert refused.headers["retry-after"] == "1"
        assert api.get(f"{WIDGETS}/none").status == 404
        api.close()


def test_a_definition_is_established_and_discovered(widgets: Api) -> None:
    status = widgets.get(f"{CRDS}/widgets.example.dev").body["status"]
    assert {condition["type"]: condition["status"] for condition in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    resources = widgets.get("/apis/example.dev/v1").body["resources"]
    assert [resource["name"] for resource in resources] == ["widgets", "widgets/status"]
    assert resources[0]["shortNames"] == ["wd"]


def test_defaults_are_filled_in_and_unknown_fields_pruned(widgets: Api) -> None:
    reply = widgets.post(WIDGETS, widget(unknown=1, free={"kept": True}))
    assert reply.body["spec"] == {"size": 1, "ttl": 30, "free": {"kept": True}}
    assert 'unknown field \\"spec.unknown\\"' in reply.headers["warning"]
    assert widgets.post(WIDGETS, widget("v", unknown=1), fieldValidation="Strict").status == 400


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"size": 0}, "spec.size"),
        ({"size": 11}, "spec.size"),
        ({"size": "1"}, "spec.size"),
        ({"size": True}, "spec.size"),
        ({"size": None}, "spec.size"),
        ({"color": "green"}, "spec.color"),
        ({"word": "ABC"}, "spec.word"),
        ({"word": "abcdef"}, "spec.word"),
        ({"limits": {"cpu": 1.5}}, "spec.limits.cpu"),
        ({"requirements": [{"key": "a"}, {}]}, "spec.requirements[1].key"),
    ],
)
def test_what_the_schema_forbids_is_invalid(widgets: Api, spec: Json, field: str) -> None:
    reply = widgets.post(WIDGETS, widget(**spec))
    assert reply.status == 422
    assert [cause["field"] for cause in reply.causes] == [field]


def test_a_required_field_must_be_there(widgets: Api) -> None:
    reply = widgets.post(WIDGETS, {"metadata": {"name": "w"}, "spec": {}})
    assert [(cause["reason"], cause["field"]) for cause in reply.causes] == [
        ("FieldValueRequired", "spec.size")
    ]


def test_quantities_may_be_numbers_or_text(widgets: Api) -> None:
    limits = {"cpu": 1000, "memory": "10Gi"}
    assert widgets.post(WIDGETS, widget(limits=limits)).body["spec"]["limits"] == limits


def test_rules_are_evaluated_with_their_messages(widgets: Api) -> None:
    reply = widgets.post(WIDGETS, widget(color="red", size=7))
    assert reply.status == 422
    assert "red widgets are small" in reply.body["message"]
    assert reply.causes[0]["field"] == "spec"
    bad = [{"key": "a", "operator": "In", "values": []}]
    reply = widgets.post(WIDGETS, widget(requirements=bad))
    assert reply.causes[0]["field"] == "spec.requirements[0]"
    good = [{"key": "a", "operator": "In", "values": ["b"]}]
    assert widgets.post(WIDGETS, widget(requirements=good)).status == 201


def test_status_is_apart_and_does_not_count_as_a_generation(widgets: Api) -> None:
    widgets.post(WIDGETS, widget() | {"status": {"x": 0}})
    assert "status" not in widgets.get(f"{WIDGETS}/w").body
    both: Json = {"status": {"x": 1}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}
    changed = widgets.patch(f"{WIDGETS}/w/status", both).body
    assert changed["status"] == {"x": 1}
    assert changed["spec"]["size"] == 1
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 1
    changed = widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 2}}).body
    assert changed["metadata"]["generation"] == 2


def test_an_update_needs_a_version_and_a_strategic_patch_is_not_served(widgets: Api) -> None:
    widgets.post(WIDGETS, widget())
    assert widgets.put(f"{WIDGETS}/w", widget(size=2)).status == 422
    assert widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 2}}, STRATEGIC).status == 415
    assert widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 2}}, MERGE).status == 200


def test_items_of_a_list_name_their_kind_and_columns_come_from_the_definition(
    widgets: Api,
) -> None:
    widgets.post(WIDGETS, widget(size=4))
    listed = widgets.get(WIDGETS).body
    assert listed["kind"] == "WidgetList"
    assert listed["items"][0]["kind"] == "Widget"
    table = widgets.get(WIDGETS, accept=TABLE).body
    assert [column_definition["name"] for column_definition in table["columnDefinitions"]] == [
        "Name",
        "Size",
    ]
    assert table["rows"][0]["cells"] == ["w", 4]


def test_a_changed_definition_changes_what_is_served(widgets: Api) -> None:
    bigger = {"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec"}
    patch = [bigger | {"value": {"type": "object", "properties": {"size": {"type": "string"}}}}]
    path = f"{CRDS}/widgets.example.dev"
    assert widgets.call("PATCH", path, patch, "application/json-patch+json").status == 200
    assert widgets.post(WIDGETS, widget(size="large")).status == 201


def test_deleting_a_definition_drops_its_objects(widgets: Api) -> None:
    widgets.post(WIDGETS, widget())
    widgets.delete(f"{CRDS}/widgets.example.dev")
    assert widgets.get(WIDGETS).status == 404
    widgets.post(CRDS, definition(SCHEMA))
    assert widgets.get(WIDGETS).names == []


def test_a_definition_that_cannot_be_served_is_refused(api: Api) -> None:
    wrong_name = definition({})
    wrong_name["metadata"]["name"] = "other.example.dev"
    assert api.post(CRDS, wrong_name).status == 422
    rule = {"type": "object", "x-kubernetes-validations": [{"rule": "self.a =="}]}
    assert api.post(CRDS, definition({"spec": rule})).status == 422
    unstored = definition({}, storage=False)
    assert api.post(CRDS, unstored).status == 422

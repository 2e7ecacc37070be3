"""OpenAPI v3, as much of it as kubectl reads: patch operations and the fields of each kind."""

from typing import Any

import orjson
from aiohttp import web
from kubernetes import client

from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Kinds, Resource
from infra.local.kube.schemas.fields import FieldType, types

_VERSION = "v1.35.4"
_PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_SCALARS: dict[str, JsonObject] = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "b": {"type": "boolean"},
    "n": {"type": "number"},
    "q": {"type": "string"},
    "x": {"type": "string", "format": "int-or-string"},
    "*": {"type": "object"},
}
_PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json",
            "apply-patch+yaml")  # fmt: skip


def _schema(field: FieldType) -> JsonObject:
    if field.is_list:
        found: JsonObject = {"type": "array", "items": _schema(field.item or FieldType(code="*"))}
        if field.merge_key:
            found["x-kubernetes-patch-strategy"] = "merge"
        if field.merge_key not in {"", "="}:
            found["x-kubernetes-patch-merge-key"] = field.merge_key
        if field.list_keys:
            found["x-kubernetes-list-type"] = "map"
            found["x-kubernetes-list-map-keys"] = list(field.list_keys)
        return found
    if field.is_map:
        return {"type": "object", "additionalProperties": _schema(field.item or FieldType())}
    if field.code in _SCALARS:
        return dict(_SCALARS[field.code])
    found = {"allOf": [{"$ref": f"#/components/schemas/{field.code}"}], "default": {}}
    if field.retains_keys:
        found["x-kubernetes-patch-strategy"] = "retainKeys"
    return found


def _described(name: str) -> tuple[str, dict[str, str]]:
    """Return what Kubernetes says of a type and of its fields, as its client has it.

    The client has no texts of fields that are objects: those get the text of their type.
    """
    group, *rest, kind = name.split(".")
    version = (rest[0] if rest else "v2" if group == "autoscaling" else "v1").title()
    for model in (version + kind, f"V1{kind}", f"{group.title()}{version}{kind}"):
        if (found := getattr(client, model, None)) is not None:
            texts = {
                field.serialization_alias or key: field.description or ""
                for key, field in found.model_fields.items()
            }
            return (found.__doc__ or "").partition("Attributes:")[0].strip(), texts
    return "", {}


def _collect(name: str, schemas: JsonObject) -> None:
    if name in schemas:
        return
    fields = types()[name]
    said, of_fields = _described(name)
    properties = {key: _schema(field) for key, field in fields.items()}
    for key, field in fields.items():
        text = of_fields.get(key) or (_described(field.code)[0] if "." in field.code else "")
        if text:
            properties[key]["description"] = text
    schemas[name] = {"type": "object", "description": said, "properties": properties}
    for field in fields.values():
        inner = field
        while inner.item is not None:
            inner = inner.item
        if inner.code not in _SCALARS:
            _collect(inner.code, schemas)


def _path(resource: Resource) -> str:
    start = "/apis/" + resource.api_version if resource.group else "/api/v1"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"{start}{scope}/{resource.plural}/{{name}}"


def _operations(resource: Resource) -> JsonObject:
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    chosen = _PATCHES if resource.custom is None else (*_PATCHES[:2], _PATCHES[3])
    content: JsonObject = {
        f"application/{value}": {"schema": {"type": "object"}} for value in chosen
    }
    names = ("dryRun", "fieldManager", "fieldValidation", "force")
    return {
        "patch": {
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": gvk,
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "string"}} for name in names
            ],
            "requestBody": {"content": content},
            "responses": {"200": {"description": "OK"}},
        }
    }


def index(kinds: Kinds) -> JsonObject:
    names = [
        f"apis/{group}/{version}" if group else f"api/{version}"
        for group, versions in kinds.groups().items()
        for version in versions
    ]
    # The number of resources changes with every definition, and with it the address.
    mark = len(kinds.all())
    return {
        "paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={mark}"} for name in names}
    }


def empty_v2(accept: str) -> web.Response:
    """Return an OpenAPI v2 document of nothing: clients that find a kind in v3 never ask for it.

    kubectl asks for kinds that are in no v3 document, to validate them, and then says that there
    is no such kind. An empty protobuf message is an empty document.
    """
    if "protobuf" in accept:
        return web.Response(body=b"", headers={"Content-Type": _PROTOBUF_V2})
    info = {"title": "Kubernetes", "version": _VERSION}
    body = {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}
    return web.Response(body=orjson.dumps(body), headers={"Content-Type": "application/json"})


def document(kinds: Kinds, name: str) -> JsonObject | None:
    """Return the document of one group version, such as `apis/apps/v1`; None if there is none."""
    chosen = [
        resource
        for resource in kinds.all()
        if name == (f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}")
    ]
    if not chosen:
        return None
    schemas: JsonObject = {}
    _collect("meta.ObjectMeta", schemas)
    for resource in chosen:
        gvk = [{"group": resource.group, "version": resource.version, "kind": resource.kind}]
        key = resource.type_name or f"custom.{resource.kind}"
        if resource.custom is None:
            _collect(key, schemas)
        else:
            schemas[key] = _custom(resource)
        schemas[key]["x-kubernetes-group-version-kind"] = gvk
    paths = {_path(resource): _operations(resource) for resource in chosen}
    info = {"title": "Kubernetes", "version": _VERSION}
    head: JsonObject = {"openapi": "3.0.0", "info": info}
    return head | {"paths": paths, "components": {"schemas": schemas}}


def _custom(resource: Resource) -> JsonObject:
    assert resource.custom is not None
    schema: dict[str, Any] = (resource.custom.get("schema") or {}).get("openAPIV3Schema") or {}
    properties = dict(schema.get("properties") or {})
    properties |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": "#/components/schemas/meta.ObjectMeta"}], "default": {}},
    }
    return {**schema, "type": "object", "properties": properties}

"""The definitions of custom resources are made from their models, as API servers take them."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from shared.manifests.api.parts import CustomResource
from tools import house, make_access, make_crds

KINDS = make_crds.kinds()


def _schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _schemas(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _schemas(schema[key], f"{path}[{key}]")


def _made_files() -> dict[str, str]:
    texts = {path: (house.ROOT / path).read_text() for path in house.tracked("infra/*.yaml")}
    return {path: text for path, text in texts.items() if text.startswith(house.MADE_BY)}


def test_each_manifest_that_says_it_is_made_is_as_it_would_be_made_now() -> None:
    made = {**make_crds.manifests(), "access.yaml": make_access.manifest()}
    assert _made_files() == {f"infra/cluster/{name}": text for name, text in made.items()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_schema_is_structural(kind: type[CustomResource]) -> None:
    (version,) = make_crds.definition(kind)["spec"]["versions"]
    for path, schema in _schemas(version["schema"]["openAPIV3Schema"]):
        assert not {"$ref", "$defs", "allOf", "oneOf", "title", "default", "const"} & set(schema)
        if schema.get("x-kubernetes-int-or-string"):
            assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        else:
            assert "anyOf" not in schema, path
            assert schema["type"] in {"object", "array", "string", "integer", "boolean"}, path
        assert not {"properties", "additionalProperties"} <= set(schema), path


def test_a_value_that_may_be_absent_has_the_type_of_its_value() -> None:
    nullable = {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}], "default": None}
    part = {"type": "object", "title": "Part", "description": "A part.", "properties": {}}

    assert make_crds.structural({**nullable, "description": "Its own"}, {"Part": part}) == {
        "type": "object",
        "properties": {},
        "description": "Its own",
    }


def test_manifests_hold_no_anchors() -> None:
    for text in make_crds.manifests().values():
        assert "&id" not in text
        assert yaml.safe_load(text)["kind"] == "CustomResourceDefinition"

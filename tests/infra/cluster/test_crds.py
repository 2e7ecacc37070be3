"""The definitions of custom resources are made from their models, as API servers take them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.manifests.api.parts import CustomResource
from tools.manifests import access, crds

KINDS = crds.kinds()
FUNCTIONS = {"has", "all", "exists", "size", "matches", "startsWith"}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def _schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _schemas(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _schemas(schema[key], f"{path}[{key}]")


def _document(kind: type[CustomResource]) -> dict[str, Any]:
    (version,) = crds.definition(kind)["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def _made_files() -> dict[str, str]:
    texts = {path.as_posix(): path.read_text() for path in Path("infra").rglob("*.yaml")}
    return {path: text for path, text in texts.items() if text.startswith("# Made by `make ")}


def test_each_manifest_that_says_it_is_made_is_as_it_would_be_made_now() -> None:
    made = {**crds.manifests(), "access.yaml": access.manifest()}
    assert _made_files() == {f"infra/cluster/{name}": text for name, text in made.items()}


@each_kind
def test_a_schema_is_structural(kind: type[CustomResource]) -> None:
    for path, schema in _schemas(_document(kind)):
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

    assert crds.structural({**nullable, "description": "Its own"}, {"Part": part}) == {
        "type": "object",
        "properties": {},
        "description": "Its own",
    }


def test_manifests_hold_no_anchors() -> None:
    for text in crds.manifests().values():
        assert "&id" not in text
        assert yaml.safe_load(text)["kind"] == "CustomResourceDefinition"


@each_kind
def test_whatever_a_rule_walks_over_has_a_bound(kind: type[CustomResource]) -> None:
    # API servers estimate the cost of each rule from these bounds and refuse the CRD otherwise.
    for path, schema in _schemas(_document(kind)["properties"]["spec"]):
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


def test_the_walk_over_the_values_of_requirements_is_cheap_enough() -> None:
    (kind,) = (entry for entry in KINDS if entry.definition.kind == "Provisioner")
    requirements = _document(kind)["properties"]["spec"]["properties"]["requirements"]
    values = requirements["items"]["properties"]["values"]
    # Cost of one `matches` on a value (bytes / 10 x pattern / 4) and of the walk around it.
    of_a_value = (4 * values["items"]["maxLength"] // 10 + 1) * 4 + 6
    assert requirements["maxItems"] * values["maxItems"] * of_a_value < 10_000_000


@each_kind
def test_rules_use_the_small_part_of_cel_they_promise(kind: type[CustomResource]) -> None:
    for path, schema in _schemas(_document(kind)):
        for rule in schema.get("x-kubernetes-validations", ()):
            bare = re.sub(r"'[^']*'", "''", rule["rule"])
            assert set(re.findall(r"([A-Za-z_]+)\(", bare)) <= FUNCTIONS, path
            assert not re.search(r"[?\\]|\boldSelf\b", bare), path
            assert rule["message"], path


def test_kubectl_finds_the_kinds_under_their_names_and_prints_their_state() -> None:
    shown = {}
    for kind in KINDS:
        found = crds.definition(kind)
        (version,) = found["spec"]["versions"]
        columns = [column["name"] for column in version["additionalPrinterColumns"]]
        shown[found["metadata"]["name"]] = (version["name"], columns)
        assert found["spec"]["scope"] == "Cluster"
        assert version["subresources"] == {"status": {}}
    assert shown == {
        "awsnodetemplates.karpenter.k8s.aws": ("v1alpha1", ["Ready", "Age", "Family"]),
        "ec2nodeclasses.karpenter.k8s.aws": ("v1", ["Ready", "Age", "Role"]),
        "nodepools.karpenter.sh": (
            "v1",
            ["NodeClass", "Nodes", "Ready", "Age", "Weight", "CPU", "Memory"],
        ),
        "provisioners.karpenter.sh": (
            "v1alpha5",
            ["Ready", "Reason", "Nodes", "CPU", "Memory", "$/h", "Age", "Weight"],
        ),
    }

"""The CRD: its shape."""

import re
from collections.abc import Iterator
from typing import Any

from shared.model.kubernetes.taints import Effect
from shared.model.requirements import Operator
from tests.infra.cluster.provisioner_documents import CRD, SCHEMA, SPEC, VERSION

FUNCTIONS = {"has", "all", "exists", "size", "matches", "startsWith"}


def _schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _schemas(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _schemas(schema[key], f"{path}[{key}]")


def _rules() -> list[tuple[str, dict[str, Any]]]:
    return [
        (path, rule)
        for path, schema in _schemas(SCHEMA)
        for rule in schema.get("x-kubernetes-validations", ())
    ]


def test_it_is_the_kind_the_manifests_name() -> None:
    spec = CRD["spec"]

    assert CRD["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert (spec["group"], VERSION["name"], spec["scope"]) == (
        "karpenter.sh",
        "v1alpha5",
        "Cluster",
    )
    assert spec["names"]["categories"] == ["karpenter"]
    assert VERSION["subresources"] == {"status": {}}
    assert [
        additional_printer_column["name"]
        for additional_printer_column in VERSION["additionalPrinterColumns"]
    ] == [
        "Active",
        "Reason",
        "Weight",
        "Age",
    ]


def test_every_part_of_the_schema_has_a_type() -> None:
    for path, schema in _schemas(SCHEMA):
        if schema.get("x-kubernetes-int-or-string"):
            assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        else:
            assert schema.get("type") in {
                "object",
                "array",
                "string",
                "integer",
                "boolean",
            }, path
        assert not {"properties", "additionalProperties"} <= set(schema), path


def test_whatever_a_rule_walks_over_has_a_bound() -> None:
    # API servers estimate the cost of each rule from these bounds and refuse the CRD otherwise.
    for path, schema in _schemas(SPEC):
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path
    requirement = SPEC["properties"]["requirements"]
    values = requirement["items"]["properties"]["values"]
    # Cost of one `matches` on a value (bytes / 10 x pattern / 4) and of the walk around it.
    one_value = (4 * values["items"]["maxLength"] // 10 + 1) * 4 + 6
    assert requirement["maxItems"] * values["maxItems"] * one_value < 10_000_000


def test_rules_use_the_small_part_of_cel_they_promise() -> None:
    for path, rule in _rules():
        bare = re.sub(r"'[^']*'", "''", rule["rule"])
        called = set(re.findall(r"([A-Za-z_]+)\(", bare))
        assert called <= FUNCTIONS, path
        assert not re.search(r"[?\\]|\boldSelf\b", bare), path
        assert rule["message"], path


def test_choices_are_those_of_the_model() -> None:
    requirement = SPEC["properties"]["requirements"]["items"]["properties"]

    assert set(requirement["operator"]["enum"]) == set(Operator)
    for field in ("taints", "startupTaints"):
        taint = SPEC["properties"][field]["items"]["properties"]
        assert set(taint["effect"]["enum"]) == set(Effect)

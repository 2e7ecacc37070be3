"""Writes the definitions of the custom resources, from their models in shared/manifests/api.

    python -m tools.manifests.crds

API servers take structural schemas only: no references, no alternatives with null.
"""

import importlib
import json
import pkgutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import ModelSchema

from shared.manifests import api
from shared.manifests.api.parts import CustomResource, Part, ValidationRule

FOLDER: Final = Path(__file__).parents[2] / "infra" / "cluster"
MADE_BY: Final = "# Made by `make crds` from shared/manifests/api.\n"
Schema = dict[str, Any]
_INT32_MOST: Final = 2**31 - 1
_REFERENCE: Final = "#/$defs/"
# What pydantic says that a structural schema may not say, or says already.
_LEFT_OUT: Final = ("$defs", "default", "title")
_RULES: Final = "x-kubernetes-validations"
_UNCHECKED: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class WithRefused(GenerateJsonSchema):
    """Makes schemas that know the fields of a part that are refused, too."""

    def model_schema(self, schema: ModelSchema) -> dict[str, Any]:
        """Return the schema of a part."""
        found = super().model_schema(schema)
        part = schema["cls"]
        assert issubclass(part, Part)
        if part.refused:
            known = {name: _untyped(kind) for name, kind in part.refused.items()}
            found["properties"] = {**found["properties"], **known}
            found[_RULES] = [
                ValidationRule(f"{name}: {part.advice[name]}", f"!has(self.{name})").as_schema
                for name in known
            ]
        return found


def _untyped(kind: str) -> Schema:
    """Return the schema of a value of which only the type is checked."""
    if kind == "array":
        return {"type": "array", "maxItems": 1000, "items": dict(_UNCHECKED)}
    return dict(_UNCHECKED) if kind == "object" else {"type": kind}


def kinds() -> list[type[CustomResource]]:
    """Return the model of each kind that Dovetail installs, in the order of their names."""
    modules = {
        importlib.import_module(f"{api.__name__}.{module.name}").__name__
        for module in pkgutil.iter_modules(api.__path__)
    }
    found = [kind for kind in CustomResource.__subclasses__() if kind.__module__ in modules]
    return sorted(found, key=lambda kind: kind.__name__)


def definition(kind: type[CustomResource]) -> Schema:
    """Return the CustomResourceDefinition of a kind."""
    names = kind.definition
    group, version_name = names.api_version.split("/")
    shown = [
        {
            "name": column.name,
            "type": column.type,
            **({"description": column.description} if column.description else {}),
            "jsonPath": column.path,
            **({"priority": 1} if column.wide else {}),
        }
        for column in names.columns
    ]
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    # As with Karpenter: the age is the last that is shown without `-o wide`.
    narrow = [entry for entry, column in zip(shown, names.columns, strict=True) if not column.wide]
    columns = [*narrow, age, *(entry for entry in shown if entry not in narrow)]
    version = {
        "name": version_name,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": _document(kind)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names.plural}.{group}",
            "labels": {"app.kubernetes.io/name": "dovetail"},
        },
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {
                "kind": names.kind,
                "listKind": f"{names.kind}List",
                "plural": names.plural,
                "singular": names.kind.lower(),
                **({"shortNames": list(names.short_names)} if names.short_names else {}),
                "categories": ["karpenter"],
            },
            "versions": [version],
        },
    }


def _document(kind: type[CustomResource]) -> Schema:
    """Return the schema of whole documents.

    Fields of spec beside it are known only to be refused: unknown ones would be dropped silently.
    """
    read = kind.model_json_schema(schema_generator=WithRefused)
    schema = structural(read, read.get("$defs", {}))
    spec, status = (schema["properties"][name] for name in ("spec", "status"))
    # Those that are refused anywhere are no fields of spec.
    refused = kind.model_fields["spec"].annotation.refused  # type: ignore[union-attr]
    beside = {
        name: _untyped(inner["type"])
        for name, inner in sorted(spec["properties"].items())
        if name not in refused
    }
    rules = [
        {
            "message": f"{name} is outside spec: move it to spec.{name}",
            "rule": f"!has(self.{name})",
        }
        for name in beside
    ]
    return {
        "description": kind.definition.description,
        "type": "object",
        "required": ["spec"],
        _RULES: [*(rule.as_schema for rule in kind.definition.rules), *rules],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            **beside,
            "spec": spec,
            "status": status,
        },
    }


def structural(schema: Mapping[str, Any], parts: Mapping[str, Schema]) -> Schema:
    """Return a schema without references, alternatives with null and defaults.

    Args:
        parts: The schemas that references name.
    """
    found = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "$ref" in found:
        part = parts[found.pop("$ref").removeprefix(_REFERENCE)]
        return structural(_joined(part, found), parts)
    if "anyOf" in found and not found.get("x-kubernetes-int-or-string"):
        (kept,) = (entry for entry in found.pop("anyOf") if entry != {"type": "null"})
        return structural({**kept, **found}, parts)
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if found.get("type") == "object":
        # How long a map may be is no length of a text.
        found = {key.replace("Length", "Properties"): value for key, value in found.items()}
    if isinstance(found.get("additionalProperties"), bool):
        del found["additionalProperties"]
    if found.get("format") == "int32" and found.get("maximum") == _INT32_MOST:
        del found["maximum"]
    return _within(found, parts)


def _within(found: Schema, parts: Mapping[str, Schema]) -> Schema:
    """Return a schema whose inner schemas are structural."""
    if "properties" in found:
        properties = found["properties"].items()
        found["properties"] = {name: structural(inner, parts) for name, inner in properties}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = structural(found[key], parts)
    return found


def _joined(part: Schema, field: Schema) -> Schema:
    """Return the schema of a field that is a part, with the rules of both.

    The description is of the field; that of the part is for readers of the model.
    """
    rules = [*part.get(_RULES, ()), *field.get(_RULES, ())]
    inner = {key: value for key, value in part.items() if key != "description"}
    return {**inner, **field, **({_RULES: rules} if rules else {})}


def manifests() -> dict[str, str]:
    """Return the text of each manifest by its file's name."""
    found = {}
    for kind in kinds():
        # A copy in which no two places share an object: YAML would write the second as an alias.
        copied = json.loads(json.dumps(definition(kind)))
        text = yaml.safe_dump(copied, sort_keys=False, width=100, allow_unicode=True)
        found[kind.definition.file] = MADE_BY + text
    return found


def main() -> int:
    """Write the manifests."""
    for name, text in manifests().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the local API server's table of fields from the JSON schema of the Kubernetes API.

    python -m tools.make_field_table DEFINITIONS > infra/local/kube/schemas/field_table.txt

DEFINITIONS is the file `_definitions.json` inside the wheel `kubernetes-validate`.
"""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from infra.local.kube.kinds import built_in, type_name

_SCALARS = {"string": "s", "integer": "i", "boolean": "b", "number": "n", "object": "*"}
_OPAQUE = {
    "pkg.api.resource.Quantity": "q",
    "pkg.util.intstr.IntOrString": "x",
    "meta.v1.Time": "s",
    "meta.v1.MicroTime": "s",
    "meta.v1.FieldsV1": "*",
    "pkg.runtime.RawExtension": "*",
    "apiextensions.v1.JSONSchemaProps": "*",
}
_EXTRA = ["autoscaling.v1.Scale", "policy.v1.Eviction", "core.v1.Binding", "meta.v1.DeleteOptions"]


def _short(name: str) -> str:
    group, version, kind = name.split(".")[-3:]
    return type_name(group, version, kind)


def _base(schema: dict[str, Any], wanted: list[str]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        for end, code in _OPAQUE.items():
            if name.endswith(end):
                return code
        wanted.append(name)
        return _short(name)
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = next(entry for entry in kind if entry != "null")
    if kind == "array":
        return "[]" + _base(schema["items"], wanted)
    if kind == "object" and schema.get("additionalProperties"):
        return "{}" + _base(schema["additionalProperties"], wanted)
    return _SCALARS[kind]


def _field(schema: dict[str, Any], wanted: list[str]) -> str:
    text = _base(schema, wanted)
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    if "merge" in strategy:
        text += "/" + schema.get("x-kubernetes-patch-merge-key", "=")
    if keys := schema.get("x-kubernetes-list-map-keys"):
        text += "|" + ",".join(keys)
    return text + ("~" if "retainKeys" in strategy else "")


def main(path: str) -> None:
    """Print the table for the definitions in a file."""
    definitions = json.loads(Path(path).read_text(encoding="utf-8"))["$defs"]
    ends = [f".{(r.group or 'core').split('.')[0]}.{r.version}.{r.kind}" for r in built_in()]
    ends += [f".{name}" for name in _EXTRA]
    wanted = [name for name in definitions if name.endswith(tuple(ends))]
    lines: dict[str, str] = {}
    while wanted:
        name = wanted.pop()
        if _short(name) in lines:
            continue
        fields = definitions[name].get("properties", {})
        pairs = [f"{key}={_field(value, wanted)}" for key, value in sorted(fields.items())]
        text = f"{_short(name)}: {' '.join(pairs)}"
        lines[_short(name)] = "\n".join(
            textwrap.wrap(
                text, 99, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False
            )
        )
    print("\n".join(lines[name] for name in sorted(lines)))


if __name__ == "__main__":
    main(sys.argv[1])

"""Structural schemas: pruning, defaults and validation of values."""

import json
import re
from collections.abc import Iterable
from typing import Any

from infra.local.kube.errors import Cause, JsonObject

IMPLICIT = ("apiVersion", "kind", "metadata")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_FORMATS = {
    "date-time": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
    "duration": r"^[+-]?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$",
}


def inner_schema(schema: JsonObject, key: str) -> JsonObject | None:
    """Return the schema of a property, or of any additional one; None when there is none."""
    inner: Any = (schema.get("properties") or {}).get(key)
    if inner is None:
        inner = schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else None


def prune(value: Any, schema: JsonObject, path: str, unknown: list[str]) -> None:
    """Drop what the schema does not name, in place; add the dropped paths to `unknown`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            prune(item, schema.get("items") or {}, f"{path}[{index}]", unknown)
    if not isinstance(value, dict):
        return
    free = schema.get(_PRESERVE) or schema.get("additionalProperties") is True
    for key in list(value):
        inner = inner_schema(schema, key)
        if inner is not None:
            if value[key] is None and "default" in inner:
                del value[key]
                continue
            prune(value[key], inner, f"{path}.{key}", unknown)
        elif not free:
            unknown.append(f"{path}.{key}".lstrip("."))
            del value[key]


def default(value: Any, schema: JsonObject) -> None:
    """Fill in the defaults of the schema, in place."""
    if isinstance(value, list):
        for item in value:
            default(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    for key, inner in (schema.get("properties") or {}).items():
        if key not in value and "default" in inner:
            value[key] = _copy(inner["default"])
    for key, item in value.items():
        default(item, inner_schema(schema, key) or {})


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def check(value: Any, schema: JsonObject, path: str) -> Iterable[Cause]:
    """Return how a value breaks a schema, rules aside."""
    field = path.lstrip(".")
    if value is None and schema.get("nullable"):
        return
    if not _has_type(value, schema):
        word = {dict: "object", list: "array", str: "string", bool: "boolean"}.get(
            type(value), "null" if value is None else "number"
        )
        message = f'Invalid value: "{word}": must be of type {schema.get("type")}: "{word}"'
        yield "FieldValueTypeInvalid", f"{field} in body {message}", field
        return
    if "enum" in schema and value not in schema["enum"]:
        listed = ", ".join(f'"{entry}"' for entry in schema["enum"])
        yield (
            "FieldValueNotSupported",
            f'Unsupported value: "{value}": supported values: {listed}',
            field,
        )
    for why in _broken_limits(value, schema):
        yield (
            "FieldValueInvalid",
            f"Invalid value: {json.dumps(value)}: {field} in body {why}",
            field,
        )
    yield from _check_inner(value, schema, path)
    yield from _check_combined(value, schema, path)


def _check_inner(value: Any, schema: JsonObject, path: str) -> Iterable[Cause]:
    if isinstance(value, dict):
        for key in schema.get("required") or ():
            if key not in value:
                yield "FieldValueRequired", "Required value", f"{path}.{key}".lstrip(".")
        for key, inner in value.items():
            if (sub := inner_schema(schema, key)) and not (path == "" and key in IMPLICIT):
                yield from check(inner, sub, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check(item, schema.get("items") or {}, f"{path}[{index}]")


def _check_combined(value: Any, schema: JsonObject, path: str) -> Iterable[Cause]:
    field = path.lstrip(".")
    options = schema.get("anyOf") or ()
    if options and all(list(check(value, entry, path)) for entry in options):
        yield "FieldValueInvalid", "Invalid value: must validate one of the alternatives", field


def _has_type(value: Any, schema: JsonObject) -> bool:
    if schema.get(_INT_OR_STRING):
        return type(value) in {int, str}
    kind = schema.get("type")
    return kind is None or type(value) in _TYPES[kind]


def _broken_limits(value: Any, schema: JsonObject) -> Iterable[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _broken_bounds(value, schema)
    sizes: dict[type, str] = {str: "Length", list: "Items", dict: "Properties"}
    if word := sizes.get(type(value)):
        if len(value) < schema.get(f"min{word}", 0):
            yield f"should have at least {schema[f'min{word}']} {word.lower()}"
        if len(value) > schema.get(f"max{word}", len(value)):
            yield f"should have at most {schema[f'max{word}']} {word.lower()}"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"should match '{schema['pattern']}'"
        known = _FORMATS.get(schema.get("format", ""))
        if known and not re.match(known, value):
            yield f"must be of type {schema['format']}"
    if isinstance(value, list) and schema.get("x-kubernetes-list-type") in {"set", "map"}:
        keys = schema.get("x-kubernetes-list-map-keys")
        seen = [str([item.get(key) for key in keys]) if keys else str(item) for item in value]
        if len(set(seen)) != len(seen):
            yield "must not contain duplicates"


def _broken_bounds(value: float, schema: JsonObject) -> Iterable[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and value < low:
        yield f"should be greater than or equal to {low}"
    if high is not None and value > high:
        yield f"should be less than or equal to {high}"

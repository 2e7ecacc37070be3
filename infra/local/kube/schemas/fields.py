"""Types of built-in fields: look-up for patches, and the decoding of what comes in.

They are in `field_table.txt`, which `tools/make_field_table.py` writes. One type a line: its name,
then `field=type` pairs. Types: s string, i integer, n number, b boolean, q quantity, x integer or
string, * anything, otherwise the name of a type; `[]` before it means a list, `{}` a map. `/key`
after it: a strategic merge patch merges the items by this key (`/=`: merges plain values);
`|a,b`: keys of an item for server-side apply; `~`: the patch may retain keys.

Source: OpenAPI schema of Kubernetes 1.35 (Apache-2.0), as packed in kubernetes-validate 1.37.0.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from infra.local.kube.errors import JsonObject, bad_request
from infra.local.kube.kinds import Resource

_QUANTITY = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$")
_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "s": ((str,), "string"),
    "i": ((int,), "integer"),
    "b": ((bool,), "boolean"),
    "n": ((int, float), "number"),
    "x": ((int, str), "integer or string"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    """The type of one field.

    Attributes:
        code: A scalar code of the table, or the name of a type; empty for lists and maps.
        item: Type of the items of a list or the values of a map.
        merge_key: Strategic merge: key of the items, `=` for plain values, empty for replace.
        list_keys: Server-side apply: keys that identify an item.
        retains_keys: Whether a strategic patch may say which keys to retain.
    """

    code: str = ""
    item: "FieldType | None" = None
    is_list: bool = False
    merge_key: str = ""
    list_keys: tuple[str, ...] = ()
    retains_keys: bool = False

    @property
    def is_map(self) -> bool:
        """Whether it is a map with free keys."""
        return self.item is not None and not self.is_list


OPAQUE = FieldType(code="*")


def _parse_type(text: str) -> FieldType:
    match = re.fullmatch(r"([^/|~]+)(?:/([^|~]+))?(?:\|([^~]+))?(~)?", text)
    assert match is not None, text
    base, merge_key, keys, retains = match.groups()
    extra: dict[str, Any] = {
        "merge_key": merge_key or "",
        "list_keys": tuple(keys.split(",")) if keys else (),
        "retains_keys": retains is not None,
    }
    if base.startswith("[]"):
        return FieldType(item=_parse_type(base[2:]), is_list=True, **extra)
    if base.startswith("{}"):
        return FieldType(item=_parse_type(base[2:]), **extra)
    return FieldType(code=base, **extra)


@cache
def types() -> dict[str, dict[str, FieldType]]:
    found = {}
    table = Path(__file__).with_name("field_table.txt").read_text(encoding="utf-8")
    for line in table.strip().replace("\n ", " ").split("\n"):
        name, _, pairs = line.partition(":")
        split = (pair.split("=", 1) for pair in pairs.split())
        found[name] = {key: _parse_type(text) for key, text in split}
    return found


def root_type(resource: Resource) -> FieldType:
    """Return the type of a whole object; metadata only is known of custom resources."""
    return FieldType(code=resource.type_name or "custom")


_CUSTOM = {"metadata": FieldType(code="meta.ObjectMeta")}


def field_of(parent: FieldType, key: str) -> FieldType:
    """Return the type of a field inside an object or map; opaque when nothing is known."""
    if parent.is_map:
        return parent.item or OPAQUE
    fields = _CUSTOM if parent.code == "custom" else types().get(parent.code, {})
    return fields.get(key, OPAQUE)


def clean(obj: JsonObject, resource: Resource) -> list[str]:
    """Drop what typed decoding drops, in place; return the paths of unknown fields."""
    unknown: list[str] = []
    if resource.custom is None:
        _clean_object(obj, types()[resource.type_name], "", unknown)
    else:
        _clean_object(obj["metadata"], types()["meta.ObjectMeta"], "metadata.", unknown)
    return unknown


def _clean_object(obj: Any, fields: dict[str, FieldType], path: str, unknown: list[str]) -> None:
    if not isinstance(obj, dict):
        raise _mistyped(path[:-1], obj, "object")
    for key, value in list(obj.items()):
        field = fields.get(key)
        if value is None or (not value and field is not None and field.item is not None):
            del obj[key]
            continue
        if field is None:
            unknown.append(f"{path}{key}")
            del obj[key]
        elif field.code in _SCALARS:
            expected, word = _SCALARS[field.code]
            if type(value) not in expected:
                raise _mistyped(f"{path}{key}", value, word)
        else:
            obj[key] = _clean_value(value, field, f"{path}{key}", unknown)


def _clean_value(value: Any, field: FieldType, path: str, unknown: list[str]) -> Any:
    if field.code in _SCALARS:
        expected, word = _SCALARS[field.code]
        if type(value) not in expected:
            raise _mistyped(path, value, word)
    elif field.code == "q":
        return _quantity(value, path)
    elif field.item is not None:
        return _clean_items(value, field, path, unknown)
    elif field.code != "*":
        _clean_object(value, types()[field.code], f"{path}.", unknown)
    return value


def _clean_items(value: Any, field: FieldType, path: str, unknown: list[str]) -> Any:
    assert field.item is not None
    if field.is_list:
        if not isinstance(value, list):
            raise _mistyped(path, value, "array")
        if field.item.code == "s" and all(type(item) is str for item in value):
            return value
        return [
            _clean_value(item, field.item, f"{path}[{index}]", unknown)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        raise _mistyped(path, value, "object")
    if field.item.code == "s" and all(type(item) is str for item in value.values()):
        return value
    return {
        key: _clean_value(item, field.item, f"{path}.{key}", unknown)
        for key, item in value.items()
        if item is not None
    }


def _quantity(value: Any, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _mistyped(path, value, "quantity")
    text = str(value)
    if not _QUANTITY.match(text):
        raise bad_request(
            f"{path}: quantities must match the regular expression "
            f"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', found {text!r}"
        )
    return text


def _mistyped(path: str, value: Any, word: str) -> Exception:
    found = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    return bad_request(f"json: cannot unmarshal {found} into field {path or '.'} of type {word}")

"""Server-side apply: which manager holds which field.

A path is a tuple of field names; an item of a keyed list is one step, `[key=value,…]`. Only paths
of leaves are kept: what a manager holds is what it said last.
"""

from collections.abc import Mapping
from typing import Any

from infra.local.kube.errors import JsonObject
from infra.local.kube.schemas.fields import OPAQUE, FieldType, field_of
from infra.local.kube.store import Owners

Path = tuple[str, ...]

_NOT_OWNED = {"apiVersion", "kind"}
_NOT_OWNED_METADATA = {
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "generateName", "selfLink",
}  # fmt: skip
_DEFAULTS = {"protocol": "TCP"}


def item_step(item: Any, field: FieldType) -> str:
    """Return the path step of an item of a keyed list or a set."""
    if not field.list_keys or not isinstance(item, dict):
        return f"[{item}]"
    keys = field.list_keys
    return "[" + ",".join(f"{key}={item.get(key, _DEFAULTS.get(key))}" for key in keys) + "]"


def is_keyed(field: FieldType) -> bool:
    """Whether the items of a list are held one by one."""
    return field.is_list and (bool(field.list_keys) or field.merge_key == "=")


def leaves(obj: JsonObject, root: FieldType) -> dict[Path, Any]:
    """Return the value of each field that can be held."""
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        if key in _NOT_OWNED:
            continue
        if key == "metadata":
            value = {k: v for k, v in value.items() if k not in _NOT_OWNED_METADATA}  # noqa: PLW2901
        _walk(value, field_of(root, key), (key,), found)
    return found


def _walk(value: Any, field: FieldType, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _walk(inner, field_of(field, key), (*path, key), found)
    elif isinstance(value, list) and is_keyed(field):
        for item in value:
            step = (*path, item_step(item, field))
            if isinstance(item, dict):
                _walk(item, field.item or OPAQUE, step, found)
            else:
                found[step] = item
    elif not (value == {} and path == ("metadata",)):
        found[path] = value


def conflicts(
    wanted: Mapping[Path, Any], current: Mapping[Path, Any], owners: Owners, manager: str
) -> list[tuple[str, Path]]:
    """Return (manager, path) of the fields another manager holds with another value."""
    return [
        (other, path)
        for other, paths in sorted(owners.items())
        if other != manager
        for path in sorted(paths)
        if path in wanted and wanted[path] != current.get(path)
    ]


def after_write(
    owners: Owners, before: Mapping[Path, Any], after: Mapping[Path, Any], manager: str
) -> Owners:
    """Return who holds what after an ordinary write: the writer takes what it changed."""
    changed = frozenset(p for p, v in after.items() if p not in before or before[p] != v)
    gone = frozenset(before.keys() - after.keys())
    kept = {name: paths - changed - gone for name, paths in owners.items()}
    kept[manager] = kept.get(manager, frozenset()) | changed
    return {name: paths for name, paths in kept.items() if paths}


def remove_path(obj: Any, path: Path, field: FieldType) -> None:
    """Drop the value at a path, and the containers this leaves empty."""
    step, rest = path[0], path[1:]
    if isinstance(obj, dict):
        inner_field = field_of(field, step)
        if step not in obj:
            return
        if rest:
            remove_path(obj[step], rest, inner_field)
        if not rest or obj[step] in ({}, []):
            del obj[step]
    elif isinstance(obj, list):
        for index, item in enumerate(obj):
            if item_step(item, field) == step:
                if rest:
                    remove_path(item, rest, field.item or OPAQUE)
                if not rest or set(item) <= set(field.list_keys):
                    del obj[index]
                return


def merge_applied(live: Any, wanted: Any, field: FieldType) -> Any:
    """Return the live value with everything the applied one says; keyed lists merge by item."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        merged = dict(live)
        for key, value in wanted.items():
            merged[key] = merge_applied(live.get(key), value, field_of(field, key))
        return merged
    if isinstance(wanted, list) and isinstance(live, list) and is_keyed(field):
        steps = {item_step(item, field): item for item in live}
        for item in wanted:
            step = item_step(item, field)
            steps[step] = merge_applied(steps.get(step), item, field.item or OPAQUE)
        return list(steps.values())
    return wanted

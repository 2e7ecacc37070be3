"""JSON, merge and strategic merge patches."""

from typing import Any

import jsonpatch

from infra.local.kube.errors import ApiError, JsonObject, bad_request
from infra.local.kube.schemas.fields import OPAQUE, FieldType, field_of

_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"


def json_patch(target: JsonObject, operations: Any) -> JsonObject:
    """Apply a JSON patch (RFC 6902)."""
    try:
        patched = jsonpatch.JsonPatch(operations).apply(target)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"json patch: {error}") from error
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        message = f"the server rejected our request due to an error in our request: {error}"
        raise ApiError(422, "Invalid", message) from error
    return _object(patched)


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386); the target may be changed in place."""
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_patch(target: JsonObject, patch: Any, root: FieldType) -> JsonObject:
    """Apply a strategic merge patch; the target may be changed in place."""
    return _object(_merge_object(target, _object(patch), root))


def _object(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise bad_request("the patched object is not a JSON object")
    return value


def _merge_object(target: Any, patch: JsonObject, kind: FieldType) -> Any:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged: JsonObject = target if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        for key in merged.keys() - set(patch["$retainKeys"]):
            del merged[key]
    fields = {key: value for key, value in patch.items() if not _is_directive(key)}
    for key, value in fields.items():
        if key.startswith(_REMOVE):
            name = key.removeprefix(_REMOVE)
            kept = [item for item in merged.get(name) or [] if item not in value]
            merged[name] = kept
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key), value, field_of(kind, key))
    for key, order in patch.items():
        if key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            _reorder(merged.get(name), order, field_of(kind, name).merge_key)
    return merged


def _is_directive(key: str) -> bool:
    return key in {"$patch", "$retainKeys"} or key.startswith(_ORDER)


def _merge_value(old: Any, new: Any, field: FieldType) -> Any:
    if isinstance(new, dict):
        return _merge_object(old, new, field)
    if not isinstance(new, list) or not field.merge_key:
        return new
    if field.merge_key == "=":
        kept = old if isinstance(old, list) else []
        return kept + [item for item in new if item not in kept]
    return _merge_list(old, new, field)


def _merge_list(old: Any, new: list[Any], field: FieldType) -> list[Any]:
    key = field.merge_key
    merged = list(old) if isinstance(old, list) else []
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in new):
        return [item for item in new if item.get("$patch") != "replace"]
    for item in new:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map does not contain declared merge key: {key}")
        place = next((i for i, entry in enumerate(merged) if entry.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del merged[place]
        elif place is None:
            merged.append(_merge_object({}, item, field.item or OPAQUE))
        else:
            merged[place] = _merge_object(merged[place], item, field.item or OPAQUE)
    return merged


def _reorder(items: Any, order: list[Any], key: str) -> None:
    if not isinstance(items, list):
        return
    plain = key in {"", "="}
    wanted = order if plain else [entry.get(key) for entry in order]
    rank = {str(value): index for index, value in enumerate(wanted)}
    present = [item if plain else item.get(key) for item in items]
    places = [index for index, value in enumerate(present) if str(value) in rank]
    chosen = sorted((items[i] for i in places), key=lambda it: rank[str(it if plain else it[key])])
    for place, item in zip(places, chosen, strict=True):
        items[place] = item

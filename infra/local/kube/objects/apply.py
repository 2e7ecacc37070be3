"""Server-side apply, always by force.

What is applied is merged in; what the same manager applied before and leaves out now is dropped,
unless another manager applies it. Fields that were written otherwise stay.
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/ (2026-11-23).
"""

from copy import deepcopy
from typing import Any

from infra.local.kube import errors
from infra.local.kube.calls import Call, WriteOptions
from infra.local.kube.errors import bad_request
from infra.local.kube.objects import versions
from infra.local.kube.objects.lifecycle import Lifecycle
from infra.local.kube.schemas.fields import OPAQUE, FieldType, clean, field_of, root_type
from infra.local.kube.store import Entry

_DEFAULTS = {"protocol": "TCP"}


def apply_patch(lifecycle: Lifecycle, call: Call, options: WriteOptions) -> tuple[Entry, bool]:
    """Make the object say what is applied; return it, and whether it was created."""
    manager = call.query.get("fieldManager")
    if not manager:
        raise bad_request("fieldManager is required for apply patch")
    resource, wanted = call.resource, call.object()
    metadata = wanted.setdefault("metadata", {})
    metadata.setdefault("name", call.name)
    entry = lifecycle.store.get(resource, (call.namespace, call.name))
    if entry is None:
        if metadata.get("uid") or call.subresource:
            raise errors.not_found(resource.group, resource.plural, call.name)
        made = lifecycle.create(resource, call.namespace, deepcopy(wanted), options)
        if not options.dry_run:
            lifecycle.applied[made.uid] = {manager: wanted}
        return made, True
    # Nulls in an applied object mean nothing; unknown fields are reported by the write below.
    checked = {key: value for key, value in wanted.items() if value is not None}
    if resource.custom is None and options.validation != "Strict":
        clean(checked, resource)
    applied = lifecycle.applied.get(entry.uid, {})
    others = [document for name, document in applied.items() if name != manager]
    root = root_type(resource)
    merged = _merged(versions.load(resource, entry), checked, root)
    merged = _without_dropped(merged, applied.get(manager, {}), checked, others, root)
    merged["metadata"].setdefault("resourceVersion", str(entry.version))
    made = lifecycle.update(resource, entry, merged, options, subresource=call.subresource)
    if not options.dry_run:
        lifecycle.applied[entry.uid] = {**applied, manager: checked}
    return made, False


def _merged(live: Any, wanted: Any, field: FieldType) -> Any:
    """Return the live value with everything the applied one says; keyed lists merge by item."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        found = {key: _merged(live.get(key), wanted[key], field_of(field, key)) for key in wanted}
        return live | found
    if isinstance(wanted, list) and isinstance(live, list) and _is_keyed(field):
        items = {_identity(item, field): item for item in live}
        for item in wanted:
            name = _identity(item, field)
            items[name] = _merged(items.get(name), item, field.item or OPAQUE)
        return list(items.values())
    return wanted


def _without_dropped(
    live: Any, before: Any, wanted: Any, others: list[Any], field: FieldType
) -> Any:
    """Return the live value without what only this manager applied before, and does not now.

    An item of a keyed list is dropped whole, an object only with the last of its fields.
    """
    if isinstance(live, list) and isinstance(before, list) and _is_keyed(field):
        named = [_by_identity(value, field) for value in (live, before, wanted, *others)]
        items, old, new, *held = named
        return [
            item
            if name not in old
            else _without_dropped(
                item,
                old[name],
                new.get(name, {}),
                [other[name] for other in held if name in other],
                field.item or OPAQUE,
            )
            for name, item in items.items()
            if name not in old or name in new or any(name in other for other in held)
        ]
    if not isinstance(live, dict) or not isinstance(before, dict):
        return live
    left = dict(live)
    now = wanted if isinstance(wanted, dict) else {}
    for key in before.keys() & live.keys():
        held = [other[key] for other in others if isinstance(other, dict) and key in other]
        inner = field_of(field, key)
        if key in now or isinstance(live[key], dict) or (_is_keyed(inner) and held):
            left[key] = _without_dropped(live[key], before[key], now.get(key), held, inner)
            if key not in now and not left[key]:
                del left[key]
        elif not held:
            del left[key]
    return left


def _is_keyed(field: FieldType) -> bool:
    return field.is_list and (bool(field.list_keys) or field.merge_key == "=")


def _by_identity(items: Any, field: FieldType) -> dict[str, Any]:
    return {_identity(item, field): item for item in items} if isinstance(items, list) else {}


def _identity(item: Any, field: FieldType) -> str:
    if not field.list_keys or not isinstance(item, dict):
        return str(item)
    return str([item.get(key, _DEFAULTS.get(key)) for key in field.list_keys])

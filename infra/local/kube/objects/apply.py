"""Server-side apply, always by force: what is applied is merged in, and nothing is dropped.

Which manager holds which field is not kept, so fields that an applier leaves out stay.
"""

from typing import Any

from infra.local.kube import errors
from infra.local.kube.calls import Call
from infra.local.kube.errors import bad_request
from infra.local.kube.objects.lifecycle import Lifecycle
from infra.local.kube.options import WriteOptions
from infra.local.kube.schemas.fields import OPAQUE, FieldType, clean, field_of, root_type
from infra.local.kube.store import Entry

_DEFAULTS = {"protocol": "TCP"}


def apply_patch(lifecycle: Lifecycle, call: Call, options: WriteOptions) -> tuple[Entry, bool]:
    """Make the object say what is applied.

    Returns:
        The object, and whether it was created.

    Raises:
        ApiError: 400 without a manager.
    """
    if not call.query.get("fieldManager"):
        raise bad_request("fieldManager is required for apply patch")
    resource, wanted = call.resource, call.object()
    metadata = wanted.setdefault("metadata", {})
    metadata.setdefault("name", call.name)
    entry = lifecycle.store.get(resource, (call.namespace, call.name))
    if entry is None:
        if metadata.get("uid") or call.subresource:
            raise errors.not_found(resource.group, resource.plural, call.name)
        return lifecycle.create(resource, call.namespace, wanted, options), True
    # Nulls in an applied object mean nothing; unknown fields are reported by the write below.
    checked = {key: value for key, value in wanted.items() if value is not None}
    if resource.custom is None and options.validation != "Strict":
        clean(checked, resource)
    merged = _merged(entry.load(), checked, root_type(resource))
    merged["metadata"].setdefault("resourceVersion", str(entry.version))
    return lifecycle.update(resource, entry, merged, options, subresource=call.subresource), False


def _merged(live: Any, wanted: Any, field: FieldType) -> Any:
    """Return the live value with everything the applied one says; keyed lists merge by item."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        found = {key: _merged(live.get(key), wanted[key], field_of(field, key)) for key in wanted}
        return live | found
    keyed = field.is_list and (bool(field.list_keys) or field.merge_key == "=")
    if isinstance(wanted, list) and isinstance(live, list) and keyed:
        items = {_identity(item, field): item for item in live}
        for item in wanted:
            name = _identity(item, field)
            items[name] = _merged(items.get(name), item, field.item or OPAQUE)
        return list(items.values())
    return wanted


def _identity(item: Any, field: FieldType) -> str:
    if not field.list_keys or not isinstance(item, dict):
        return str(item)
    return str([item.get(key, _DEFAULTS.get(key)) for key in field.list_keys])

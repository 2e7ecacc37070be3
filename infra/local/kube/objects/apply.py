"""Server-side apply."""

from infra.local.kube import errors
from infra.local.kube.calls import Call
from infra.local.kube.errors import JsonObject, bad_request
from infra.local.kube.objects.lifecycle import Lifecycle
from infra.local.kube.objects.ownership import (
    Path,
    conflicts,
    leaves,
    merge_applied,
    remove_path,
)
from infra.local.kube.options import WriteOptions
from infra.local.kube.schemas.fields import clean, root_type
from infra.local.kube.store import Entry, Owners


def apply_patch(lifecycle: Lifecycle, call: Call, options: WriteOptions) -> tuple[Entry, bool]:
    """Make the object say what the manager applies.

    Returns:
        The object, and whether it was created.

    Raises:
        ApiError: 400 without a manager; 409 when another manager holds a field with another
            value and `force` is not set.
    """
    manager = call.query.get("fieldManager")
    if not manager:
        raise bad_request("fieldManager is required for apply patch")
    wanted = call.object()
    metadata = wanted.setdefault("metadata", {})
    metadata.setdefault("name", call.name)
    entry = lifecycle.store.get(call.resource, (call.namespace, call.name))
    if entry is None:
        if metadata.get("uid") or call.subresource:
            raise errors.not_found(call.resource.group, call.resource.plural, call.name)
        return _create(lifecycle, call, wanted, options), True
    return _merge(lifecycle, call, entry, wanted, options), False


def _create(lifecycle: Lifecycle, call: Call, wanted: JsonObject, options: WriteOptions) -> Entry:
    resource = call.resource
    held = frozenset(leaves(wanted, root_type(resource)))
    entry = lifecycle.create(resource, call.namespace, wanted, options)
    if options.dry_run:
        return entry
    current = lifecycle.require(resource, *entry.key)
    return lifecycle.store.annotate(resource, current, {options.manager: held})


def _merge(
    lifecycle: Lifecycle, call: Call, entry: Entry, wanted: JsonObject, options: WriteOptions
) -> Entry:
    resource = call.resource
    root = root_type(resource)
    live = entry.load()
    # Nulls in an applied object mean nothing; unknown fields are reported by the write below.
    checked = {key: value for key, value in wanted.items() if value is not None}
    current = leaves(live, root)
    owners: Owners = entry.owners or {entry.manager or "before-first-apply": frozenset(current)}
    if resource.custom is None and options.validation != "Strict":
        clean(checked, resource)
    said = leaves(checked, root)
    found = conflicts(said, current, owners, options.manager)
    if found and not call.flag("force"):
        raise _conflict(call, found)
    merged = merge_applied(live, checked, root)
    dropped = owners.get(options.manager, frozenset()) - said.keys()
    others = {
        name: paths - {path for _, path in found}
        for name, paths in owners.items()
        if name != options.manager
    }
    after: Owners = {name: paths for name, paths in others.items() if paths} | {
        options.manager: frozenset(said)
    }
    for path in sorted(dropped):
        if not any(path in paths for paths in others.values()):
            remove_path(merged, _whole_item(path, after), root)
    version = (wanted["metadata"]).get("resourceVersion")
    if version is None:
        merged["metadata"]["resourceVersion"] = str(entry.version)
    return lifecycle.update(
        resource, entry, merged, options, subresource=call.subresource, owners=after
    )


def _whole_item(path: Path, owners: Owners) -> Path:
    """Return the path of the list item a dropped field is in, if no manager owns any of it."""
    for end, step in enumerate(path, 1):
        if step.startswith("[") and end < len(path):
            prefix = path[:end]
            if not any(entry[:end] == prefix for paths in owners.values() for entry in paths):
                return prefix
    return path


def _conflict(call: Call, found: list[tuple[str, Path]]) -> errors.ApiError:
    causes = [
        ("FieldManagerConflict", f'conflict with "{other}"', "." + ".".join(path))
        for other, path in found
    ]
    plural = "" if len(found) == 1 else "s"
    listed = "; ".join(f'"{other}": {field}' for (other, _), (_, _, field) in zip(
        found, causes, strict=True))  # fmt: skip
    message = f"Apply failed with {len(found)} conflict{plural}: conflicts with {listed}"
    error = errors.conflict(call.resource.group, call.resource.plural, call.name, "", causes)
    error.message = message
    return error

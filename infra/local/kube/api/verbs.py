"""What each verb does to a resource: get, list, create, update, patch, delete."""

import base64
import binascii
from dataclasses import dataclass, replace
from typing import Any

import orjson

from infra.local.kube import errors
from infra.local.kube.api import subresources
from infra.local.kube.api.views import View, negotiate
from infra.local.kube.calls import Call
from infra.local.kube.errors import ApiError, JsonObject, bad_request
from infra.local.kube.objects import versions
from infra.local.kube.objects.apply import apply_patch
from infra.local.kube.objects.lifecycle import Lifecycle
from infra.local.kube.objects.patches import json_patch, merge_patch, strategic_patch
from infra.local.kube.schemas.fields import root_type
from infra.local.kube.store import Entry, Key

PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A finished answer: status, JSON, and warnings for its headers."""

    status: int = 200
    body: bytes = b""
    warnings: tuple[str, ...] = ()


def view_of(call: Call) -> View:
    """Return the form the caller wants objects in."""
    accept = call.headers.get("accept", "*/*")
    return negotiate(call.resource, accept, call.query.get("includeObject", ""))


class Verbs:
    """All verbs but watch, over the rules of writing."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._store = lifecycle.store

    def perform(self, call: Call) -> Answer:
        if call.subresource and (found := subresources.perform(self._lifecycle, call)):
            status, body = found
            return Answer(status=status, body=orjson.dumps(body))
        if call.resource.namespaced and not call.namespace and call.method != "GET":
            raise _not_allowed()
        match call.method, bool(call.name):
            case "GET" | "HEAD", True:
                return Answer(body=view_of(call).one(self._entry(call)))
            case "GET" | "HEAD", False:
                return self._list(call)
            case "POST", False:
                return self._create(call)
            case "PUT", True:
                return self._update(call)
            case "PATCH", True:
                return self._patch(call)
            case "DELETE", True:
                return self._delete(call)
            case "DELETE", False:
                return self._delete_collection(call)
        raise _not_allowed()

    def _entry(self, call: Call) -> Entry:
        self._check_version(call.query.get("resourceVersion", ""))
        return self._lifecycle.require(call.resource, call.namespace, call.name)

    def _check_version(self, text: str) -> None:
        if not text:
            return
        if not text.isdecimal():
            raise bad_request(f"resourceVersion: Invalid value: {text!r}: must be a number")
        if int(text) > self._store.version:
            message = f"Too large resource version: {text}, current: {self._store.version}"
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details: JsonObject = {"causes": [cause], "retryAfterSeconds": 1}
            raise ApiError(504, "Timeout", message, details=details)

    # -- list -----------------------------------------------------------------------------

    def _list(self, call: Call) -> Answer:
        self._check_version(call.query.get("resourceVersion", ""))
        limit = call.number("limit") or 0
        version, after = self._store.version, None
        if token := call.query.get("continue"):
            version, after = self._continue_from(token)
        selects = bool({"labelSelector", "fieldSelector"} & call.query.keys())
        # What is left is counted only where it is told.
        most = limit + 1 if limit and selects else None
        entries = self._store.select(
            call.resource, call.namespace, call.match(), after, most, call.node()
        )
        metadata: JsonObject = {"resourceVersion": str(version)}
        if limit and len(entries) > limit:
            metadata["continue"] = _token(version, entries[limit - 1].key)
            if not selects:
                metadata["remainingItemCount"] = len(entries) - limit
            entries = entries[:limit]
        return Answer(body=view_of(call).many(entries, metadata))

    def _continue_from(self, token: str) -> tuple[int, Key]:
        try:
            version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
        except (binascii.Error, ValueError) as error:
            raise bad_request("continue key is not valid") from error
        if version < self._store.compacted:
            raise errors.expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter, or use the continue "
                "token in this response to retrieve the remainder of the results.",
                {"continue": _token(self._store.version, (namespace, name))},
            )
        return version, (namespace, name)

    # -- write ----------------------------------------------------------------------------

    def _create(self, call: Call) -> Answer:
        options = call.write_options()
        obj = call.object()
        entry = self._lifecycle.create(call.resource, call.namespace, obj, options)
        if not options.dry_run:
            entry = self._store.get(call.resource, entry.key) or entry
        body = view_of(call).one(entry)
        return Answer(status=201, body=body, warnings=tuple(options.warnings))

    def _update(self, call: Call) -> Answer:
        options = call.write_options()
        obj = call.object()
        if call.resource.custom is not None and not (obj.get("metadata") or {}).get(
            "resourceVersion"
        ):
            cause = ("FieldValueInvalid", "Invalid value: 0: must be specified for an update",
                     "metadata.resourceVersion")  # fmt: skip
            raise errors.invalid(call.resource.group, call.resource.kind, call.name, [cause])
        entry = self._lifecycle.require(call.resource, call.namespace, call.name)
        written = self._lifecycle.update(
            call.resource, entry, obj, options, subresource=call.subresource
        )
        return Answer(body=view_of(call).one(written), warnings=tuple(options.warnings))

    def _patch(self, call: Call) -> Answer:
        media = call.headers.get("content-type", "").partition(";")[0].strip()
        if media not in PATCH_TYPES or (
            call.resource.custom is not None and media == PATCH_TYPES[2]
        ):
            listed = ", ".join(PATCH_TYPES)
            message = (
                f"the body of the request was in an unknown format - accepted media types "
                f"include: {listed}"
            )
            raise ApiError(415, "UnsupportedMediaType", message)
        options = call.write_options()
        if media == PATCH_TYPES[3]:
            entry, created = apply_patch(self._lifecycle, call, options)
        else:
            before = self._lifecycle.require(call.resource, call.namespace, call.name)
            obj = patched(call, before, media)
            entry, created = (
                self._lifecycle.update(
                    call.resource, before, obj, options, subresource=call.subresource
                ),
                False,
            )
        return Answer(
            status=201 if created else 200,
            body=view_of(call).one(entry),
            warnings=tuple(options.warnings),
        )

    # -- delete ---------------------------------------------------------------------------

    def _delete(self, call: Call) -> Answer:
        entry = self._lifecycle.require(call.resource, call.namespace, call.name)
        last, gone = self._lifecycle.deletion.delete(call.resource, entry, call.delete_options())
        resource = call.resource
        if gone and not resource.returns_deleted:
            status = errors.success(call.name, resource.group, resource.plural, entry.uid)
            return Answer(body=orjson.dumps(status))
        return Answer(body=replace(view_of(call), form="").one(last))

    def _delete_collection(self, call: Call) -> Answer:
        entries = self._store.select(call.resource, call.namespace, call.match())
        options = call.delete_options()
        for entry in entries:
            current = self._store.get(call.resource, entry.key)
            if current is not None:
                self._lifecycle.deletion.delete(call.resource, current, options)
        metadata = {"resourceVersion": str(self._store.version)}
        return Answer(body=replace(view_of(call), form="").many(entries, metadata))


def patched(call: Call, entry: Entry, media: str, target: JsonObject | None = None) -> JsonObject:
    """Return the object a patch makes of an entry, or of another form of it."""
    resource = call.resource
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    whole: JsonObject = target or (head | versions.load(resource, entry))
    patch: Any = call.content()
    if media == PATCH_TYPES[0]:
        return json_patch(whole, patch)
    if not isinstance(patch, dict):
        raise bad_request("the patch is not an object")
    if media == PATCH_TYPES[1] or target is not None:
        merged: JsonObject = merge_patch(whole, patch)
        return merged
    return strategic_patch(whole, patch, root_type(resource))


def _not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def _token(version: int, key: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *key])).decode()

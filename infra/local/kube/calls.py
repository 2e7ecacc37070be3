"""One request, read: which object it is about, and what its body and options say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
import yaml

from infra.local.kube import errors
from infra.local.kube.errors import ApiError, JsonObject, bad_request
from infra.local.kube.kinds import Kinds, Resource
from infra.local.kube.schemas.messages import MEDIA_TYPE, decode
from infra.local.kube.selectors import field_selector, label_selector, node_asked_for
from infra.local.kube.simulated_pods import require_possible
from infra.local.kube.store import Entry, Match


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a write is to be made.

    Attributes:
        validation: `Strict`, `Warn` or `Ignore` unknown fields.
        warnings: Filled with what the answer should warn of.
    """

    dry_run: bool = False
    validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How a delete is to be made; None where the client said nothing."""

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    dry_run: bool = False


def timestamp(moment: datetime) -> str:
    """Write a time as the API does: RFC 3339 in UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_OWN_SUBRESOURCES = {"status", "finalize"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request about a resource.

    Attributes:
        namespace: From the path; empty across namespaces and for cluster-scoped resources.
        subresource: From the path, such as `status`; empty for the object itself.
        headers: Keys in lower case.
    """

    method: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def flag(self, name: str) -> bool:
        return self.query.get(name, "") in _TRUE

    def number(self, name: str) -> int | None:
        """Return a query parameter that counts something, or None when absent."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.isdecimal():
            raise bad_request(f"query parameter {name}={text!r} is not a whole number")
        return int(text)

    def content(self) -> Any:
        return read_content(self.headers.get("content-type", ""), self.body)

    def object(self) -> JsonObject:
        """Return the body as an object of the path's kind."""
        body = self.content()
        if not isinstance(body, dict):
            raise bad_request("the body of the request is not an object")
        if not self.subresource or self.subresource in _OWN_SUBRESOURCES:
            self._check_kind(body)
        return body

    def _check_kind(self, body: JsonObject) -> None:
        kind, version = body.get("kind"), body.get("apiVersion")
        if kind not in {None, self.resource.kind} or version not in {
            None,
            self.resource.api_version,
        }:
            raise bad_request(
                f"{kind} in version {version!r} cannot be handled as {self.resource.kind} in "
                f"version {self.resource.api_version!r}"
            )

    def write_options(self) -> WriteOptions:
        return WriteOptions(
            dry_run="dryRun" in self.query, validation=self.query.get("fieldValidation") or "Warn"
        )

    def delete_options(self, body: JsonObject | None = None) -> DeleteOptions:
        """Return how a delete is to be made, from the body and the query."""
        if body is None:
            body = self.content() if self.body.strip() else {}
        if not isinstance(body, dict):
            raise bad_request("the body of a delete must be DeleteOptions")
        conditions = body.get("preconditions") or {}
        grace = body.get("gracePeriodSeconds")
        return DeleteOptions(
            grace_seconds=self.number("gracePeriodSeconds") if grace is None else grace,
            uid=conditions.get("uid"),
            version=conditions.get("resourceVersion"),
            propagation=body.get("propagationPolicy") or self.query.get("propagationPolicy"),
            dry_run=bool(body.get("dryRun")) or "dryRun" in self.query,
        )

    def match(self) -> Match:
        """Return the test of the request's selectors and of the name in its path."""
        labels = label_selector(self.query.get("labelSelector", ""))
        fields = field_selector(self.resource, self.query.get("fieldSelector", ""))
        if labels is None and fields is None:
            return _everything
        return lambda entry: (
            (labels is None or labels(entry.labels)) and (fields is None or fields(entry.fields))
        )

    def node(self) -> str:
        """Return the node that the field selector requires of pods, "" if it requires none."""
        return node_asked_for(self.query.get("fieldSelector", ""))


def _everything(_: Entry) -> bool:
    return True


def locate(kinds: Kinds, path: str) -> tuple[Resource, str, str, str]:
    """Return (resource, namespace, name, subresource) of a path."""
    parts = [part for part in path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise errors.no_such_path()
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in _OWN_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    rest += [""] * (3 - len(rest))
    plural, name, subresource = rest[0], rest[1], "/".join(rest[2:])
    if group == "" and plural == "bindings" and namespace:
        return kinds.core("pods"), namespace, "", "binding"
    resource = kinds.find(group, version, plural)
    if subresource and group == "":
        require_possible(plural, name, subresource)
    if resource is None or (subresource and subresource not in resource.subresources):
        raise errors.no_such_path()
    if bool(namespace) > resource.namespaced or (name and not namespace and resource.namespaced):
        raise errors.no_such_path()
    return resource, namespace, name, subresource


def read_content(media_type: str, body: bytes) -> Any:
    media = media_type.partition(";")[0].strip()
    if media == MEDIA_TYPE:
        return decode(body)
    if media.endswith("cbor"):
        message = (
            f"the body of the request was in an unknown format - accepted media types "
            f"include: application/json, application/yaml, {MEDIA_TYPE}; found {media}"
        )
        raise ApiError(415, "UnsupportedMediaType", message)
    try:
        if "yaml" in media and not body.lstrip().startswith(b"{"):
            return yaml.load(body, Loader=yaml.CSafeLoader)
        return orjson.loads(body)
    except (orjson.JSONDecodeError, yaml.YAMLError) as error:
        raise bad_request(f"the body of the request cannot be decoded: {error}") from error

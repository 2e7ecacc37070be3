"""How objects are written out: as they are, as metadata only, or as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from infra.local.kube.api import tables
from infra.local.kube.errors import ApiError, JsonObject
from infra.local.kube.kinds import Resource
from infra.local.kube.objects import versions
from infra.local.kube.store import Change, Entry, Match

_META = "meta.k8s.io/v1"
_MEDIA = {"application/json", "application/*", "*/*", ""}


def render(resource: Resource, entry: Entry) -> bytes:
    return resource.prefix + versions.raw(resource, entry)[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A way of writing out one resource's objects.

    Attributes:
        form: Empty for whole objects; `Table`, `PartialObjectMetadata` or
            `PartialObjectMetadataList`.
        include: For tables: `Metadata`, `None` or `Object` beside each row.
    """

    resource: Resource
    form: str = ""
    include: str = "Metadata"

    def one(self, entry: Entry) -> bytes:
        if self.form == "Table":
            return self._table([entry], {"resourceVersion": str(entry.version)})
        if self.form:
            return orjson.dumps(
                {"kind": "PartialObjectMetadata", "apiVersion": _META}
                | {"metadata": entry.load()["metadata"]}
            )
        return render(self.resource, entry)

    def many(self, entries: Sequence[Entry], metadata: JsonObject) -> bytes:
        if self.form == "Table":
            return self._table(entries, metadata)
        if self.form:
            items = [{"metadata": entry.load()["metadata"]} for entry in entries]
            head = {"kind": "PartialObjectMetadataList", "apiVersion": _META}
            return orjson.dumps(head | {"metadata": metadata, "items": items})
        if self.resource.custom is None:
            # A typed list of a real server leaves kind and apiVersion out of its items.
            items_bytes = b",".join(versions.raw(self.resource, entry) for entry in entries)
        else:
            items_bytes = b",".join(render(self.resource, entry) for entry in entries)
        start = f'{{"kind":"{self.resource.kind}List","apiVersion":"{self.resource.api_version}",'
        return b"".join(
            (start.encode(), b'"metadata":', orjson.dumps(metadata), b',"items":[', items_bytes,
             b"]}")
        )  # fmt: skip

    def event(self, kind: str, entry: Entry, *, with_columns: bool) -> bytes:
        """Write one line of a watch; of the tables in it only the first names its columns."""
        body = self.one(entry)
        if self.form == "Table" and not with_columns:
            body = orjson.dumps(orjson.loads(body) | {"columnDefinitions": []})
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), body)

    def _table(self, entries: Sequence[Entry], metadata: JsonObject) -> bytes:
        objects = [entry.load() for entry in entries]
        table = tables.table(self.resource, objects, self.include)
        return orjson.dumps(table | {"metadata": metadata})


def visible(change: Change, namespace: str, match: Match) -> tuple[str, Entry] | None:
    """Return what a watch with a selector sees of a change: (type, state), or None."""
    if namespace and change.entry.key[0] != namespace:
        return None
    before = change.previous is not None and match(change.previous)
    if change.type == "DELETED":
        return ("DELETED", change.entry) if before else None
    if match(change.entry):
        return ("MODIFIED" if before else "ADDED"), change.entry
    if before:
        assert change.previous is not None
        return "DELETED", change.previous
    return None


def negotiate(resource: Resource, accept: str, include: str) -> View:
    """Choose the first form of an Accept header that is served."""
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        form = options.get("as", "")
        if media not in _MEDIA or (form and options.get("g") != "meta.k8s.io"):
            continue
        if form in {"", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"}:
            return View(resource=resource, form=form, include=include or "Metadata")
    message = "only the following media types are accepted: application/json"
    raise ApiError(406, "NotAcceptable", message)

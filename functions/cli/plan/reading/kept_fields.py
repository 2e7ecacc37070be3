"""Drops the fields of a dump that no plan reads, to save memory.

A pod of `kubectl get -o json` has some 9 kB. A plan reads a tenth of that, and most of the tenth
is the same in all pods of a workload: it is stored once. Fields that Kubernetes does not define are
kept, so that they are still refused.
"""

import functools
import hashlib
import marshal
import sys
from collections.abc import Callable, Collection
from typing import Any, Final

from functions.cli.plan.reading.autoscalers import AUTOSCALERS
from functions.cli.plan.reading.documents import Document
from functions.cli.plan.reading.snapshot import KINDS
from functions.cli.plan.reading.unknown_fields import FIELDS
from functions.cli.plan.reading.workloads import WORKLOADS, has_other_template
from shared.manifests.files import fields_read as read
from shared.manifests.raw_json import CONTAINERS
from shared.model.values import replace

# Long, and read by nothing offline.
_UNREAD_METADATA: Final = frozenset({"managedFields"})
_UNREAD_ANNOTATIONS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_HEAD: Final = ("apiVersion", "kind", "metadata")
_UNREAD_SPEC: Final = FIELDS["Pod"] - {
    *(*read.POD_SPEC_FIELDS, *CONTAINERS, "volumes", "runtimeClassName"),
    *("activeDeadlineSeconds", "preemptionPolicy"),
}
_UNREAD_CONTAINER: Final = FIELDS["Container"] - {*read.CONTAINER_FIELDS}
_STATUS_LISTS: Final = {
    "conditions": ("type", "status", "reason"),
    "containerStatuses": read.CONTAINER_STATUS_FIELDS,
    "initContainerStatuses": read.CONTAINER_STATUS_FIELDS,
}
_TEMPLATES: Final = {*WORKLOADS, "DaemonSet"}


class KeptFields:
    """Drops from documents what no plan reads; equal parts of them share one object."""

    def __init__(self) -> None:
        self._parts: dict[bytes, Any] = {}

    def kept_document(self, document: Document) -> Document:
        """Return the document without the fields that are not read for its kind."""
        kind, raw = document.kind, {**document.raw}
        other = has_other_template(document)
        if other:
            raw["spec"] = _only(("replicas", "template"), raw["spec"])
        elif kind and kind not in KINDS and kind not in AUTOSCALERS:
            raw = {key: value for key, value in raw.items() if key in _HEAD}
        if isinstance(raw.get("metadata"), dict):
            raw["metadata"] = self._metadata(raw["metadata"])
        if kind == "Pod":
            raw["spec"] = self._pod_spec(raw.get("spec"))
            raw["status"] = self._pod_status(raw.get("status"))
        elif kind == "Node":
            if isinstance(raw.get("status"), dict):
                raw["status"] = _only((*read.NODE_STATUS_FIELDS, "conditions"), raw["status"])
        elif kind in _TEMPLATES or other:
            raw["spec"] = self._spec_of_workload(raw.get("spec"))
        return replace(document, raw=raw)

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        found = _without(_UNREAD_METADATA, metadata)
        if isinstance(found.get("annotations"), dict):
            found["annotations"] = _without(_UNREAD_ANNOTATIONS, found["annotations"])
        return self._shared(found)

    def _spec_of_workload(self, spec: object) -> object:
        """Return the spec with a reduced pod template, or a reduced Job template."""
        if not isinstance(spec, dict):
            return spec
        template, of_jobs = spec.get("template"), spec.get("jobTemplate")
        if isinstance(template, dict):
            spec = {**spec, "template": {**template, "spec": self._pod_spec(template.get("spec"))}}
        if isinstance(of_jobs, dict):
            job = {**of_jobs, "spec": self._spec_of_workload(of_jobs.get("spec"))}
            spec = {**spec, "jobTemplate": job}
        return spec

    def _pod_spec(self, spec: object) -> object:
        if not isinstance(spec, dict):
            return spec
        found = _without(_UNREAD_SPEC, spec)
        for field in CONTAINERS:
            found[field] = _each(spec.get(field), lambda entry: _without(_UNREAD_CONTAINER, entry))
        found["volumes"] = _each(
            spec.get("volumes"), lambda entry: _only(read.VOLUME_FIELDS, entry)
        )
        return self._shared(found)

    def _pod_status(self, status: object) -> object:
        if not isinstance(status, dict):
            return status
        found = _only(read.POD_STATUS_FIELDS, status)
        for field, names in _STATUS_LISTS.items():
            found[field] = _each(status.get(field), functools.partial(_only, names))
        return self._shared(found)

    def _shared(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that are not None; a part equal to an earlier one is replaced by it."""
        return {key: self._part(part) for key, part in fields.items() if part is not None}

    def _part(self, value: Any) -> Any:
        if isinstance(value, str):
            return sys.intern(value)
        if not isinstance(value, (dict, list)):
            return value
        try:
            written = marshal.dumps(value, 2)
        except ValueError:
            return value  # YAML has more types than JSON
        digest = hashlib.blake2b(written, digest_size=16).digest()
        return self._parts.setdefault(digest, value)


def _without(names: Collection[str], fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in names}


def _only(names: Collection[str], fields: dict[str, Any]) -> dict[str, Any]:
    return {key: fields[key] for key in names if key in fields}


def _each(entries: object, keep: Callable[[dict[str, Any]], dict[str, Any]]) -> object:
    """Return the entries reduced by `keep`; values of other types are returned as they are."""
    if not isinstance(entries, list):
        return entries
    return [keep(entry) if isinstance(entry, dict) else entry for entry in entries]

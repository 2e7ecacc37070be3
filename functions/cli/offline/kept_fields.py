"""What a plan reads of a dump: the rest is not kept.

A pod of `kubectl get -o json` has some 9 kB. A plan reads a tenth of that, and most of the tenth
is the same in all pods of a workload: it is kept once. Fields that Kubernetes does not have stay,
so that they are still refused.
"""

import functools
import hashlib
import marshal
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

from functions.cli.offline.snapshot import KINDS
from functions.cli.offline.unknown_fields import FIELDS
from shared.manifests.documents import Document
from shared.manifests.fields import CONTAINERS
from shared.manifests.files import fields_read as read
from shared.manifests.workloads import WORKLOADS, has_other_template

# Long, and read by nothing offline.
_UNREAD_METADATA: Final = frozenset({"managedFields"})
_UNREAD_ANNOTATIONS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_HEAD: Final = ("apiVersion", "kind", "metadata")
_UNREAD_SPEC: Final = FIELDS["Pod"] - {
    *(*read.POD_SPEC, *CONTAINERS, "volumes", "runtimeClassName"),
    *("activeDeadlineSeconds", "preemptionPolicy"),
}
_UNREAD_CONTAINER: Final = FIELDS["Container"] - {*read.CONTAINER}
_STATUS_LISTS: Final = {
    "conditions": ("type", "status", "reason"),
    "containerStatuses": read.CONTAINER_STATUS,
    "initContainerStatuses": read.CONTAINER_STATUS,
}
_TEMPLATES: Final = {*WORKLOADS, "DaemonSet"}


class KeptFields:
    """Leaves out of documents what no plan reads; equal parts of them are one object."""

    def __init__(self) -> None:
        self._parts: dict[bytes, Any] = {}

    def of(self, document: Document) -> Document:
        """Return the document without what is not read of its kind."""
        kind, raw = document.kind, {**document.raw}
        other = has_other_template(document)
        if other:
            raw["spec"] = _only(("replicas", "template"), raw["spec"])
        elif kind and kind not in KINDS:
            raw = {key: value for key, value in raw.items() if key in _HEAD}
        if isinstance(raw.get("metadata"), dict):
            raw["metadata"] = self._metadata(raw["metadata"])
        if kind == "Pod":
            raw["spec"] = self._pod_spec(raw.get("spec"))
            raw["status"] = self._pod_status(raw.get("status"))
        elif kind == "Node":
            if isinstance(raw.get("status"), dict):
                raw["status"] = _only((*read.NODE_STATUS, "conditions"), raw["status"])
        elif kind in _TEMPLATES or other:
            raw["spec"] = self._spec_of_workload(raw.get("spec"))
        return replace(document, raw=raw)

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        found = _without(_UNREAD_METADATA, metadata)
        if isinstance(found.get("annotations"), dict):
            found["annotations"] = _without(_UNREAD_ANNOTATIONS, found["annotations"])
        return self._shared(found)

    def _spec_of_workload(self, spec: object) -> object:
        """Return the spec with less of its template, or of that of the Jobs it makes."""
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
        found["volumes"] = _each(spec.get("volumes"), lambda entry: _only(read.VOLUME, entry))
        return self._shared(found)

    def _pod_status(self, status: object) -> object:
        if not isinstance(status, dict):
            return status
        found = _only(read.POD_STATUS, status)
        for field, names in _STATUS_LISTS.items():
            found[field] = _each(status.get(field), functools.partial(_only, names))
        return self._shared(found)

    def _shared(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that are given; parts that are equal to earlier ones are these."""
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
    """Return the entries with what is to be kept; as they are where the shape is another one."""
    if not isinstance(entries, list):
        return entries
    return [keep(entry) if isinstance(entry, dict) else entry for entry in entries]

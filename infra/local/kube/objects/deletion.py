"""Deletion: grace, finalizers, preconditions, and the emptying of namespaces."""

from collections.abc import Callable
from datetime import datetime, timedelta

from infra.local.kube import errors
from infra.local.kube.calls import DeleteOptions, timestamp
from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Kinds, Resource
from infra.local.kube.objects import admission
from infra.local.kube.store import Entry, Store

_DEFAULT_GRACE_SECONDS = 30


def is_finished(metadata: JsonObject) -> bool:
    """Whether nothing holds a deleted object back: no finalizer, no grace."""
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and metadata.get("deletionGracePeriodSeconds", 1) == 0
    )


class Deletion:
    """The rules of deleting, over a store."""

    def __init__(self, store: Store, kinds: Kinds, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._kinds = kinds
        self._clock = clock

    def delete(
        self, resource: Resource, entry: Entry, options: DeleteOptions
    ) -> tuple[Entry, bool]:
        """Delete an object, or mark it so; return that state, and whether it is gone."""
        self._check_preconditions(resource, entry, options)
        obj = entry.load()
        metadata = obj["metadata"]
        if resource.kind == "Namespace":
            admission.check_namespace_delete(entry.key[1])
        grace = self._grace_seconds(resource, obj, options)
        if metadata.get("deletionTimestamp"):
            if grace >= metadata.get("deletionGracePeriodSeconds", 0) and not is_finished(metadata):
                return entry, False
        elif resource.counts_generations and "generation" in metadata:
            metadata["generation"] += 1
        stays = bool(metadata.get("finalizers")) or grace > 0 or resource.kind == "Namespace"
        if options.dry_run:
            return entry, not stays
        if not stays and not resource.is_pod:
            if options.propagation == "Orphan":
                self._orphan_dependents(entry)
            return self.remove(resource, entry), True
        moment = self._clock() + timedelta(seconds=grace)
        metadata["deletionTimestamp"] = timestamp(moment)
        metadata["deletionGracePeriodSeconds"] = grace
        if resource.kind == "Namespace":
            del metadata["deletionGracePeriodSeconds"]
            obj["status"]["phase"] = "Terminating"
        marked = self._store.write(resource, obj, entry)
        if resource.kind == "Namespace":
            return self._empty_namespace(resource, marked)
        return (marked, False) if stays else (self.remove(resource, marked), True)

    def _check_preconditions(
        self, resource: Resource, entry: Entry, options: DeleteOptions
    ) -> None:
        if options.propagation == "Foreground":
            raise errors.bad_request("propagationPolicy Foreground is not emulated")
        for word, wanted, found in (
            ("UID", options.uid, entry.uid),
            ("ResourceVersion", options.version, str(entry.version)),
        ):
            if wanted is not None and wanted != found:
                why = (
                    f"Precondition failed: {word} in precondition: {wanted}, {word} in object "
                    f"meta: {found}"
                )
                raise errors.conflict(resource.group, resource.plural, entry.key[1], why)

    def _grace_seconds(self, resource: Resource, obj: JsonObject, options: DeleteOptions) -> int:
        if not resource.is_pod:
            return 0
        if not obj["spec"].get("nodeName"):
            return 0
        if (obj.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            return 0
        asked = options.grace_seconds
        if asked is None:
            asked = obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        return 1 if asked < 0 else int(asked)

    def _orphan_dependents(self, owner: Entry) -> None:
        for storage, entry in self._store.owned_by(owner.uid):
            obj = entry.load()
            references = obj["metadata"].get("ownerReferences") or []
            kept = [reference for reference in references if reference["uid"] != owner.uid]
            if len(kept) != len(references):
                obj["metadata"]["ownerReferences"] = kept
                self._store.write(self._kinds.get(*storage), obj, entry)

    def _empty_namespace(self, resource: Resource, namespace: Entry) -> tuple[Entry, bool]:
        for storage, entry in self._store.in_namespace(namespace.key[1]):
            self.delete(self._kinds.get(*storage), entry, DeleteOptions())
        gone = self._store.get(resource, namespace.key) is None
        if not gone:
            gone = self.finish_namespace(namespace.key[1])
        return namespace, gone

    def finish_namespace(self, name: str) -> bool:
        """Drop a namespace that is going and empty; tell whether it went."""
        resource = self._kinds.core("namespaces")
        entry = self._store.get(resource, ("", name))
        if entry is None or "deletionTimestamp" not in entry.load()["metadata"]:
            return False
        if entry.load()["metadata"].get("finalizers") or self._store.has_objects_in(name):
            return False
        self._store.remove(resource, entry)
        return True

    def remove(self, resource: Resource, entry: Entry) -> Entry:
        """Drop an object at once, with what depends on its being there."""
        last = self._store.remove(resource, entry)
        if resource.kind == "CustomResourceDefinition":
            spec = entry.load()["spec"]
            self._unregister(spec["group"], spec["names"]["plural"])
        elif entry.key[0]:
            self.finish_namespace(entry.key[0])
        return last

    def _unregister(self, group: str, plural: str) -> None:
        try:
            resource = self._kinds.get(group, plural)
        except KeyError:
            return
        for key in list(self._store.collection(resource).order):
            self._store.remove(resource, self._store.collection(resource).entries[key])
        self._kinds.drop(group, plural)
        self._store.drop_collection(resource)

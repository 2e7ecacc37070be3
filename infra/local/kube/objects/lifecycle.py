"""Create and update: what is filled in, checked, kept, and counted."""

import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from infra.local.kube import errors
from infra.local.kube.calls import WriteOptions, timestamp
from infra.local.kube.errors import JsonObject
from infra.local.kube.kinds import Kinds, Resource
from infra.local.kube.objects import admission, defaults, versions
from infra.local.kube.objects.deletion import Deletion, is_finished
from infra.local.kube.objects.validation import change_complaints, complaints
from infra.local.kube.schemas.custom_resources import Schemas
from infra.local.kube.schemas.fields import clean
from infra.local.kube.store import Entry, Store

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NAME_ATTEMPTS = 8
_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Lifecycle:
    """The rules of writing, over a store."""

    def __init__(
        self, store: Store, kinds: Kinds, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.store = store
        self.kinds = kinds
        self.schemas = Schemas()
        self.deletion = Deletion(store, kinds, clock)
        # What server-side apply was last told, by uid and manager.
        self.applied: dict[str, dict[str, JsonObject]] = {}
        self._clock = clock

    def now(self) -> datetime:
        return self._clock()

    def require(self, resource: Resource, namespace: str, name: str) -> Entry:
        entry = self.store.get(resource, (namespace, name))
        if entry is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return entry

    # -- create ---------------------------------------------------------------------------

    def create(
        self, resource: Resource, namespace: str, obj: JsonObject, options: WriteOptions
    ) -> Entry:
        self._decode(resource, obj, options)
        options.warnings.extend(admission.not_enforced(resource))
        metadata = obj["metadata"]
        if resource.namespaced:
            if metadata.setdefault("namespace", namespace) != namespace:
                raise errors.bad_request(
                    f"the namespace of the provided object ({metadata['namespace']}) does not "
                    f"match the namespace sent on the request ({namespace})"
                )
            admission.check_namespace(self.store, self.kinds, resource, obj)
        else:
            metadata.pop("namespace", None)
        if not metadata.get("name"):
            metadata["name"] = self._generated_name(resource, metadata)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
            metadata.pop(key, None)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp(self.now())
        metadata.pop("generation", None)
        if resource.counts_generations:
            metadata["generation"] = 1
        self._complete(resource, obj, is_new=True)
        self._validate(resource, obj, None)
        where = (metadata.get("namespace", ""), metadata["name"])
        if self.store.get(resource, where) is not None:
            raise errors.already_exists(resource.group, resource.plural, metadata["name"])
        if options.dry_run:
            return self.store.entry(resource, obj, self.store.version)
        entry = self.store.write(resource, obj, None)
        self._after_write(resource, entry)
        return entry

    def _generated_name(self, resource: Resource, metadata: JsonObject) -> str:
        start = str(metadata.get("generateName") or "")
        if not start:
            cause = ("FieldValueRequired", "Required value: name or generateName is required",
                     "metadata.name")  # fmt: skip
            raise errors.invalid(resource.group, resource.kind, "", [cause])
        namespace = metadata.get("namespace", "")
        for _ in range(_NAME_ATTEMPTS):
            name = start[:58] + "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
            if self.store.get(resource, (namespace, name)) is None:
                break
        return name

    def _decode(self, resource: Resource, obj: JsonObject, options: WriteOptions) -> None:
        if not isinstance(obj.get("metadata"), dict):
            obj["metadata"] = {}
        unknown = clean(obj, resource)
        if resource.custom is not None:
            unknown += self.schemas.prune_and_default(resource, obj)
        if unknown and options.validation == "Strict":
            listed = ", ".join(f'unknown field "{path}"' for path in unknown)
            raise errors.bad_request(
                f"{resource.kind} in version {resource.version!r} cannot be handled as a "
                f"{resource.kind}: strict decoding error: {listed}"
            )
        if options.validation != "Ignore":
            options.warnings.extend(f'unknown field "{path}"' for path in unknown)
        versions.store(resource, obj)

    def _complete(self, resource: Resource, obj: JsonObject, *, is_new: bool) -> None:
        if resource.custom is None:
            defaults.fill(resource.kind, obj)
        if is_new:
            if resource.has_status and not (resource.kind == "Node" and not resource.group):
                defaults.first_status(resource.kind if resource.custom is None else "", obj)
            admission.admit(self.store, self.kinds, resource, obj)

    def _validate(self, resource: Resource, obj: JsonObject, old: JsonObject | None) -> None:
        causes = complaints(resource, obj)
        if old is not None:
            causes += change_complaints(resource, old, obj)
        if resource.custom is not None:
            causes += self.schemas.complaints(resource, obj)
        elif resource.kind == "CustomResourceDefinition":
            causes += self.schemas.definition_complaints(obj)
        if causes:
            name = obj["metadata"]["name"]
            raise errors.invalid(resource.group, resource.kind, name, causes)

    # -- update ---------------------------------------------------------------------------

    def update(
        self,
        resource: Resource,
        entry: Entry,
        obj: JsonObject,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> Entry:
        """Replace the state of an object.

        Args:
            entry: The state the new one was made from, just read.
            subresource: `status`, or another path that may write what the object's own may not.
        """
        old = entry.load()
        self._decode(resource, obj, options)
        self._check_identity(resource, entry, obj)
        self._keep_server_fields(resource, old, obj, subresource)
        if resource.is_pod:
            # Filled in by admission once, and kept when a client leaves them out.
            for key in ("priority", "preemptionPolicy"):
                obj.get("spec", {}).setdefault(key, old["spec"].get(key))
        self._complete(resource, obj, is_new=False)
        if subresource not in {"binding", "status"} or resource.custom is not None:
            self._validate(resource, obj, old)
        self._count_generation(resource, old, obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if obj == old:
            return entry
        if options.dry_run:
            return self.store.entry(resource, obj, entry.version)
        metadata = obj["metadata"]
        if is_finished(metadata):
            last = self.store.entry(resource, obj, entry.version)
            self.deletion.remove(resource, entry)
            return last
        written = self.store.write(resource, obj, entry)
        self._after_write(resource, written)
        return written

    def _check_identity(self, resource: Resource, entry: Entry, obj: JsonObject) -> None:
        metadata = obj["metadata"]
        namespace, name = entry.key
        if metadata.setdefault("name", name) != name:
            raise errors.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the "
                f"URL ({name})"
            )
        if namespace and metadata.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                f"the namespace of the object ({metadata['namespace']}) does not match the "
                f"namespace on the URL ({namespace})"
            )
        uid = metadata.get("uid")
        if uid and uid != entry.uid:
            why = (
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
            )
            raise errors.conflict(resource.group, resource.plural, name, why)
        version = metadata.get("resourceVersion")
        if version and version != str(entry.version):
            why = (
                "the object has been modified; please apply your changes to the latest version "
                "and try again"
            )
            raise errors.conflict(resource.group, resource.plural, name, why)

    def _keep_server_fields(
        self, resource: Resource, old: JsonObject, obj: JsonObject, subresource: str
    ) -> None:
        was, now = old["metadata"], obj["metadata"]
        for key in (*_SERVER_SET, "generation"):
            now.pop(key, None)
            if key in was:
                now[key] = was[key]
        now.pop("managedFields", None)
        if subresource == "status":
            if resource.custom is not None:
                obj["metadata"] = dict(was)
            kept = {key: old[key] for key in old if key not in {"metadata", "status"}}
            for key in [key for key in obj if key not in {"metadata", "status"}]:
                del obj[key]
            obj.update(kept)
        elif resource.has_status and not subresource:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]

    def _count_generation(self, resource: Resource, old: JsonObject, obj: JsonObject) -> None:
        if resource.counts_generations:
            ignored = ("metadata", "status", "kind", "apiVersion")
            was = {key: value for key, value in old.items() if key not in ignored}
            now = {key: value for key, value in obj.items() if key not in ignored}
            if was != now:
                obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    # -- definitions ----------------------------------------------------------------------

    def _after_write(self, resource: Resource, entry: Entry) -> None:
        if resource.kind == "CustomResourceDefinition":
            self.schemas.register(self.store, self.kinds, resource, entry, self.now())
        elif resource.kind == "Namespace" and resource.group == "":
            obj = entry.load()
            if "deletionTimestamp" in obj["metadata"]:
                self.deletion.finish_namespace(entry.key[1])
            else:
                self._add_service_account(entry.key[1])

    def _add_service_account(self, namespace: str) -> None:
        resource = self.kinds.core("serviceaccounts")
        if self.store.get(resource, (namespace, "default")) is None:
            account: JsonObject = {"metadata": {"name": "default"}}
            self.create(resource, namespace, account, WriteOptions())

    def start_cluster(self, namespaces: tuple[str, ...], classes: dict[str, Any]) -> None:
        """Make what a fresh cluster has: namespaces and the system priority classes."""
        options = WriteOptions()
        for name in namespaces:
            self.create(self.kinds.core("namespaces"), "", {"metadata": {"name": name}}, options)
        for name, value in classes.items():
            obj = {"metadata": {"name": name}, "value": value}
            resource = self.kinds.get("scheduling.k8s.io", "priorityclasses")
            self.create(resource, "", obj, options)

"""Objects of any kind over one API server: server-side apply, and all objects of a namespace.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/ and
https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api (2026-11).
"""

from collections.abc import Iterator
from typing import Final

from functions.cli.attach.objects import ObjectKey
from shared.kube.api import KubeApi, path_to, raise_unless_ok
from shared.kube.lists import list_all
from shared.kube.nodes import NODES_PATH
from shared.manifests.nodes import decode_node
from shared.manifests.raw_json import Raw, mapping, mappings, text, texts
from shared.model.errors import AutoscalerError, NotFoundError, UnavailableError

_APPLY: Final = "application/apply-patch+yaml"
_MANAGER: Final = "dovetail-attach"
# API path and resource name of the kinds of an installation.
_PLACES: Final = {
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Namespace": ("/api/v1", "namespaces"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
    "Deployment": ("/apis/apps/v1", "deployments"),
}
# Groups of metrics: their objects cannot be deleted and disappear with the measured objects.
_MEASURED: Final = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})


class KubeObjects:
    """Reads and writes objects of one cluster with the caller's permissions.

    Args:
        api: The cluster's API server.
    """

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def find(self, key: ObjectKey) -> Raw | None:
        """Return an object, None when there is none."""
        reply = self._api.send("GET", _path(key))
        if reply.status == 404:
            return None
        raise_unless_ok(reply, str(key))
        return reply.body

    def apply(self, document: Raw, *, dry_run: bool = False) -> Raw:
        """Apply the document to the object (server-side apply); return the object.

        Args:
            dry_run: Whether the server only returns what the object would be.

        Raises:
            RejectedError: If the server does not accept the document.
        """
        key = ObjectKey.of(document)
        query = [("fieldManager", _MANAGER), ("force", "true")]
        if dry_run:
            query.append(("dryRun", "All"))
        reply = self._api.send("PATCH", _path(key), body=document, query=query, content_type=_APPLY)
        raise_unless_ok(reply, f"apply {key}")
        return reply.body

    def delete(self, key: ObjectKey) -> None:
        """Delete an object if it exists and, in the background, what it owns."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        reply = self._api.send("DELETE", _path(key), body=options)
        if reply.status != 404:
            raise_unless_ok(reply, f"delete {key}")

    def defined_by(self, definition: Raw) -> tuple[str, ...]:
        """Return the names of the objects of a CustomResourceDefinition's kind, sorted."""
        spec = mapping(definition.get("spec"))
        served = [
            text(version.get("name"))
            for version in mappings(spec.get("versions"))
            if version.get("served")
        ]
        plural = text(mapping(spec.get("names")).get("plural"))
        found: set[str] = set()
        for version in served[:1]:
            path = f"/apis/{text(spec.get('group'))}/{version}/{plural}"
            found |= {text(mapping(raw.get("metadata")).get("name")) for raw in self._listed(path)}
        return tuple(sorted(found))

    def pods(self, namespace: str) -> tuple[Raw, ...]:
        """Return the pods of a namespace, sorted by name."""
        found = self._listed(path_to("/api/v1/namespaces", namespace, "pods"))
        return tuple(sorted(found, key=lambda raw: text(mapping(raw.get("metadata")).get("name"))))

    def content(self, namespace: str) -> tuple[Raw, ...]:
        """Return all objects of a namespace, of every kind that is served, with their kinds.

        Raises:
            UnavailableError: If the server announces a kind that cannot be listed.
        """
        found: list[Raw] = []
        for version in ("v1", *self._group_versions()):
            root = "/api/v1" if version == "v1" else f"/apis/{version}"
            for resource in mappings(self._read(root).get("resources")):
                name = text(resource.get("name"))
                if not resource.get("namespaced") or "list" not in texts(resource.get("verbs")):
                    continue
                path = path_to(f"{root}/namespaces", namespace, name)
                kind = {"apiVersion": version, "kind": resource.get("kind")}
                found += [{**raw, **kind} for raw in self._listed(path)]
        return tuple(found)

    def own_nodes(self) -> tuple[str, ...]:
        """Return the names of the Nodes that Dovetail has launched, sorted."""
        nodes = list_all(self._api, NODES_PATH, decode_node)
        return tuple(sorted(node.name for node in nodes if node.is_ours))

    def _group_versions(self) -> Iterator[str]:
        for group in mappings(self._read("/apis").get("groups")):
            if group.get("name") not in _MEASURED:
                yield text(mapping(group.get("preferredVersion")).get("groupVersion"))

    def _read(self, path: str) -> Raw:
        try:
            return self._api.get(path)
        except AutoscalerError as error:
            raise UnavailableError(f"{path} is announced and does not answer: {error}") from error

    def _listed(self, path: str) -> list[Raw]:
        try:
            return list(list_all(self._api, path, lambda raw: raw))
        except NotFoundError:
            return []


def _path(key: ObjectKey) -> str:
    root, plural = _PLACES[key.kind]
    if key.namespace:
        return path_to(f"{root}/namespaces", key.namespace, plural, key.name)
    return path_to(f"{root}/{plural}", key.name)

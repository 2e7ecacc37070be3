"""Karpenter's Deployment, lease and NodeClaims over one API server.

Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/templates/_helpers.tpl
(labels of its Deployment) and
https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/operator/options/options.go (the name
of its lease) (2026-11).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from functions.cli.migrate.node_claim_documents import decode_node_claim
from functions.cli.migrate.node_claims import NODE_CLAIM_VERSION, NodeClaim
from shared.kube.api import JSON_PATCH, KubeApi, Reply, path_to, raise_unless_ok
from shared.kube.lists import list_all
from shared.kube.paths_and_documents import delete_options
from shared.kube.rivals import is_lease_held
from shared.manifests.raw_json import Raw, integer, mapping, text
from shared.model import labels as keys
from shared.model.errors import ConflictError, NotFoundError, NotInstalledError

NODE_CLAIMS_PATH: Final = f"/apis/{NODE_CLAIM_VERSION}/nodeclaims"
_DEPLOYMENTS_PATH: Final = "/apis/apps/v1/deployments"
_LEASES_PATH: Final = "/apis/coordination.k8s.io/v1/leases"
_LEASE: Final = "karpenter-leader-election"
_OF_KARPENTER: Final = (("labelSelector", "app.kubernetes.io/name=karpenter"),)


class KarpenterObjects:
    """Implements functions.cli.migrate.karpenter.Karpenter; caches nothing.

    Args:
        api: The cluster's API server.
        now: Returns the current time, which decides whether a lease is stale.
    """

    def __init__(self, api: KubeApi, now: Callable[[], datetime]) -> None:
        self._api = api
        self._now = now

    def running(self) -> tuple[str, ...]:
        """Return why Karpenter runs or may run, each with the remedy, sorted; never cached.

        Unlike in KubeRivals, a lease in any namespace counts: a migration can wait.
        """
        deployments = list_all(self._api, _DEPLOYMENTS_PATH, _scaled, _OF_KARPENTER)
        query = (("fieldSelector", f"metadata.name={_LEASE}"),)
        leases = list_all(self._api, _LEASES_PATH, self._held, query)
        return tuple(sorted(reason for reason in (*deployments, *leases) if reason))

    def _held(self, raw: Raw) -> str:
        if not is_lease_held(raw, _LEASE, self._now()):
            return ""
        namespace = text(mapping(raw.get("metadata")).get("namespace"))
        holder = text(mapping(raw.get("spec")).get("holderIdentity"))
        return (
            f"lease {namespace}/{_LEASE} was renewed by {holder} within the last two minutes: "
            "stop Karpenter, then wait"
        )

    def node_claims(self) -> tuple[NodeClaim, ...]:
        """Return all NodeClaims, sorted by name.

        Raises:
            NotInstalledError: If the cluster does not define NodeClaims.
        """
        try:
            found = list_all(self._api, NODE_CLAIMS_PATH, decode_node_claim)
        except NotFoundError as error:
            raise NotInstalledError(
                "NodeClaims of karpenter.sh/v1 are not defined in the cluster: install Karpenter's "
                "definitions, or there is nothing to migrate"
            ) from error
        return tuple(sorted(found, key=lambda claim: claim.name))

    def make_node_claim(self, document: Mapping[str, Any]) -> NodeClaim:
        """Create a NodeClaim, without a status, and return it.

        Raises:
            ConflictError: If one of that name exists.
        """
        reply = self._api.send("POST", NODE_CLAIMS_PATH, body=document)
        raise_unless_ok(reply, f"create NodeClaim {document['metadata']['name']}")
        return decode_node_claim(reply.body)

    def write_status(self, claim: NodeClaim, status: Mapping[str, Any]) -> None:
        """Write the status of a NodeClaim if it was not changed since it was read.

        Raises:
            ConflictError: If it was changed since, or is gone.
        """
        change = [{"op": "add", "path": "/status", "value": dict(status)}]
        self._patch(claim, change, "/status")

    def remove_finalizer(self, claim: NodeClaim) -> None:
        """Remove Karpenter's finalizer from a NodeClaim if it was not changed since it was read.

        Raises:
            ConflictError: If it was changed since, or is gone.
        """
        kept = [name for name in claim.finalizers if name != keys.TERMINATION_FINALIZER]
        self._patch(claim, [{"op": "add", "path": "/metadata/finalizers", "value": kept}])

    def delete_node_claim(self, claim: NodeClaim) -> None:
        """Delete a NodeClaim if it exists and was not changed since it was read.

        Raises:
            ConflictError: If it was changed since: it may have its finalizer again.
        """
        body = delete_options({"uid": claim.uid, "resourceVersion": claim.resource_version})
        reply = self._api.send("DELETE", path_to(NODE_CLAIMS_PATH, claim.name), body=body)
        if reply.status != 404:
            raise_unless_ok(reply, f"delete NodeClaim {claim.name}")

    def _patch(self, claim: NodeClaim, change: list[dict[str, Any]], part: str = "") -> None:
        """Patch a NodeClaim, or a part of it, if it was not changed since it was read."""
        tests = [
            {"op": "test", "path": "/metadata/uid", "value": claim.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": claim.resource_version},
        ]
        path = path_to(NODE_CLAIMS_PATH, claim.name)
        reply = self._api.send(
            "PATCH", f"{path}{part}", body=[*tests, *change], content_type=JSON_PATCH
        )
        if reply.status == 404 or (reply.status == 422 and self._is_changed(claim)):
            raise ConflictError(f"NodeClaim {claim.name} has changed since it was read")
        raise_unless_ok(reply, f"change NodeClaim {claim.name}")

    def _is_changed(self, claim: NodeClaim) -> bool:
        """Return whether it has changed: a failed test has the status of a refused value."""
        reply: Reply = self._api.send("GET", path_to(NODE_CLAIMS_PATH, claim.name))
        found = decode_node_claim(reply.body)
        return (found.uid, found.resource_version) != (claim.uid, claim.resource_version)


def _scaled(raw: Raw) -> str:
    """Return the remedy for a Deployment that has or wants replicas, empty when it has none."""
    metadata, spec, status = (mapping(raw.get(k)) for k in ("metadata", "spec", "status"))
    namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
    wanted = integer(spec.get("replicas"))
    left = max(1 if wanted is None else wanted, integer(status.get("replicas")) or 0)
    if not left:
        return ""
    return (
        f"Deployment {namespace}/{name} has {left} replicas: "
        f"kubectl -n {namespace} scale deployment {name} --replicas 0"
    )

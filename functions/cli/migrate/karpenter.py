"""A Karpenter v1 of the cluster, from which nodes are taken over and to which they are returned."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from functions.cli.migrate.node_claims import NodeClaim


class Karpenter(Protocol):
    """The objects of Karpenter that a migration reads and writes."""

    def running(self) -> tuple[str, ...]:
        """Return why Karpenter runs or may run, each with the remedy, sorted; never cached.

        It is stopped when none of its Deployments has or wants replicas and its lease is not
        renewed.
        """
        ...

    def node_claims(self) -> tuple[NodeClaim, ...]:
        """Return all NodeClaims, sorted by name.

        Raises:
            NotInstalledError: If the cluster does not define NodeClaims.
        """
        ...

    def make_node_claim(self, document: Mapping[str, Any]) -> NodeClaim:
        """Create a NodeClaim, without a status, and return it.

        Raises:
            ConflictError: If one of that name exists.
        """
        ...

    def write_status(self, claim: NodeClaim, status: Mapping[str, Any]) -> None:
        """Write the status of a NodeClaim if it was not changed since it was read.

        Raises:
            ConflictError: If it was changed since, or is gone.
        """
        ...

    def remove_finalizer(self, claim: NodeClaim) -> None:
        """Remove Karpenter's finalizer from a NodeClaim if it was not changed since it was read.

        Raises:
            ConflictError: If it was changed since, or is gone.
        """
        ...

    def delete_node_claim(self, claim: NodeClaim) -> None:
        """Delete a NodeClaim if it exists and was not changed since it was read.

        Raises:
            ConflictError: If it was changed since: it may have its finalizer again.
        """
        ...


class InstanceTags(Protocol):
    """Changes the tags of a cluster's instances; the permission is granted for a migration."""

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Add tags to an instance, or replace their values."""
        ...

    def untag(self, instance_id: str, tag_keys: Sequence[str]) -> None:
        """Remove tags from an instance, whatever their values; missing tags are ignored."""
        ...

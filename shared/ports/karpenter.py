"""A Karpenter v1 of the cluster, from which nodes are taken over and to which they go back."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from shared.model.kubernetes.node_claims import NodeClaim


class Karpenter(Protocol):
    """What a migration reads and writes of Karpenter's objects."""

    def running(self) -> tuple[str, ...]:
        """Return why Karpenter runs or may run, each with the remedy, sorted; never remembered.

        It is at rest when no Deployment of it has or wants replicas and its lease is not renewed.
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
        """Write the status of a NodeClaim if it is still as it was read.

        Raises:
            ConflictError: If it was changed since, or is gone.
        """
        ...

    def remove_finalizer(self, claim: NodeClaim) -> None:
        """Remove Karpenter's finalizer from a NodeClaim if it is still as it was read.

        Raises:
            ConflictError: If it was changed since, or is gone.
        """
        ...

    def delete_node_claim(self, claim: NodeClaim) -> None:
        """Delete a NodeClaim if it is still as it was read; gone already is fine.

        Raises:
            ConflictError: If it was changed since: its finalizer may be there again.
        """
        ...


class MachineTags(Protocol):
    """The right to change the tags of a cluster's machines, lent for a migration."""

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        """Add tags to a machine, or replace their values."""
        ...

    def untag(self, instance_id: str, tag_keys: Sequence[str]) -> None:
        """Remove tags from a machine, whatever their values; missing ones are fine."""
        ...

"""NodeClaims: Karpenter v1's object for each instance that it launched."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field

from shared.model import labels as keys

NODE_CLAIM_VERSION: Final = "karpenter.sh/v1"
NODE_CLAIM_KIND: Final = "NodeClaim"
# Tags of Karpenter's instances, besides those with the keys of labels.
TAG_NODE_CLAIM: Final = "karpenter.sh/nodeclaim"
TAG_EKS_CLUSTER: Final = "eks:eks-cluster-name"


class NodeClaim(Struct, frozen=True, kw_only=True):
    """A NodeClaim.

    Attributes:
        node_pool: Name of its NodePool, empty for a NodeClaim that a user created.
        provider_id: Of its instance; Karpenter finds Node and instance by this alone.
        registered: Whether its Node has registered.
        kept: What is needed to create it again: name, labels, annotations and spec; also, as
            `drifted`, why Karpenter would replace the instance, empty when it would not.
    """

    name: str
    uid: str
    resource_version: str = ""
    node_pool: str = ""
    provider_id: str = ""
    registered: bool = False
    finalizers: tuple[str, ...] = ()
    deletion_at: datetime | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_finalized(self) -> bool:
        """Whether its deletion waits for Karpenter, which then terminates the instance."""
        return keys.TERMINATION_FINALIZER in self.finalizers

    @property
    def other_finalizers(self) -> tuple[str, ...]:
        """Finalizers that are not Karpenter's."""
        return tuple(name for name in self.finalizers if name != keys.TERMINATION_FINALIZER)

    def as_owner(self) -> dict[str, Any]:
        """Return its owner reference for its Node, as Karpenter writes it.

        Source: https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/utils/nodeclaim/nodeclaim.go
        (UpdateNodeOwnerReferences, 2026-11).
        """
        return {
            "apiVersion": NODE_CLAIM_VERSION,
            "kind": NODE_CLAIM_KIND,
            "name": self.name,
            "uid": self.uid,
            "blockOwnerDeletion": True,
        }

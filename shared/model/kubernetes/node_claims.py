"""NodeClaims: what Karpenter v1 keeps of each machine that it launched."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from shared.model import labels as keys

NODE_CLAIM_VERSION: Final = "karpenter.sh/v1"
NODE_CLAIM_KIND: Final = "NodeClaim"
# Tags of Karpenter's machines, besides those with the keys of labels.
TAG_NODE_CLAIM: Final = "karpenter.sh/nodeclaim"
TAG_EKS_CLUSTER: Final = "eks:eks-cluster-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClaim:
    """What Karpenter knows of one of its machines.

    Attributes:
        node_pool: Name of its NodePool, empty for a NodeClaim that a user made.
        provider_id: Of its machine; Karpenter finds Node and machine by this alone.
        registered: Whether its Node has joined.
        kept: What makes it again: name, labels, annotations and spec; beside these, as `drifted`,
            why Karpenter would replace the machine, empty when it would not.
    """

    name: str
    uid: str
    resource_version: str = ""
    node_pool: str = ""
    provider_id: str = ""
    registered: bool = False
    finalizers: tuple[str, ...] = ()
    deletion_at: datetime | None = None
    kept: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_finalized(self) -> bool:
        """Whether its deletion waits for Karpenter, which terminates the machine then."""
        return keys.TERMINATION_FINALIZER in self.finalizers

    @property
    def other_finalizers(self) -> tuple[str, ...]:
        """Finalizers that are not Karpenter's."""
        return tuple(name for name in self.finalizers if name != keys.TERMINATION_FINALIZER)

    def as_owner(self) -> dict[str, Any]:
        """Return what makes it the owner of its Node, as Karpenter writes it.

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

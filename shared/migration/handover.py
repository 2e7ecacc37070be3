"""What a node needs next to change hands: decided from what is there, whatever was done before.

Karpenter terminates a machine that carries its three tags (`karpenter.sh/nodepool`,
`karpenter.k8s.aws/ec2nodeclass`, and `eks:eks-cluster-name` with its cluster) and whose providerID
no NodeClaim has, 30 s after its launch. It also deletes a registered NodeClaim whose machine does
not carry these tags while the Node is not Ready, and with the NodeClaim goes the machine, found by
its id alone. So the tags change first on the way from Karpenter and last on the way back, and only
Ready nodes change hands.

It adds its finalizer to each NodeClaim that lacks it, and a NodeClaim that is deleted with it ends
the machine: the NodeClaim is deleted as it was read when the finalizer had been removed, or not at
all. For a NodeClaim that is not Launched it launches a machine: the status follows at once.

Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/controllers/nodeclaim/garbagecollection/controller.go,
.../pkg/providers/instance/instance.go (List, Get);
https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/controllers/nodeclaim/garbagecollection/controller.go,
.../pkg/controllers/nodeclaim/lifecycle/controller.go (Reconcile, finalize), .../launch.go,
.../registration.go (2026-11).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from shared.disruption.drift import HASH_VERSION, shape_hash
from shared.model import labels as keys
from shared.model.ec2.launches import Instance, Slot
from shared.model.kubernetes.node_claims import (
    TAG_EKS_CLUSTER,
    TAG_NODE_CLAIM,
    NodeClaim,
)
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner

# What makes a machine Karpenter's; the third tag, which other programs read as well, stays.
THEIR_TAGS: Final = (keys.NODE_POOL, keys.NODE_CLASS, TAG_NODE_CLAIM)
OUR_TAGS: Final = (
    keys.PROVISIONER_NAME,
    keys.TAG_ATTEMPT,
    keys.TAG_CLUSTER,
    keys.TAG_GROUP,
    keys.TAG_NODE_POOL,
    keys.TAG_PLAN,
)
_OUR_ANNOTATIONS: Final = (
    keys.EXPIRE_AFTER,
    keys.HASH_VERSION,
    keys.IMAGE_ID,
    keys.PRICE,
    keys.PROVISIONER_HASH,
    keys.SLOT,
    keys.TERMINATION_GRACE_PERIOD,
)
# Why Karpenter would replace a machine, of what Dovetail compares by a hash; it looks itself for
# the other reasons.
_BY_HASH: Final = frozenset({"NodePoolDrifted", "NodeClassDrift"})


class Direction(StrEnum):
    """Which way nodes go."""

    TAKE_OVER = "take over"
    HAND_BACK = "hand back"


class Step(StrEnum):
    """One write, as it is told once it is made."""

    KEEP_CLAIM = "NodeClaim kept in an annotation of the Node"
    WRITE_LEDGER = "written into the ledger"
    TAG_OURS = "tagged as Dovetail's"
    UNTAG_THEIRS = "Karpenter's tags removed"
    FREE_NODE = "finalizer and owner removed from the Node"
    FREE_CLAIM = "finalizer removed from the NodeClaim"
    DELETE_CLAIM = "NodeClaim deleted"
    OWN_NODE = "Node is Dovetail's"
    CLOSE_SLOT = "slot closed in the ledger"
    DISOWN_NODE = "Node is no longer Dovetail's"
    MAKE_CLAIM = "NodeClaim made again"
    WRITE_STATUS = "status of the NodeClaim written"
    GIVE_NODE = "Node has the NodeClaim's finalizer and owner"
    TAG_THEIRS = "tagged as Karpenter's"
    UNTAG_OURS = "Dovetail's tags removed"
    DROP_LEDGER = "removed from the ledger"
    FORGET_CLAIM = "kept NodeClaim removed from the Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """One node as cluster, EC2 and ledger show it now.

    Attributes:
        claim: Its NodeClaim, None when it has none.
        instance: Its machine, None when EC2 knows none.
        owner: Its NodePool, None when Dovetail cannot use it.
        owner_problem: Why not.
        slot: Its open slot in the ledger, None without one.
        in_ledger: Whether the ledger knows the machine as this cluster's.
        their_tags: Tags that make the machine Karpenter's.
        kept_drift: Why Karpenter would replace it, as its kept NodeClaim says.
        kept_age: The age at which it expires by force, as its kept NodeClaim says; in the form of
            the annotation for it, empty when the NodeClaim does not say.
        kept_grace: How long its drain may last, likewise.
        name_taken: Name of the NodeClaim it had, when another machine has that one now.
    """

    cluster: str
    node: Node
    claim: NodeClaim | None = None
    instance: Instance | None = None
    owner: Provisioner | None = None
    owner_problem: str = ""
    slot: Slot | None = None
    in_ledger: bool = False
    their_tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    kept_drift: str = ""
    kept_age: str = ""
    kept_grace: str = ""
    name_taken: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether its Node keeps a NodeClaim: it is Dovetail's by a take-over, or on its way."""
        return keys.NODE_CLAIM in self.node.annotations

    @property
    def our_tags(self) -> dict[str, str]:
        """Tags that make the machine Dovetail's."""
        pool = self.owner.name if self.owner is not None else ""
        return {
            keys.PROVISIONER_NAME: pool,
            keys.TAG_NODE_POOL: pool,
            keys.TAG_CLUSTER: self.cluster,
            keys.TAG_PLAN: f"{keys.TAKE_OVER_PLAN}{self.node.instance_id}",
            keys.TAG_GROUP: "0",
            keys.TAG_ATTEMPT: "1",
        }

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags that the machine has now."""
        return self.instance.tags if self.instance is not None else {}


def next_step(seen: Handover, direction: Direction) -> Step | None:
    """Return what is to be done first, None when the node has changed hands."""
    if direction == Direction.TAKE_OVER:
        return _next_of_take_over(seen)
    return _next_of_hand_back(seen)


def _next_of_take_over(seen: Handover) -> Step | None:
    node, claim = seen.node, seen.claim
    owned = keys.SLOT in node.annotations
    owners = {claim.uid} & {*node.owners} if claim is not None else set()
    finalized = keys.TERMINATION_FINALIZER in node.finalizers
    needs = (
        (Step.KEEP_CLAIM, not seen.is_kept and claim is not None),
        (Step.WRITE_LEDGER, not seen.in_ledger and not owned),
        (Step.TAG_OURS, not seen.our_tags.items() <= seen.tags.items()),
        (Step.UNTAG_THEIRS, any(key in seen.tags for key in THEIR_TAGS)),
        (Step.FREE_NODE, bool(owners) or (claim is not None and finalized and not owned)),
        (Step.FREE_CLAIM, claim is not None and claim.is_finalized),
        (Step.DELETE_CLAIM, claim is not None),
        (Step.OWN_NODE, not (owned and finalized and _is_owned_by(node, seen.owner))),
        (Step.CLOSE_SLOT, seen.slot is not None),
    )
    return next((step for step, needed in needs if needed), None)


def _next_of_hand_back(seen: Handover) -> Step | None:
    node, claim = seen.node, seen.claim
    owned = keys.SLOT in node.annotations
    given = (
        claim is not None
        and claim.uid in node.owners
        and keys.TERMINATION_FINALIZER in node.finalizers
    )
    known = claim is not None and claim.registered and claim.provider_id == node.provider_id
    needs = (
        (Step.DISOWN_NODE, owned),
        (Step.MAKE_CLAIM, claim is None),
        (Step.WRITE_STATUS, not known),
        (Step.GIVE_NODE, not given),
        (Step.TAG_THEIRS, not seen.their_tags.items() <= seen.tags.items()),
        (Step.UNTAG_OURS, any(key in seen.tags for key in OUR_TAGS)),
        (Step.DROP_LEDGER, seen.slot is not None or seen.in_ledger),
        (Step.FORGET_CLAIM, seen.is_kept),
    )
    return next((step for step, needed in needs if needed), None)


def _is_owned_by(node: Node, owner: Provisioner | None) -> bool:
    return owner is not None and owner.uid in node.owners


def why_not(seen: Handover, direction: Direction) -> str:
    """Return why a node must not change hands, with the remedy; empty when it may."""
    node, claim = seen.node, seen.claim
    if node.deletion_at is not None or (claim is not None and claim.deletion_at is not None):
        return (
            "it is being removed: wait until it is gone; a removal that Karpenter began goes on "
            "when it runs"
        )
    if node.ready is not True:
        return "the Node is not Ready: Karpenter and Dovetail both count its machine as lost"
    if seen.instance is None or not seen.instance.is_running:
        return f"EC2 shows no running instance {node.instance_id or 'for its providerID'}"
    if any(taint.key == keys.DISRUPTED_TAINT for taint in node.taints):
        return (
            "Karpenter has chosen it for removal: "
            f"kubectl taint node {node.name} {keys.DISRUPTED_TAINT}-"
        )
    if reason := node.annotations.get(keys.REMOVAL_REASON, ""):
        return f"Dovetail is removing it: {reason}; wait until it is gone"
    if seen.owner is None:
        return seen.owner_problem
    if direction == Direction.TAKE_OVER:
        return _why_not_taken(seen)
    if not seen.is_kept:
        return "Dovetail launched it: drain it once Karpenter runs, which launches another"
    if seen.claim is None and seen.name_taken:
        return (
            f"its NodeClaim {seen.name_taken} is of another instance now: delete that one while "
            "Karpenter runs"
        )
    return ""


def _why_not_taken(seen: Handover) -> str:
    claim, tag = seen.claim, f"kubernetes.io/cluster/{seen.cluster}"
    if seen.tags.get(tag) != "owned":
        return f"its instance lacks the tag {tag}=owned: add it, as Karpenter does for its own"
    if claim is None:
        return ""
    if not claim.registered and not seen.is_kept:
        return "its NodeClaim is not registered yet: wait until it is"
    if claim.other_finalizers:
        named = ", ".join(claim.other_finalizers)
        return f"its NodeClaim has finalizers of other programs: {named}; remove them first"
    return ""


def annotations_of_ours(seen: Handover, slot: Slot) -> dict[str, str | None]:
    """Return the annotations of a Node of Dovetail, for one that was taken over.

    One that Karpenter counts as drifted by a hash stays so: its hash is none that Dovetail writes.
    """
    drifted = seen.kept_drift if seen.kept_drift in _BY_HASH else ""
    written = f"karpenter-{drifted}" if drifted else ""
    return {
        keys.SLOT: slot.name,
        keys.IMAGE_ID: seen.instance.image_id if seen.instance is not None else "",
        keys.PRICE: str(slot.price_micros_per_hour or ""),
        keys.PROVISIONER_HASH: written or (shape_hash(seen.owner) if seen.owner else ""),
        keys.HASH_VERSION: HASH_VERSION,
        keys.EXPIRE_AFTER: seen.kept_age or None,
        keys.TERMINATION_GRACE_PERIOD: seen.kept_grace or None,
    }


def no_annotations_of_ours() -> dict[str, str | None]:
    """Return the same taken off."""
    return dict.fromkeys(_OUR_ANNOTATIONS)


def tags_of_theirs(
    claim_name: str, node_pool: str, node_class: str, cluster: str
) -> dict[str, str]:
    """Return the tags by which Karpenter finds a machine.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/v1/labels.go and
    .../pkg/controllers/nodeclaim/tagging/controller.go (2026-11).
    """
    return {
        keys.NODE_POOL: node_pool,
        keys.NODE_CLASS: node_class,
        TAG_NODE_CLAIM: claim_name,
        TAG_EKS_CLUSTER: cluster,
    }

"""Decides the next write of a hand-over from the current state of cluster, EC2 and ledger alone.

Karpenter terminates an instance that has its three tags (`karpenter.sh/nodepool`,
`karpenter.k8s.aws/ec2nodeclass`, and `eks:eks-cluster-name` with its cluster) and whose providerID
no NodeClaim has, 30 s after its launch. It also deletes a registered NodeClaim whose instance does
not have these tags while the Node is not Ready, and with the NodeClaim it terminates the instance,
found by its id alone. So the tags change first on the way from Karpenter and last on the way back,
and only Ready nodes change hands.

Karpenter adds its finalizer to each NodeClaim that lacks it, and deleting a NodeClaim that has it
terminates the instance: so a NodeClaim is deleted only in the version in which the finalizer was
seen to be removed. For a NodeClaim that is not Launched, Karpenter launches an instance: so the
status is written immediately after the NodeClaim.

Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/controllers/nodeclaim/garbagecollection/controller.go,
.../pkg/providers/instance/instance.go (List, Get);
https://github.com/kubernetes-sigs/karpenter/blob/v1.14.1/pkg/controllers/nodeclaim/garbagecollection/controller.go,
.../pkg/controllers/nodeclaim/lifecycle/controller.go (Reconcile, finalize), .../launch.go,
.../registration.go (2026-11).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from functions.cli.migrate.node_claims import (
    TAG_EKS_CLUSTER,
    TAG_NODE_CLAIM,
    NodeClaim,
)
from shared.disruption.drift import HASH_VERSION, shape_hash
from shared.model import labels as keys
from shared.model.ec2.launches import Instance, Slot
from shared.model.kubernetes.nodes import Node
from shared.model.provisioner import Provisioner

# The tags that make an instance Karpenter's; its third tag, which others read as well, stays.
KARPENTER_TAGS: Final = (keys.NODE_POOL, keys.NODE_CLASS, TAG_NODE_CLAIM)
DOVETAIL_TAGS: Final = (
    keys.PROVISIONER_NAME,
    keys.TAG_ATTEMPT,
    keys.TAG_CLUSTER,
    keys.TAG_GROUP,
    keys.TAG_NODE_POOL,
    keys.TAG_PLAN,
)
_DOVETAIL_ANNOTATIONS: Final = (
    keys.EXPIRE_AFTER,
    keys.HASH_VERSION,
    keys.IMAGE_ID,
    keys.PRICE,
    keys.PROVISIONER_HASH,
    keys.SLOT,
    keys.TERMINATION_GRACE_PERIOD,
)
# Karpenter's reasons to replace an instance that Dovetail compares by a hash; it checks the other
# reasons itself.
_BY_HASH: Final = frozenset({"NodePoolDrifted", "NodeClassDrift"})


class Direction(StrEnum):
    """The direction in which nodes change hands."""

    TAKE_OVER = "take over"
    HAND_BACK = "hand back"


class HandoverStep(StrEnum):
    """One write, as it is reported once it is done."""

    KEEP_CLAIM = "NodeClaim kept in an annotation of the Node"
    WRITE_LEDGER = "written into the ledger"
    ADD_DOVETAIL_TAGS = "tagged as Dovetail's"
    REMOVE_KARPENTER_TAGS = "Karpenter's tags removed"
    UNLINK_NODE = "finalizer and owner removed from the Node"
    REMOVE_CLAIM_FINALIZER = "finalizer removed from the NodeClaim"
    DELETE_CLAIM = "NodeClaim deleted"
    OWN_NODE = "Node is Dovetail's"
    CLOSE_SLOT = "slot closed in the ledger"
    DISOWN_NODE = "Node is no longer Dovetail's"
    MAKE_CLAIM = "NodeClaim made again"
    WRITE_STATUS = "status of the NodeClaim written"
    LINK_NODE = "Node has the NodeClaim's finalizer and owner"
    ADD_KARPENTER_TAGS = "tagged as Karpenter's"
    REMOVE_DOVETAIL_TAGS = "Dovetail's tags removed"
    DROP_LEDGER = "removed from the ledger"
    FORGET_CLAIM = "kept NodeClaim removed from the Node"


class Handover(Struct, frozen=True, kw_only=True):
    """One node as cluster, EC2 and ledger show it now.

    Attributes:
        claim: Its NodeClaim, None when it has none.
        instance: Its instance, None when EC2 knows none.
        owner: Its NodePool, None when Dovetail cannot use it.
        owner_problem: Why Dovetail cannot use its NodePool.
        slot: Its open slot in the ledger, None without one.
        in_ledger: Whether the ledger knows the instance as this cluster's.
        karpenter_tags: Tags that make the instance Karpenter's.
        kept_drift: Why Karpenter would replace it, as its kept NodeClaim says.
        kept_expire_after: The age at which it expires by force, as its kept NodeClaim says; in the
            form of the annotation for it, empty when the NodeClaim does not say.
        kept_grace_period: How long its drain may last, likewise.
        name_taken: Name of the NodeClaim it had, if another instance's NodeClaim has it now.
    """

    cluster: str
    node: Node
    claim: NodeClaim | None = None
    instance: Instance | None = None
    owner: Provisioner | None = None
    owner_problem: str = ""
    slot: Slot | None = None
    in_ledger: bool = False
    karpenter_tags: Mapping[str, str] = field(default_factory=dict)
    kept_drift: str = ""
    kept_expire_after: str = ""
    kept_grace_period: str = ""
    name_taken: str = ""

    @property
    def keeps_claim(self) -> bool:
        """Whether its Node keeps a NodeClaim: it was taken over, or is being taken over."""
        return keys.NODE_CLAIM in self.node.annotations

    @property
    def dovetail_tags(self) -> dict[str, str]:
        """Tags that make the instance Dovetail's."""
        node_pool = self.owner.name if self.owner is not None else ""
        return {
            keys.PROVISIONER_NAME: node_pool,
            keys.TAG_NODE_POOL: node_pool,
            keys.TAG_CLUSTER: self.cluster,
            keys.TAG_PLAN: f"{keys.TAKE_OVER_PLAN}{self.node.instance_id}",
            keys.TAG_GROUP: "0",
            keys.TAG_ATTEMPT: "1",
        }

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags that the instance has now."""
        return self.instance.tags if self.instance is not None else {}


def next_step(handover: Handover, direction: Direction) -> HandoverStep | None:
    """Return the next step, None when the node has changed hands."""
    if direction == Direction.TAKE_OVER:
        return _next_of_take_over(handover)
    return _next_of_hand_back(handover)


def _next_of_take_over(handover: Handover) -> HandoverStep | None:
    node, claim = handover.node, handover.claim
    owned = keys.SLOT in node.annotations
    owners = {claim.uid} & {*node.owners} if claim is not None else set()
    finalized = keys.TERMINATION_FINALIZER in node.finalizers
    needs = (
        (HandoverStep.KEEP_CLAIM, not handover.keeps_claim and claim is not None),
        (HandoverStep.WRITE_LEDGER, not handover.in_ledger and not owned),
        (
            HandoverStep.ADD_DOVETAIL_TAGS,
            not handover.dovetail_tags.items() <= handover.tags.items(),
        ),
        (HandoverStep.REMOVE_KARPENTER_TAGS, any(key in handover.tags for key in KARPENTER_TAGS)),
        (HandoverStep.UNLINK_NODE, bool(owners) or (claim is not None and finalized and not owned)),
        (HandoverStep.REMOVE_CLAIM_FINALIZER, claim is not None and claim.is_finalized),
        (HandoverStep.DELETE_CLAIM, claim is not None),
        (HandoverStep.OWN_NODE, not (owned and finalized and _is_owned_by(node, handover.owner))),
        (HandoverStep.CLOSE_SLOT, handover.slot is not None),
    )
    return next((step for step, needed in needs if needed), None)


def _next_of_hand_back(handover: Handover) -> HandoverStep | None:
    node, claim = handover.node, handover.claim
    owned = keys.SLOT in node.annotations
    linked = (
        claim is not None
        and claim.uid in node.owners
        and keys.TERMINATION_FINALIZER in node.finalizers
    )
    known = claim is not None and claim.registered and claim.provider_id == node.provider_id
    needs = (
        (HandoverStep.DISOWN_NODE, owned),
        (HandoverStep.MAKE_CLAIM, claim is None),
        (HandoverStep.WRITE_STATUS, not known),
        (HandoverStep.LINK_NODE, not linked),
        (
            HandoverStep.ADD_KARPENTER_TAGS,
            not handover.karpenter_tags.items() <= handover.tags.items(),
        ),
        (HandoverStep.REMOVE_DOVETAIL_TAGS, any(key in handover.tags for key in DOVETAIL_TAGS)),
        (HandoverStep.DROP_LEDGER, handover.slot is not None or handover.in_ledger),
        (HandoverStep.FORGET_CLAIM, handover.keeps_claim),
    )
    return next((step for step, needed in needs if needed), None)


def _is_owned_by(node: Node, owner: Provisioner | None) -> bool:
    return owner is not None and owner.uid in node.owners


def why_not(handover: Handover, direction: Direction) -> str:
    """Return why a node must not change hands, with the remedy; empty when it may."""
    node, claim = handover.node, handover.claim
    if node.deletion_at is not None or (claim is not None and claim.deletion_at is not None):
        return (
            "it is being removed: wait until it is gone; a removal that Karpenter began goes on "
            "when it runs"
        )
    if node.ready is not True:
        return "the Node is not Ready: Karpenter and Dovetail both count its instance as lost"
    if handover.instance is None or not handover.instance.is_running:
        return f"EC2 shows no running instance {node.instance_id or 'for its providerID'}"
    if any(taint.key == keys.DISRUPTED_TAINT for taint in node.taints):
        return (
            "Karpenter has chosen it for removal: "
            f"kubectl taint node {node.name} {keys.DISRUPTED_TAINT}-"
        )
    if reason := node.annotations.get(keys.REMOVAL_REASON, ""):
        return f"Dovetail is removing it: {reason}; wait until it is gone"
    if handover.owner is None:
        return handover.owner_problem
    if direction == Direction.TAKE_OVER:
        return _why_not_taken_over(handover)
    if not handover.keeps_claim:
        return "Dovetail launched it: drain it once Karpenter runs, which launches another"
    if handover.claim is None and handover.name_taken:
        return (
            f"its NodeClaim {handover.name_taken} is of another instance now: "
            "delete that one while "
            "Karpenter runs"
        )
    return ""


def _why_not_taken_over(handover: Handover) -> str:
    claim, tag = handover.claim, f"kubernetes.io/cluster/{handover.cluster}"
    if handover.tags.get(tag) != "owned":
        return f"its instance lacks the tag {tag}=owned: add it, as Karpenter does for its own"
    if claim is None:
        return ""
    if not claim.registered and not handover.keeps_claim:
        return "its NodeClaim is not registered yet: wait until it is"
    if claim.other_finalizers:
        named = ", ".join(claim.other_finalizers)
        return f"its NodeClaim has finalizers of other programs: {named}; remove them first"
    return ""


def dovetail_annotations(handover: Handover, slot: Slot) -> dict[str, str | None]:
    """Return Dovetail's annotations for a Node that was taken over.

    One that Karpenter counts as drifted by a hash stays drifted: it gets a hash that Dovetail never
    writes otherwise.
    """
    drifted = handover.kept_drift if handover.kept_drift in _BY_HASH else ""
    written = f"karpenter-{drifted}" if drifted else ""
    return {
        keys.SLOT: slot.name,
        keys.IMAGE_ID: handover.instance.image_id if handover.instance is not None else "",
        keys.PRICE: str(slot.price_micros_per_hour or ""),
        keys.PROVISIONER_HASH: written or (shape_hash(handover.owner) if handover.owner else ""),
        keys.HASH_VERSION: HASH_VERSION,
        keys.EXPIRE_AFTER: handover.kept_expire_after or None,
        keys.TERMINATION_GRACE_PERIOD: handover.kept_grace_period or None,
    }


def dovetail_annotations_removed() -> dict[str, str | None]:
    """Return the change that removes these annotations."""
    return dict.fromkeys(_DOVETAIL_ANNOTATIONS)


def karpenter_tags_of(
    claim_name: str, node_pool: str, node_class: str, cluster: str
) -> dict[str, str]:
    """Return the tags by which Karpenter finds an instance.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/v1/labels.go and
    .../pkg/controllers/nodeclaim/tagging/controller.go (2026-11).
    """
    return {
        keys.NODE_POOL: node_pool,
        keys.NODE_CLASS: node_class,
        TAG_NODE_CLAIM: claim_name,
        TAG_EKS_CLUSTER: cluster,
    }

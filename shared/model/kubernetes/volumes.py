"""Volumes, as far as they decide which nodes a pod can be bound to."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from shared.model.requirements import Requirements

EBS_DRIVER: Final = "ebs.csi.aws.com"
# Replaces the claims of a pod once their demands are among its own: equal for all pods of a
# workload, and not empty, because only kube-scheduler can bind what they claim.
RESOLVED: Final = ("*",)
# Prefix of the label that pods of a shared claim get in a snapshot, before the claim's name.
CLAIM_LABEL: Final = "claim.dovetail.dev/"
_ATTACHABLE: Final = "attachable-volumes-"
_INLINE: Final = "aws-ebs:"


def attachable(driver: str) -> str:
    """Return the resource that counts volumes of a CSI driver attached to a node.

    Kubernetes does not define it: pods request one per volume and nodes have as many as the driver
    can attach, so that limits on volumes are counted like cpu. The limit is in the node's CSINode,
    never in its status.
    """
    return _ATTACHABLE + driver


def is_attachable(resource: str) -> bool:
    """Return whether a resource counts attached volumes; no Node status has it."""
    return resource.startswith(_ATTACHABLE)


def inline_claim(volume_id: str) -> str:
    """Return the entry in a pod's claims for an EBS volume that its manifest names inline.

    No claim can have such a name.
    """
    return _INLINE + volume_id


def inline_volume(claim: str) -> str:
    """Return the EBS volume that such an entry names, empty for a claim."""
    return claim.removeprefix(_INLINE) if claim.startswith(_INLINE) else ""


class Claim(Struct, frozen=True, kw_only=True):
    """A PersistentVolumeClaim that exists or will be created for a pod.

    Attributes:
        volume: The PersistentVolume it is bound to, empty while it is not.
        storage_class: Name; empty for none, None where the cluster's default applies.
        many_nodes: Whether pods on several nodes may use it at once.
        one_pod: Whether only a single pod may use it (ReadWriteOncePod).
        pending: Whether it exists in the cluster and has no volume yet.
        lost: Whether its volume is gone.
        deleting: Whether it is being deleted.
        owner: Uid of the pod it was created for, empty for an independent claim.
    """

    namespace: str
    name: str
    volume: str = ""
    storage_class: str | None = None
    many_nodes: bool = False
    one_pod: bool = False
    pending: bool = False
    lost: bool = False
    deleting: bool = False
    owner: str = ""

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class Volume(Struct, frozen=True, kw_only=True):
    """A PersistentVolume.

    Attributes:
        driver: CSI driver that attaches it; empty for a volume that is only mounted (NFS,
            hostPath).
        terms: What a node must satisfy to use it, OR-ed; empty for any node.
        storage_class: Name of its class, empty for none.
        is_free: Whether no claim is bound to it.
        problems: What in it cannot be honored, for people.
    """

    name: str
    driver: str = ""
    terms: tuple[Requirements, ...] = ()
    storage_class: str = ""
    is_free: bool = False
    problems: tuple[str, ...] = ()


class StorageClass(Struct, frozen=True, kw_only=True):
    """A StorageClass.

    Attributes:
        driver: CSI driver that provisions its volumes.
        is_static: Whether volumes are provisioned statically (kubernetes.io/no-provisioner).
        waits_for_first_consumer: Whether volumes are provisioned only when a pod has its node.
        terms: Where volumes may be provisioned, OR-ed; empty for anywhere.
        is_default: Whether claims that name no class get this one.
    """

    name: str
    driver: str = ""
    is_static: bool = False
    waits_for_first_consumer: bool = False
    terms: tuple[Requirements, ...] = ()
    is_default: bool = False
    created_at: datetime | None = None


class CsiNodeLimits(Struct, frozen=True, kw_only=True):
    """How many volumes of each CSI driver a node can have at once (its CSINode).

    A driver that is absent has no known limit.
    """

    node_name: str
    counts: Mapping[str, int] = field(default_factory=dict)


class VolumeAttachment(Struct, frozen=True, kw_only=True, order=True):
    """A volume that is attached to a node, or is about to be (a VolumeAttachment)."""

    node_name: str
    driver: str
    volume: str

"""Other autoscalers that work on the same cluster."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class RivalKind(StrEnum):
    """The autoscalers that would undo what Dovetail does."""

    KARPENTER = "Karpenter"
    CLUSTER_AUTOSCALER = "Cluster Autoscaler"


class Rival(Struct, frozen=True, kw_only=True, order=True):
    """An autoscaler that is running now.

    Attributes:
        where: The lease it holds, as namespace/name.
        holder: The holder identity of the lease.
    """

    kind: RivalKind
    where: str
    holder: str = ""


class Rivals(Protocol):
    """Detects other autoscalers of one cluster; cheap enough to be called before every plan."""

    def running(self) -> tuple[Rival, ...]:
        """Return the autoscalers whose leader has recently renewed its lease, sorted."""
        ...


class NoRivals:
    """Finds no rivals: for clusters in which none can run."""

    def running(self) -> tuple[Rival, ...]:
        """Return no rivals."""
        return ()

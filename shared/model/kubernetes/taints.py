"""Taints of nodes and tolerations of pods.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/ (2026-08).
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Struct, frozen=True, kw_only=True, order=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: Effect

    def describe(self) -> str:
        """Return the taint as `kubectl taint` writes it."""
        return (
            f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        )


class Toleration(Struct, frozen=True, kw_only=True):
    """A toleration of a pod. An empty key with Exists tolerates all taints, no effect all effects.

    Attributes:
        seconds: How long a NoExecute taint is tolerated, in seconds; None for no limit.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: Effect | None = None
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the taint is tolerated."""
        if self.effect is not None and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.value == taint.value


def first_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps the pod away, or None.

    PreferNoSchedule keeps no pod away.
    """
    accepted = tuple(tolerations)
    for taint in taints:
        if taint.effect == Effect.PREFER_NO_SCHEDULE:
            continue
        if not any(toleration.tolerates(taint) for toleration in accepted):
            return taint
    return None

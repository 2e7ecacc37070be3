"""Disruption budgets: how many nodes of an owner may be disrupted at once, and when."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

# The share of a budget that names no nodes.
DEFAULT_PERCENT: Final = 10


class DisruptionReason(StrEnum):
    """What a budget may be for."""

    UNDERUTILIZED = "Underutilized"
    EMPTY = "Empty"
    DRIFTED = "Drifted"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBudget:
    """One budget of a Provisioner or NodePool; the smallest that is active counts.

    Attributes:
        nodes: The most nodes; None where it is a share.
        percent: The largest share of the owner's nodes, rounded up.
        schedule: When it begins to be active: five fields of cron in UTC; empty for always.
        duration: How long it is active from then on.
        reasons: What it is for; empty for everything.
        fault: What in it cannot be read, for people; such a budget allows nothing. Empty usually.
    """

    nodes: int | None = None
    percent: int = 0
    schedule: str = ""
    duration: timedelta = timedelta(0)
    reasons: tuple[DisruptionReason, ...] = ()
    fault: str = ""

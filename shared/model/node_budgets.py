"""Disruption budgets: how many nodes of an owner may be disrupted at once, and when."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

# The percentage of a budget that does not set `nodes`.
DEFAULT_PERCENT: Final = 10


class DisruptionReason(StrEnum):
    """The reasons for disruption that a budget may be limited to."""

    UNDERUTILIZED = "Underutilized"
    EMPTY = "Empty"
    DRIFTED = "Drifted"


class NodeBudget(Struct, frozen=True, kw_only=True):
    """One budget of a Provisioner or NodePool; the smallest that is active counts.

    Attributes:
        nodes: The most nodes; None where it is a percentage.
        percent: The largest percentage of the owner's nodes, rounded up.
        schedule: When it becomes active: five fields of cron in UTC; empty for always.
        duration: How long it is active from then on.
        reasons: The reasons it applies to; empty for all.
        fault: What cannot be parsed, for people; such a budget allows nothing. Usually empty.
    """

    nodes: int | None = None
    percent: int = 0
    schedule: str = ""
    duration: timedelta = timedelta(0)
    reasons: tuple[DisruptionReason, ...] = ()
    fault: str = ""

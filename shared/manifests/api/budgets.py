"""Disruption budgets in the models of custom resources.

Source: https://karpenter.sh/docs/concepts/disruption/#nodepool-disruption-budgets (2026-11).
"""

import re
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from shared.manifests.api.parts import AllowedValues, Fault, Part, Schema, ValidationRule, refuse
from shared.model.node_budgets import DEFAULT_PERCENT, DisruptionReason

_NODES: Final = re.compile(r"((100|\d{1,2})%|\d{1,9})\Z", re.ASCII)
# As loose as Karpenter's: a schedule that cannot be parsed later blocks disruption, with a warning.
_SCHEDULE: Final = re.compile(
    r"(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|.+\s.+\s.+\s.+\s.+)\Z", re.ASCII
)
_DURATION: Final = re.compile(r"(\d{1,6}h(\d{1,6}m)?|\d{1,6}m)(0s)?\Z", re.ASCII)
# The same patterns in the syntax of API servers.
_NODES_PATTERN: Final = "^((100|[0-9]{1,2})%|[0-9]{1,9})$"
_SCHEDULE_PATTERN: Final = (
    "^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|.+[ \\t].+[ \\t].+[ \\t].+[ \\t].+)$"
)
_DURATION_PATTERN: Final = "^([0-9]{1,6}h([0-9]{1,6}m)?|[0-9]{1,6}m)(0s)?$"


def _nodes(value: str) -> str:
    if not _NODES.match(value):
        refuse([Fault((), value, "write a number of nodes, or a share from 0% to 100%, in quotes")])
    return value


def _schedule(value: str) -> str:
    if not _SCHEDULE.match(value):
        refuse([Fault((), value, "write five fields of cron in UTC, such as 0 9 * * mon-fri")])
    return value


def _duration(value: str) -> str:
    if not _DURATION.match(value):
        refuse([Fault((), value, "write hours and minutes, such as 8h or 1h30m")])
    return value


class Budget(Part):
    """How many nodes may be disrupted at once."""

    nodes: Annotated[str, AfterValidator(_nodes), Schema(pattern=_NODES_PATTERN)] = (
        f"{DEFAULT_PERCENT}%"
    )
    schedule: (
        Annotated[str, AfterValidator(_schedule), Schema(maxLength=256, pattern=_SCHEDULE_PATTERN)]
        | None
    ) = None
    duration: (
        Annotated[str, AfterValidator(_duration), Schema(pattern=_DURATION_PATTERN)] | None
    ) = None
    reasons: Annotated[
        list[Annotated[str, AllowedValues(*DisruptionReason)]], Schema(maxItems=50)
    ] = Field(default=[])

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        for name, value, other, needed in (
            ("schedule", self.schedule, "duration", self.duration),
            ("duration", self.duration, "schedule", self.schedule),
        ):
            if value is not None and needed is None:
                refuse([Fault((name,), value, f"write {other}, too: each needs the other")])
        return self


BUDGET: Final = Schema(
    ValidationRule(
        "schedule and duration: each needs the other", "has(self.schedule) == has(self.duration)"
    )
)

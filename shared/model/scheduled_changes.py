"""Scheduled changes of instances that AWS announces ahead: reboots, stops, retirement.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html
(2026-11).
"""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from msgspec import Struct

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node

# Earlier than that before the change, a node is replaced first, within budgets; later it is drained
# as for an interruption: a drain within PodDisruptionBudgets takes its time.
DRAINED_AHEAD: Final = timedelta(hours=1)


class ScheduledChange(Struct, frozen=True, kw_only=True):
    """What AWS will do to an instance.

    Attributes:
        code: The type of the event, as `AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED`.
        starts_at: None where AWS does not say.
    """

    code: str
    starts_at: datetime | None = None

    @property
    def text(self) -> str:
        """The change as a text for people."""
        when = f" for {self.starts_at:%Y-%m-%d %H:%M} UTC" if self.starts_at is not None else ""
        return f"{self.code or 'a change of its instance'} is scheduled{when}"

    @property
    def annotation_value(self) -> str:
        """The change as the value of a Node's annotation."""
        at = self.starts_at.isoformat(timespec="seconds") if self.starts_at is not None else ""
        return f"{at} {self.code}"

    def is_drain_due(self, now: datetime) -> bool:
        """Return whether a node that has it and still exists is drained, whatever blocks it."""
        return self.starts_at is None or self.starts_at - now <= DRAINED_AHEAD


def scheduled_change(node: Node) -> ScheduledChange | None:
    """Return the change in a node's annotation, None without one or without a time in it."""
    at, _, code = node.annotations.get(keys.CHANGE_SCHEDULED, "").partition(" ")
    starts_at = read_time(at)
    return None if starts_at is None else ScheduledChange(code=code, starts_at=starts_at)


def read_time(written: str) -> datetime | None:
    """Return a time with its zone, as ISO 8601 or RFC 5322 write it; None for anything else."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(written)
        except (TypeError, ValueError):
            continue
        return found.astimezone(UTC) if found.tzinfo is not None else None
    return None

"""Notices of AWS about instances: interruption warnings, scheduled changes and state changes.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitor-interruptible-cr.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html,
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html (2026-11);
an event in full, with `startTime` as RFC 5322 has it:
https://github.com/aws/aws-node-termination-handler/blob/23a7c6f4/pkg/monitor/sqsevent/scheduled-change-event.go
(2026-11).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from shared.model.errors import InvalidMessageError
from shared.model.scheduled_changes import ScheduledChange, read_time


class NoticeKind(StrEnum):
    """The kind of a notice."""

    SPOT_INTERRUPTION = "spot-interruption"
    RESERVATION_INTERRUPTION = "capacity-reservation-interruption"
    REBALANCE_RECOMMENDATION = "rebalance-recommendation"
    STATE_CHANGE = "state-change"
    SCHEDULED_CHANGE = "scheduled-change"

    @property
    def is_warning(self) -> bool:
        """Whether EC2 interrupts the instance two minutes later."""
        return self in (NoticeKind.SPOT_INTERRUPTION, NoticeKind.RESERVATION_INTERRUPTION)


class Notice(Struct, frozen=True, kw_only=True):
    """One notice about one or more instances.

    Attributes:
        instance_ids: Sorted; empty when a scheduled change is about other resources than instances,
            such as Dedicated Hosts.
        at: When AWS said it, by the event; None if the event has no time.
        state: New instance state for STATE_CHANGE, else empty.
        change: The scheduled change for SCHEDULED_CHANGE.
        ended: The instances for which it is over, or was canceled.
    """

    kind: NoticeKind
    instance_ids: tuple[str, ...]
    at: datetime | None = None
    state: str = ""
    change: ScheduledChange | None = None
    ended: frozenset[str] = frozenset()


_INSTANCE: Final = re.compile(r"^(?:arn:[^:]+:ec2:[^:]*:[^:]*:instance/)?(i-[^/:]+)$")
_KINDS: Final = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): NoticeKind.SPOT_INTERRUPTION,
    (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ): NoticeKind.RESERVATION_INTERRUPTION,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): NoticeKind.REBALANCE_RECOMMENDATION,
    ("aws.ec2", "EC2 Instance State-change Notification"): NoticeKind.STATE_CHANGE,
    ("aws.health", "AWS Health Event"): NoticeKind.SCHEDULED_CHANGE,
}


def decode_notice(event: Mapping[str, Any]) -> Notice:
    """Return the notice in an EventBridge event of AWS.

    Raises:
        InvalidMessageError: If the event is of another kind, or a notice of EC2 names no instance.
    """
    source, detail_type = event.get("source"), event.get("detail-type")
    kind = _KINDS.get((str(source), str(detail_type)))
    if kind is None:
        raise InvalidMessageError(f"detail-type: {detail_type!r} of {source!r} is not handled")
    detail = event.get("detail")
    if not isinstance(detail, Mapping):
        raise InvalidMessageError("detail: expected an object")
    if kind == NoticeKind.SCHEDULED_CHANGE:
        return _scheduled(detail)
    instance_id = _instance(detail.get("instance-id"))
    if not instance_id:
        raise InvalidMessageError("detail: names no instance")
    return Notice(
        kind=kind,
        instance_ids=(instance_id,),
        at=read_time(str(event.get("time"))),
        state=str(detail.get("state", "")),
    )


def _scheduled(detail: Mapping[str, Any]) -> Notice:
    """Return the notice in a Health event; the end of a change is such an event, too.

    An event about the whole account or Region lists no instances.
    """
    entities = detail.get("affectedEntities", [])
    if not isinstance(entities, list):
        raise InvalidMessageError("detail: affectedEntities is no list")
    closed = detail.get("statusCode") == "closed"
    ended = {
        _instance(entity.get("entityValue")): closed or entity.get("status") == "RESOLVED"
        for entity in entities
        if isinstance(entity, Mapping)
    }
    ended.pop("", None)
    return Notice(
        kind=NoticeKind.SCHEDULED_CHANGE,
        instance_ids=tuple(sorted(ended)),
        change=ScheduledChange(
            code=str(detail.get("eventTypeCode") or ""),
            starts_at=read_time(str(detail.get("startTime"))),
        ),
        ended=frozenset(instance_id for instance_id, is_over in ended.items() if is_over),
    )


def _instance(value: object) -> str:
    """Return the instance id in an id or an ARN, empty when it names something else."""
    named = _INSTANCE.match(str(value))
    return named.group(1) if named else ""

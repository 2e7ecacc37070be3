"""What AWS says about machines: interruption warnings and state changes.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html,
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html (2026-08).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from shared.model.errors import InvalidMessageError


class NoticeKind(StrEnum):
    """Why AWS wrote."""

    SPOT_INTERRUPTION = "spot-interruption"
    REBALANCE_RECOMMENDATION = "rebalance-recommendation"
    STATE_CHANGE = "state-change"
    SCHEDULED_CHANGE = "scheduled-change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice about one or more instances.

    Attributes:
        instance_ids: Sorted; empty when what was scheduled is over or was called off.
        state: New instance state for STATE_CHANGE, else empty.
    """

    kind: NoticeKind
    instance_ids: tuple[str, ...]
    state: str = ""


_KINDS: Final = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): NoticeKind.SPOT_INTERRUPTION,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): NoticeKind.REBALANCE_RECOMMENDATION,
    ("aws.ec2", "EC2 Instance State-change Notification"): NoticeKind.STATE_CHANGE,
    ("aws.health", "AWS Health Event"): NoticeKind.SCHEDULED_CHANGE,
}


def decode_notice(event: Mapping[str, Any]) -> Notice:
    """Return the notice in an EventBridge event of AWS.

    Raises:
        InvalidMessageError: If the event is of another kind or names no instance.
    """
    source, detail_type = event.get("source"), event.get("detail-type")
    kind = _KINDS.get((str(source), str(detail_type)))
    if kind is None:
        raise InvalidMessageError(f"detail-type: {detail_type!r} of {source!r} is not handled")
    detail = event.get("detail")
    if not isinstance(detail, Mapping):
        raise InvalidMessageError("detail: expected an object")
    if kind == NoticeKind.SCHEDULED_CHANGE:
        ids = _affected(detail)
    else:
        ids = {str(detail.get("instance-id", "")): True}
    named = {value: stands for value, stands in ids.items() if value.startswith("i-")}
    if not named:
        raise InvalidMessageError("detail: names no instance")
    found = tuple(sorted(value for value, stands in named.items() if stands))
    return Notice(kind=kind, instance_ids=found, state=str(detail.get("state", "")))


def _affected(detail: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a Health event is about, and whether it still stands.

    The end of an event is told like its beginning: its machines have nothing to fear any more.
    """
    closed = detail.get("statusCode") == "closed"
    listed = detail.get("affectedEntities")
    entities = listed if isinstance(listed, list) else []
    return {
        str(entity.get("entityValue", "")): not closed and entity.get("status") != "RESOLVED"
        for entity in entities
        if isinstance(entity, Mapping)
    }

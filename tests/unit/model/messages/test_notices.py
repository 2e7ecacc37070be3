"""Notices of AWS about machines."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.model.errors import InvalidMessageError
from shared.model.messages.notices import Notice, NoticeKind, decode_notice
from shared.model.scheduled_changes import ScheduledChange


def test_a_notice_is_as_old_as_its_event() -> None:
    told = event("EC2 Spot Instance Interruption Warning", **{"instance-id": "i-7"})
    assert decode_notice(told).at is None
    at = decode_notice({**told, "time": "2026-01-01T00:00:05Z"}).at
    assert at == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)


def event(detail_type: str, source: str = "aws.ec2", **detail: Any) -> dict[str, Any]:
    return {"source": source, "detail-type": detail_type, "detail": detail}


@pytest.mark.parametrize(
    ("detail_type", "kind"),
    [
        ("EC2 Spot Instance Interruption Warning", NoticeKind.SPOT_INTERRUPTION),
        (
            "EC2 Capacity Reservation Instance Interruption Warning",
            NoticeKind.RESERVATION_INTERRUPTION,
        ),
        ("EC2 Instance Rebalance Recommendation", NoticeKind.REBALANCE_RECOMMENDATION),
    ],
)
def test_a_warning_names_its_instance(detail_type: str, kind: NoticeKind) -> None:
    found = decode_notice(event(detail_type, **{"instance-id": "i-1"}))
    assert found == Notice(kind=kind, instance_ids=("i-1",))


def test_a_state_change_carries_the_new_state() -> None:
    raw = event(
        "EC2 Instance State-change Notification", **{"instance-id": "i-1", "state": "stopped"}
    )
    expected = Notice(kind=NoticeKind.STATE_CHANGE, instance_ids=("i-1",), state="stopped")
    assert decode_notice(raw) == expected


def test_a_health_event_names_every_instance_once() -> None:
    entities = [{"entityValue": "i-2"}, {"entityValue": "i-1"}, {"entityValue": "i-2"}, "odd", {}]
    raw = event("AWS Health Event", "aws.health", affectedEntities=entities)
    assert decode_notice(raw).instance_ids == ("i-1", "i-2")


def test_a_scheduled_change_that_was_called_off_touches_no_machine() -> None:
    entities = [{"entityValue": "i-2"}, {"entityValue": "i-1"}]
    for status in ("open", "upcoming"):
        raw = event("AWS Health Event", "aws.health", statusCode=status, affectedEntities=entities)
        assert decode_notice(raw).instance_ids == ("i-1", "i-2")
    raw = event("AWS Health Event", "aws.health", statusCode="closed", affectedEntities=entities)
    assert decode_notice(raw).ended == {"i-1", "i-2"}


def test_a_machine_whose_part_of_a_scheduled_change_is_resolved_is_left_alone() -> None:
    entities = [
        {"entityValue": "i-2", "status": "RESOLVED"},
        {"entityValue": "i-1", "status": "PENDING"},
    ]
    raw = event("AWS Health Event", "aws.health", affectedEntities=entities)
    assert decode_notice(raw).ended == {"i-2"}


@pytest.mark.parametrize(
    ("at", "reads"),
    [
        ("Fri, 18 Dec 2026 02:00:00 GMT", True),
        ("2026-12-18T02:00:00Z", True),
        ("Fri, 18 Dec 2026 03:00:00 +0100", True),
        ("2026-12-18T02:00:00", False),
        ("soon", False),
        (None, False),
    ],
)
def test_a_scheduled_change_says_what_and_when(at: str | None, *, reads: bool) -> None:
    code = "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"
    change = decode_notice(
        event("AWS Health Event", "aws.health", eventTypeCode=code, startTime=at)
    ).change
    when = datetime(2026, 12, 18, 2, tzinfo=UTC) if reads else None
    assert change == ScheduledChange(code=code, starts_at=when)
    assert change.text == f"{code} is scheduled" + " for 2026-12-18 02:00 UTC" * reads
    assert ScheduledChange(code="").text == "a change of its instance is scheduled"


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"affectedEntities": []},
        {"affectedEntities": [{"entityValue": "h-0123456789abcdef0"}]},
        {"affectedEntities": [{"entityValue": "arn:aws:ec2:us-east-1:1:dedicated-host/i-1"}]},
        {"affectedEntities": [{"entityValue": "arn:aws:ecs:us-east-1:1:instance/i-1"}]},
    ],
)
def test_a_scheduled_change_of_anything_but_instances_touches_none(about: dict[str, Any]) -> None:
    found = decode_notice(event("AWS Health Event", "aws.health", **about))
    assert (found.kind, found.instance_ids) == (NoticeKind.SCHEDULED_CHANGE, ())


@pytest.mark.parametrize("partition", ["aws", "aws-cn"])
def test_a_scheduled_change_may_name_an_instance_by_its_arn(partition: str) -> None:
    arn = f"arn:{partition}:ec2:cn-north-1:123456789012:instance/i-1"
    raw = event("AWS Health Event", "aws.health", affectedEntities=[{"entityValue": arn}])
    assert decode_notice(raw).instance_ids == ("i-1",)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (event("EC2 Instance Launch Successful"), "detail-type: 'EC2 Instance Launch Successful'"),
        (event("AWS Health Event"), "detail-type: 'AWS Health Event' of 'aws.ec2' is not handled"),
        ({}, "detail-type: None of None is not handled"),
        ({**event("AWS Health Event", "aws.health"), "detail": None}, "detail: expected an object"),
        (
            event("AWS Health Event", "aws.health", affectedEntities=5),
            "detail: affectedEntities is no list",
        ),
        (
            event("EC2 Spot Instance Interruption Warning", **{"instance-id": "eni-7"}),
            "detail: names no instance",
        ),
    ],
)
def test_what_is_no_notice_is_refused(raw: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessageError, match=text):
        decode_notice(raw)

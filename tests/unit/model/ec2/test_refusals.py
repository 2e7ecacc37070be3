"""What EC2 refused to a Provisioner, and when it is asked again."""

from datetime import timedelta

from shared.model.ec2.launches import FleetError
from shared.model.ec2.refusals import Refusals
from tests.builders import NOW, offering

MINUTE = timedelta(minutes=1)
ERROR = FleetError(code="UnauthorizedOperation", message="You are not authorized")
PROFILE = FleetError(code="InvalidParameterValue", message="Invalid IAM Instance Profile name")
DIED = FleetError(code="Client.InternalError", message="Client error on launch")
M5 = frozenset({offering()})
G5 = frozenset({offering("g5.xlarge")})
P4 = frozenset({offering("p4d.24xlarge")})
FRESH = Refusals(provisioner="default", shape="a", site="b")


def test_a_provisioner_is_asked_for_again_after_1_2_5_and_then_every_10_minutes() -> None:
    record, now, waits = FRESH, NOW, []
    for _ in range(5):
        record = record.after_refusal(ERROR, M5, now)
        assert record.until is not None
        waits.append((record.until - now) // MINUTE)
        assert record.left_out(now) == (frozenset() if record.stopped else M5)
        now = record.until
        assert not record.blocked(now)
        assert record.left_out(now) == frozenset()
    assert waits == [1, 2, 5, 10, 10]


def test_the_first_refusal_stops_it_and_a_later_one_asks_for_something_else_once() -> None:
    first = FRESH.after_refusal(ERROR, M5, NOW)
    assert first.blocked(NOW)
    later = NOW + MINUTE
    second = first.after_refusal(ERROR, M5, later)
    assert not second.blocked(later)
    assert second.left_out(later) == M5
    third = second.after_refusal(ERROR, G5, later)
    assert third.blocked(later)
    assert third.until == second.until == later + 2 * MINUTE


def test_machines_that_die_stop_it_each_time() -> None:
    first = FRESH.after_refusal(DIED, M5, NOW, worked=True)
    assert first.blocked(NOW)
    later = NOW + MINUTE
    assert first.after_refusal(DIED, M5, later).blocked(later)


def test_the_reason_says_code_text_remedy_and_time() -> None:
    assert FRESH.reason() == ""
    assert FRESH.after_refusal(ERROR, M5, NOW).reason() == (
        "EC2 refuses its launches: UnauthorizedOperation: You are not authorized; read what is "
        "denied with `aws sts decode-authorization-message`, and allow it; asked again after "
        "00:01:00 UTC"
    )


def test_what_may_have_been_created_just_now_is_asked_for_within_seconds_for_two_minutes() -> None:
    record, now, waits = FRESH, NOW, []
    for _ in range(8):
        record = record.after_refusal(PROFILE, M5, now)
        assert record.until is not None
        assert record.blocked(now) == record.stopped
        waits.append((record.until - now).total_seconds())
        now = record.until
    assert waits == [5, 5, 10, 20, 40, 40, 60, 120]


def test_the_reason_says_why_it_is_asked_for_within_seconds() -> None:
    assert FRESH.after_refusal(PROFILE, M5, NOW).reason() == (
        "EC2 refuses its launches: InvalidParameterValue: Invalid IAM Instance Profile name; check "
        "the field that the message names: instanceProfile, tags, volumes; asked again within "
        "seconds, as EC2 may not know a new instance profile, role or launch template yet"
    )


def test_the_first_success_ends_it() -> None:
    record = FRESH.after_refusal(ERROR, M5, NOW).after_success(NOW, started=False)
    assert record.error is None
    assert not record.blocked(NOW)
    assert record == FRESH


def test_a_launch_is_no_success_where_machines_died() -> None:
    record = FRESH.after_refusal(DIED, M5, NOW)
    assert record.after_success(NOW, started=False) == record
    assert record.after_success(NOW, started=True).error is None


def test_a_provisioner_that_has_worked_loses_only_what_was_refused() -> None:
    record = FRESH.after_refusal(ERROR, G5, NOW, worked=True)
    assert not record.blocked(NOW)
    assert record.left_out(NOW) == G5
    again = NOW + 10 * MINUTE
    assert record.left_out(again) == frozenset()
    assert not record.after_refusal(ERROR, G5, again, worked=True).blocked(again)


def test_two_refusals_of_different_options_without_a_success_count_as_everything() -> None:
    record = FRESH.after_refusal(ERROR, G5, NOW, worked=True)
    assert record.after_refusal(ERROR, P4, NOW, worked=True).blocked(NOW)
    bought = record.after_success(NOW, started=False)
    assert bought.left_out(NOW) == G5
    assert not bought.after_refusal(ERROR, P4, NOW, worked=True).blocked(NOW)


def test_another_provisioner_or_site_makes_the_record_void() -> None:
    record = FRESH.after_refusal(ERROR, M5, NOW)
    assert record.as_of("a", "b") == record
    for shape, site in (("c", "b"), ("a", "c")):
        assert record.as_of(shape, site) == Refusals(provisioner="default", shape=shape, site=site)


def test_options_are_forgotten_an_hour_after_they_may_be_asked_for() -> None:
    record = FRESH.with_options(M5, NOW)
    assert record.after_success(NOW + 59 * MINUTE, started=False).options
    assert not record.after_success(NOW + 60 * MINUTE, started=False).options

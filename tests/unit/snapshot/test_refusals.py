"""What EC2 refused to a Provisioner, and when it is asked again."""

from datetime import timedelta

from shared.model.ec2.launches import FleetError
from shared.snapshot.refusals import Refusals
from tests.builders import NOW, offering

MINUTE = timedelta(minutes=1)
ERROR = FleetError(code="UnauthorizedOperation", message="You are not authorized")
PROFILE = FleetError(code="InvalidParameterValue", message="Invalid IAM Instance Profile name")
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


def test_the_reason_says_code_text_remedy_and_time() -> None:
    assert FRESH.reason() == ""
    assert FRESH.after_refusal(ERROR, M5, NOW).reason() == (
        "EC2 refuses its launches: UnauthorizedOperation: You are not authorized; read what is "
        "denied with `aws sts decode-authorization-message`, and allow it; asked again after "
        "00:01:00 UTC"
    )
    assert FRESH.after_refusal(PROFILE, M5, NOW).reason() == (
        "EC2 refuses its launches: InvalidParameterValue: Invalid IAM Instance Profile name; check "
        "what the message names: tags, volumes, or leave out instanceProfile; asked again within "
        "seconds, as EC2 may not know a new instance profile, role or launch template yet"
    )


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


def test_options_are_forgotten_an_hour_after_they_may_be_asked_for() -> None:
    record = FRESH.with_options(M5, NOW)
    assert record.after_success(NOW + 59 * MINUTE, started=False).options
    assert not record.after_success(NOW + 60 * MINUTE, started=False).options

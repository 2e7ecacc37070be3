from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local.aws.events.schedules import ScheduleError, Scheduler, parse_schedule

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)  # a Saturday


def fires(expression: str, now: datetime) -> bool:
    return parse_schedule(expression).is_due(now, now - timedelta(minutes=1))


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0 12 * * ? *)",
        "cron(0/15 12 ? * SAT *)",
        "cron(* * ? NOV,DEC 7 2026)",
        "cron(0 9-17 21 11 ? 2026-2030)",
    ],
)
def test_a_cron_expression_matches_its_minute(expression: str) -> None:
    assert fires(expression, NOON)


@pytest.mark.parametrize(
    "expression",
    [
        "cron(1 12 * * ? *)",
        "cron(0 12 ? * MON-FRI *)",
        "cron(0 12 1 * ? *)",
        "cron(0 12 * * ? 2027)",
    ],
)
def test_a_cron_expression_does_not_match_another_minute(expression: str) -> None:
    assert not fires(expression, NOON)


def test_a_cron_expression_fires_once_a_minute() -> None:
    schedule = parse_schedule("cron(* * * * ? *)")
    assert not schedule.is_due(NOON + timedelta(seconds=30), NOON)
    assert schedule.is_due(NOON + timedelta(seconds=60), NOON + timedelta(seconds=59))


@pytest.mark.parametrize(
    "expression", ["rate(1 week)", "cron(* * *)", "cron(0 12 L * ? *)", "cron(61 * * * ? *)", "at"]
)
def test_other_expressions_are_refused(expression: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(expression)


def test_a_rate_waits_one_period_first() -> None:
    fired: list[str] = []
    bus: Any = SimpleNamespace(fire=lambda rule: fired.append(rule.name))
    scheduler = Scheduler(bus, account_id="123456789012", region="us-east-1")
    rule = SimpleNamespace(name="r", scheduled_expression="rate(5 minutes)", state="ENABLED")
    off = SimpleNamespace(name="off", scheduled_expression="rate(1 minute)", state="DISABLED")
    scheduler._rules = lambda: {"r": rule, "off": off}  # type: ignore[method-assign]
    for minutes in (0, 4, 5, 6, 9, 10):
        scheduler.look(NOON + timedelta(minutes=minutes))
    assert fired == ["r", "r"]

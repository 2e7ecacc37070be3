from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from infra.local.aws.events.schedules import Scheduler, schedule_problem

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)  # a Saturday


@pytest.mark.parametrize("expression", ["rate(1 week)", "cron(0 12 * * ? *)", "at"])
def test_other_expressions_have_a_problem(expression: str) -> None:
    assert "is not emulated: use rate(...)" in schedule_problem(expression)


@pytest.mark.parametrize("expression", ["", "rate(5 minutes)", "rate(1 hour)"])
def test_rates_and_rules_without_a_schedule_have_none(expression: str) -> None:
    assert schedule_problem(expression) == ""


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

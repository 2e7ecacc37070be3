"""The cost model keeps its bars, follows the templates, and the page tells what it says."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import Template
from tools import cost_model
from tools.cost_inputs import PRICES
from tools.cost_model import HOURS, Bill, minutes_of, total
from tools.made_part import replaced, with_result

PAGE = Path(__file__).resolve().parents[3] / "docs" / "evidence" / "cost.md"
CONTROLLERS = 2 * HOURS * PRICES["m5_large_hour"]


@pytest.fixture(scope="module")
def bill(control_plane: Template, clusters: Mapping[str, Template]) -> Bill:
    return Bill(control_plane.raw, clusters["prod"].raw)


def test_idle_is_under_a_dollar_a_month(bill: Bill) -> None:
    assert 0.1 < total(bill.idle()) <= 1


def test_a_million_pod_events_in_small_bursts_are_under_ten_dollars(bill: Bill) -> None:
    for burst in (3, 5, 7, 8, 10, 50, 200):
        assert total(bill.million_pod_events(burst)) <= 10, burst
    # One by one is beyond the bar, and the page says so.
    assert 10 < total(bill.million_pod_events(1)) < 25


def test_all_of_it_is_a_fraction_of_two_controller_nodes(bill: Bill) -> None:
    assert pytest.approx(140, abs=1) == CONTROLLERS
    month = total(bill.idle()) + total(bill.observability()) + total(bill.million_pod_events(10))
    assert month < CONTROLLERS / 8


def test_a_node_s_life_costs_less_than_two_minutes_of_a_machine(bill: Bill) -> None:
    assert total(bill.thousand_nodes()) / 1000 < 2 / 60 * PRICES["m5_large_hour"]


def test_the_bill_follows_the_template(control_plane: Template, bill: Bill) -> None:
    changed: dict[str, Any] = copy.deepcopy(control_plane.raw)
    for resource in changed["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function":
            resource["Properties"]["MemorySize"] *= 2
        if (
            resource["Type"] == "AWS::Events::Rule"
            and "ScheduleExpression" in resource["Properties"]
        ):
            resource["Properties"]["ScheduleExpression"] = "rate(10 minutes)"
    other = {line.name: line.dollars for line in Bill(changed, {"Resources": {}}).idle()}
    mine = {line.name: line.dollars for line in bill.idle()}

    assert other["compute: sweep"] < mine["compute: sweep"] / 3
    # Twice the memory; looks at a fresh catalogue become six times as many, writes do not.
    assert other["compute: refresh_catalog"] > 2.5 * mine["compute: refresh_catalog"]


def test_only_rates_are_understood() -> None:
    assert [minutes_of(f"rate({value})") for value in ("1 minute", "2 hours", "1 day")] == [
        1,
        120,
        1440,
    ]
    with pytest.raises(ValueError, match="only rates"):
        minutes_of("cron(0 12 * * ? *)")


def test_the_page_shows_what_is_computed(bill: Bill) -> None:
    page = PAGE.read_text()

    assert replaced(page, cost_model.tables(bill), cost_model.MARKS) == page
    assert with_result(page, cost_model.result(bill)) == page

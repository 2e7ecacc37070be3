"""What nodes cost over the times that were observed, and how that is told."""

from datetime import timedelta

import pytest

from functions.cli.shadow.figures import Cost, json_figures, shadow_figures
from functions.cli.shadow.fleet import ComparedPurchase, Decision, NodeRun, RecordProgress
from functions.cli.shadow.record import Recorded, Span
from functions.cli.shadow.shadow_page import shadow_page, summary_lines
from shared.model.ec2.instance_types import CapacityType
from shared.model.values import replace
from shared.provisioning.savings.pools import Pool, PoolKind
from tests.builders import NOW
from tests.unit.cli.shadow.week import ABOUT

HOUR = timedelta(hours=1)
GENERAL, GROUP = Pool(PoolKind.NODE_POOL, "general"), Pool(PoolKind.MANAGED, "<b>")


def run(began: float, ended: float | None, price: int, pool: Pool = GENERAL) -> NodeRun:
    """A node that runs from one hour to another."""
    return NodeRun(
        pool=pool,
        instance_type="m5.large",
        zone="us-east-1a",
        capacity_type=CapacityType.ON_DEMAND,
        price_micros_per_hour=price,
        began_at=NOW + began * HOUR,
        ended_at=None if ended is None else NOW + ended * HOUR,
    )


def span(began: float, ended: float) -> Span:
    return Span(began_at=NOW + began * HOUR, ended_at=NOW + ended * HOUR)


PURCHASE = ComparedPurchase(
    at=NOW,
    pods=3,
    bought_nodes=2,
    bought="2 × m5.large on-demand",
    bought_micros_per_hour=192_000,
    planned_nodes=1,
    planned="1 × m5.large on-demand",
    planned_micros_per_hour=96_000,
)
RECORDED = Recorded(
    about=replace(ABOUT, settings=("max_node_vcpus=8",)),
    progress=RecordProgress(
        span_began_at=NOW + 22 * HOUR, last_at=NOW + 26 * HOUR, unplaced_pod_seconds=5400
    ),
    spans=(span(0, 2), span(22, 26)),
    # One that began before the record, one across the gap, one after another, one of a group.
    real=(
        run(-5, 1, 1_000_000),
        run(1, 23, 2_000_000),
        run(1, 2, 4_000_000, GROUP),
        run(25, None, 100_000),
    ),
    # One that ends after the last observation.
    shadow=(run(0, 27, 500_000), run(22, 22, 7)),
    decisions=(Decision(at=NOW, text="would launch <1> node"),),
    purchases=(
        PURCHASE,
        replace(PURCHASE, bought_micros_per_hour=None),
        replace(PURCHASE, unplaced="a/b: too large", planned=""),
    ),
    notes=("prices are <old>",),
)


def test_a_node_is_paid_for_the_times_that_were_observed() -> None:
    figures = shadow_figures(RECORDED)
    assert figures.total.real == Cost(
        micros=1_000_000 + 2 * 2_000_000 + 4_000_000 + 100_000,
        node_seconds=5 * 3600,
        most_nodes=2,
    )
    assert figures.total.shadow == Cost(micros=6 * 500_000, node_seconds=6 * 3600, most_nodes=1)
    assert figures.observed == 6 * HOUR
    assert figures.gaps == (span(2, 22),)


def test_days_and_pools_are_told_apart() -> None:
    figures = shadow_figures(RECORDED)
    assert {day: costs.real.micros for day, costs in figures.days.items()} == {
        "2026-01-01": 1_000_000 + 2 * 2_000_000 + 4_000_000,
        "2026-01-02": 100_000,
    }
    assert {pool: costs.real.micros for pool, costs in figures.pools.items()} == {
        GENERAL: 5_100_000,
        GROUP: 4_000_000,
    }
    assert list(figures.pools) == [GENERAL, GROUP]


def test_purchases_that_cannot_be_compared_are_in_no_sum() -> None:
    sums = shadow_figures(RECORDED).purchases
    assert (sums.count, sums.left_out, sums.pods) == (1, 2, 3)
    assert (sums.bought_micros_per_hour, sums.planned_micros_per_hour) == (192_000, 96_000)


def test_the_summary_tells_figures_and_what_they_leave_out() -> None:
    first, *table, nodes, bought, gap, unplaced, note = summary_lines(
        RECORDED, shadow_figures(RECORDED)
    )
    assert first == "observed for 6.0 h since 2026-01-01 00:00 UTC, with 1 gap"
    assert table == [
        "                        really ran  Dovetail   saves",
        "2026-01-01                   $9.00     $2.00    78 %",
        "2026-01-02                   $0.10     $1.00  −900 %",
        "NodePool general             $5.10     $3.00    41 %",
        "managed node group <b>       $4.00     $0.00   100 %",
        "all                          $9.10     $3.00    67 %  in 6.0 h: under a day says little",
    ]
    assert nodes == "node-hours 5.0 and 6.0; most nodes at once 2 and 1"
    assert bought == (
        "1 purchase for 3 pods: 2 nodes for $0.1920/h bought, 1 node for $0.0960/h planned by "
        "Dovetail; 2 not comparable"
    )
    assert gap == (
        "not observed from 2026-01-01 02:00 UTC to 2026-01-01 22:00 UTC (20.0 h): counts on "
        "neither side"
    )
    assert unplaced.startswith("running pods had no node in the shadow fleet for 1.5 pod-hours")
    assert note == "prices are <old>"


def test_a_saving_of_a_day_or_more_is_told_without_that_caution() -> None:
    recorded = replace(RECORDED, spans=(span(0, 26),))
    figures = shadow_figures(recorded)
    assert summary_lines(recorded, figures)[6].endswith("%  in 26.0 h")


@pytest.mark.parametrize(
    "expected",
    [
        "https://test, 2026-01-01 00:00 UTC to 2026-01-02 02:00 UTC. Prices: of a test.",
        "Settings: max_node_vcpus=8.",
        "managed node group &lt;b&gt;",
        "would launch &lt;1&gt; node",
        "a/b: too large",
        ">unknown<",
        "<li>prices are &lt;old&gt;</li>",
        "<b>$9.10</b>is what really ran in 6.0 h",
        "over the same time: saves 67 % in 6.0 h: under a day says little",
    ],
)
def test_the_page_names_what_was_recorded_and_escapes_it(expected: str) -> None:
    assert expected in shadow_page(RECORDED, shadow_figures(RECORDED))


def test_a_long_page_leaves_the_oldest_lines_to_the_json_form() -> None:
    many = tuple(Decision(at=NOW, text=f"line {number}") for number in range(502))
    recorded = replace(RECORDED, decisions=many)
    page = shadow_page(recorded, shadow_figures(recorded))
    assert "2 decisions before are only in the JSON form." in page
    assert "line 1<" not in page
    assert len(json_figures(recorded, shadow_figures(recorded))["decisions"]) == 502


def test_a_record_of_one_observation_costs_nothing_yet() -> None:
    first = replace(
        RECORDED,
        progress=RecordProgress(span_began_at=NOW, last_at=NOW),
        spans=(span(0, 0),),
        purchases=(),
    )
    figures = shadow_figures(first)
    assert (figures.total.real.micros, figures.days) == (0, {})
    assert "is what really ran in 0 min" in shadow_page(first, figures)
    assert summary_lines(first, figures)[0] == "observed for 0 min since 2026-01-01 00:00 UTC"

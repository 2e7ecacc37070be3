"""The simulated scale-up adds what its source says, and the page has the table of today."""

import pytest

from tests.node_groups.__main__ import MARKS, PAGE, Row, result, rows, table
from tests.node_groups.autoscaler import NodeGroup, Outcome, PodKind, scale_up
from tools.made_part import replaced, with_result

GIB = 2**30


def group(name: str, cpu: int, *, price: int = 1) -> NodeGroup:
    return NodeGroup(
        name=name,
        cpu=cpu * 1000 - 80,
        memory=cpu * 4 * GIB,
        pods=58,
        cpu_capacity=cpu * 1000,
        memory_capacity=cpu * 4 * GIB,
        price_micros_per_hour=price,
    )


def pods(count: int, cpu: int, *, name: str = "small", skew: int | None = None) -> PodKind:
    return PodKind(name=name, count=count, cpu=cpu, memory=GIB // 4, max_skew=skew)


def counts(outcome: Outcome) -> list[int]:
    return [sum(node.pods.values()) for node in outcome.nodes]


def test_nodes_are_filled_one_after_the_other() -> None:
    assert counts(scale_up([pods(32, 250)], [group("xlarge", 4)])) == [15, 15, 2]


def test_larger_pods_are_placed_first_and_smaller_ones_fill_the_gaps() -> None:
    small, large = pods(3, 900), pods(1, 3000, name="large")
    (first, second) = scale_up([small, large], [group("xlarge", 4)]).nodes

    assert first.pods == {large: 1, small: 1}
    assert second.pods == {small: 2}


def test_the_group_that_is_used_best_is_taken_for_the_whole_round() -> None:
    outcome = scale_up([pods(400, 250)], [group("large", 2), group("xlarge", 4), group("2xl", 8)])

    assert {node.group.name for node in outcome.nodes} == {"2xl"}
    assert len(outcome.nodes) == 13


def test_what_one_group_has_no_place_for_comes_in_the_next_round() -> None:
    large = pods(1, 7000, name="large")
    outcome = scale_up([pods(7, 250), large], [group("large", 2), group("2xl", 8)])

    assert outcome.never_placed == {}
    assert sum(counts(outcome)) == 8
    assert "2xl" in {node.group.name for node in outcome.nodes}


def test_pods_that_fit_no_group_are_never_placed() -> None:
    outcome = scale_up([pods(3, 250), pods(2, 10_000, name="large")], [group("xlarge", 4)])

    assert counts(outcome) == [3]
    assert outcome.never_placed == {"large": 2}


def test_the_limit_of_pods_of_a_node_holds() -> None:
    assert counts(scale_up([pods(60, 1)], [group("xlarge", 4)])) == [58, 2]


def test_a_spread_over_hosts_holds_once_there_is_a_second_one() -> None:
    other = pods(1, 3900, name="other")
    outcome = scale_up([pods(12, 250, skew=2), other], [group("xlarge", 4)])
    kinds = [node.pods for node in outcome.nodes]

    # The first node has the large pod alone: with it as a host of none, others take two.
    assert kinds[0] == {other: 1}
    assert counts(outcome)[1:] == [2] * 6


@pytest.fixture(scope="module")
def made() -> list[Row]:
    return list(rows())


def test_each_case_has_the_groups_alone_and_together_and_both_plans(made: list[Row]) -> None:
    for case in dict.fromkeys(row.pods for row in made):
        sides = [row.side for row in made if row.pods == case]
        assert len(sides) == 6
        assert sides[-2:] == ["Dovetail, these three types", "Dovetail"]


def test_dovetail_costs_no_more_than_the_groups_for_the_same_pods(made: list[Row]) -> None:
    for case in dict.fromkeys(row.pods for row in made):
        same = [row for row in made if row.pods == case]
        ours = next(row for row in same if row.side == "Dovetail, these three types")
        groups = [row for row in same if row.side.endswith(("large", "groups"))]
        assert ours.dollars_per_hour <= min(row.dollars_per_hour for row in groups)
        assert ours.never_placed == min(row.never_placed for row in groups)
        assert same[-1].never_placed == 0


def test_the_page_has_what_the_command_makes(made: list[Row]) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert replaced(page, table(made), MARKS) == page
    assert with_result(page, result(made)) == page

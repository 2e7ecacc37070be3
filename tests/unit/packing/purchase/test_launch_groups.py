"""Few launch groups, and as many pods as limits have room for."""

import pytest

from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.bin_types import find_bin_types
from shared.packing.purchase.launch_groups import choose_bin_types
from shared.packing.purchase.purchase import limits_could_hold
from shared.packing.search import search
from shared.packing.search.fill_node import FillRules
from shared.packing.search.greedy import build_greedy
from shared.packing.usable_capacity import amounts_of
from tests.unit.packing.packing_cases import PLAIN, good, pod, problem, shape
from tests.unit.packing.search.test_aggregate import ground_of, topology


def groups_and_cost(pods: int, most: int) -> tuple[int, int]:
    settings = replace(
        PLAIN, max_launch_groups=most, fewer_groups_permille=10_000, improve_iterations=0
    )
    made = good(topology(pods=pods, settings=settings))
    assert made.unplaced == ()
    return len({node.options for node in made.nodes}), made.cost_micros_per_hour


@pytest.mark.parametrize(("pods", "most"), [(4, 4), (20, 4), (30, 5)])
def test_few_groups_get_sizes_of_their_own_and_cost_little_more(pods: int, most: int) -> None:
    _, free = groups_and_cost(pods, 0)
    groups, cost = groups_and_cost(pods, most)
    assert groups <= most
    assert free <= cost <= free * 1.12


def test_more_domains_than_groups_keep_one_group_each() -> None:
    assert groups_and_cost(4, 2)[0] == 3


def test_sizes_that_turn_out_more_expensive_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def dearest(priced: object, counts: object, plan: object, most: object) -> list[int]:
        return [0, 1, 2]

    usual = groups_and_cost(4, 4)
    monkeypatch.setattr(search, "choose_bin_types", dearest)
    assert groups_and_cost(4, 4)[0] <= 4
    monkeypatch.setattr(search, "choose_bin_types", lambda *_: [12, 13, 14])
    assert groups_and_cost(4, 4)[1] >= usual[1]


def test_pods_that_fit_no_one_size_get_no_sizes_chosen() -> None:
    shapes = (
        shape("cpu", 90_000, cores=8, gib=4),
        shape("memory", 90_000, cores=2, gib=64),
    )
    priced, counts = ground_of(problem([pod(7000, 1, 3), pod(500, 40, 3)], shapes=shapes))
    plan = build_greedy(priced, counts, FillRules())
    assert plan is not None
    assert choose_bin_types(priced, counts, plan, 1) == []


def test_sizes_beside_the_first_are_those_that_save_most() -> None:
    shapes = (
        shape("small", 50_000, cores=2, gib=4),
        shape("medium", 105_000, cores=4, gib=8),
        shape("large", 120_000, cores=4, gib=32),
    )
    priced, counts = ground_of(
        problem([pod(1000, 1.5, 40), pod(900, 7, 40), pod(1900, 3, 7)], shapes=shapes)
    )
    plan = build_greedy(priced, counts, FillRules())
    assert plan is not None
    assert len({entry.bin_type for entry in plan}) > 1
    one, two = choose_bin_types(priced, counts, plan, 1), choose_bin_types(priced, counts, plan, 2)
    assert len(one) == 1
    assert len(two) == 2
    assert set(one) < set(two)


def test_no_more_pods_are_planned_for_than_limits_have_room_for() -> None:
    asked = problem([pod(1000, 2, 60), pod(500, 8, 40)])
    kinds = find_bin_types(
        asked,
        ground_of(asked)[0].demand,
        range(len(asked.node_types)),
        amounts_of(asked.node_types, ground_of(asked)[0].demand),
        PLAIN,
    )
    for cores, part in ((40, 0.5), (400, 1.0), (0, 0.0)):
        limits = {"default": Resources((("cpu", cores * 1000),))}
        some = limits_could_hold(asked, kinds, limits, [60, 40])
        assert some == [60 * part, 40 * part]
    assert limits_could_hold(asked, kinds, {}, [60, 40]) == [60, 40]
    # A limit on a resource that no pod requests refuses no pod.
    unasked = {"default": Resources((("nvidia.com/gpu", 0),))}
    assert limits_could_hold(asked, kinds, unasked, [60, 40]) == [60, 40]


def test_a_limit_on_many_pods_is_used_up_nearly_whole() -> None:
    classes = [pod(c, m, 60) for c in (300, 1100, 1900) for m in (0.5, 3, 15)]
    free = good(problem(classes))
    used = Resources.total(
        problem(classes).node_types[node.node_type].capacity for node in free.nodes
    )["cpu"]
    limits = {"default": Resources((("cpu", used // 2),))}
    made = good(problem(classes, limits=limits))
    bought = Resources.total(
        problem(classes).node_types[node.node_type].capacity for node in made.nodes
    )
    assert used * 0.47 <= bought["cpu"] <= used // 2
    left = sum(count for _, count, _ in made.unplaced)
    assert 0.4 <= left / (60 * len(classes)) <= 0.6

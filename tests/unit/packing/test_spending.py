"""What each setting adds to a plan's price."""

from dataclasses import replace

from shared.packing.problem import PackingSettings
from shared.packing.spending import setting_costs
from tests.unit.packing.packing_cases import PLAIN, pod, problem

CLASSES = [pod(c, m, 40) for c in (300, 1100, 2600) for m in (0.5, 3)]
BARE = replace(PLAIN, max_launch_groups=0)


def test_each_setting_that_is_not_plain_is_priced_once() -> None:
    found = dict(setting_costs(problem(CLASSES, settings=PackingSettings())))
    assert list(found) == [
        "node_fee_micros_per_hour",
        "leftover_value_percent",
        "max_node_vcpus",
        "diversification_k_on_demand",
        "diversification_k_spot",
        "max_launch_groups",
    ]


def test_plain_settings_cost_nothing() -> None:
    assert setting_costs(problem(CLASSES, settings=BARE)) == ()


def test_a_cap_on_node_size_costs_what_small_nodes_cost_more() -> None:
    found = setting_costs(problem(CLASSES, settings=replace(BARE, max_node_vcpus=2)))
    assert [name for name, _ in found] == ["max_node_vcpus"]
    assert found[0][1] > 0


def test_settings_for_which_there_is_no_time_are_left_out() -> None:
    asked = problem(CLASSES, settings=replace(BARE, max_node_vcpus=2, thorough=True))
    assert setting_costs(asked, lambda: True) == ()
    assert setting_costs(asked, lambda: False) == setting_costs(asked)

"""Which nodes are removed in favour of fewer or cheaper ones."""

import dataclasses
from typing import Any

from shared.disruption.consolidation import Method, Outlook, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.resources import Resources
from tests.builders import (
    CATALOG,
    GIB,
    affinity,
    instance_type,
    node,
    pod,
    pods,
    provisioner,
    selector,
    slot,
)
from tests.unit.disruption.clusters import (
    PACKING,
    SPOT_ONLY,
    cluster,
    look,
    machine,
    on,
    spot,
)


def test_empty_nodes_are_removed_first_and_all_at_once() -> None:
    seen = cluster(machine("a"), machine("b"), machine("c"), bound=on("c", 1))
    outlook = look(seen)

    assert outlook.best is not None
    assert outlook.best.method == Method.EMPTY
    assert outlook.best.remove == ("a", "b")
    assert outlook.best.saving_micros_per_hour == 192_000
    assert outlook.simulations == 0


def test_no_more_empty_nodes_are_removed_than_the_budget_allows() -> None:
    outlook = look(cluster(machine("a"), machine("b"), bound=()), most=1)

    assert outlook.best is not None
    assert outlook.best.remove == ("a",)
    assert look(cluster(machine("a"), bound=()), most=0) == Outlook(
        reason="the budget of disruptions is used up"
    )


def test_node_whose_pods_fit_on_others_is_removed_without_a_replacement() -> None:
    seen = cluster(machine("a", "m5.xlarge"), machine("b"), bound=(*on("a", 2), *on("b", 1)))
    outlook = look(seen)

    assert outlook.best is not None
    assert outlook.best.method == Method.DELETE
    assert outlook.best.remove == ("a",)
    assert outlook.best.plan.nodes == ()
    assert outlook.best.saving_micros_per_hour == 192_000


def test_a_node_too_large_for_its_pods_is_replaced_by_a_cheaper_one() -> None:
    outlook = look(cluster(machine("a", "m5.2xlarge"), bound=on("a", 2)))

    assert outlook.best is not None
    assert outlook.best.method == Method.REPLACE
    (planned,) = outlook.best.plan.nodes
    assert planned.price_micros_per_hour == 96_000
    dearest = max(option.price_micros_per_hour for option in planned.options)
    assert outlook.best.saving_micros_per_hour == 384_000 - dearest
    assert planned.options[0].offering.instance_type == "m5.large"


def test_one_node_may_become_several_cheaper_ones() -> None:
    dear = instance_type("m5.2xlarge", cpu=8000, memory=32 * GIB, price=500_000)
    types = (CATALOG[2], dear)
    seen = cluster(machine("a", "m5.2xlarge"), bound=on("a", 9, cpu=600), instance_types=types)
    outlook = look(seen)

    assert outlook.best is not None
    assert len(outlook.best.plan.nodes) == 3
    assert outlook.best.plan.cost_micros_per_hour == 3 * 96_000
    assert outlook.best.saving_micros_per_hour == 500_000 - sum(
        planned_node.dearest_micros_per_hour for planned_node in outlook.best.plan.nodes
    )


def test_three_half_empty_nodes_become_fewer() -> None:
    seen = cluster(
        *(machine(name, "m5.xlarge") for name in "abc"),
        bound=tuple(other_pod for name in "abc" for other_pod in on(name, 2, cpu=600)),
    )
    outlook = look(seen)

    assert outlook.best is not None
    assert outlook.best.saving_micros_per_hour >= 2 * 192_000
    removed = 3 * 192_000 - outlook.best.saving_micros_per_hour
    assert removed <= 192_000


def test_two_nodes_do_not_become_one_of_the_same_type() -> None:
    """One of them goes, and the other takes its pods."""
    seen = cluster(machine("a"), machine("b"), bound=(*on("a", 1), *on("b", 1)))
    outlook = look(seen)

    assert outlook.best is not None
    assert outlook.best.method == Method.DELETE
    assert len(outlook.best.remove) == 1


def test_a_saving_below_the_minimum_moves_no_pod() -> None:
    seen = cluster(machine("a", "m5.2xlarge"), bound=on("a", 2))

    assert look(seen, minimum_saving_percent=80) == Outlook(
        reason="nothing saves enough", simulations=1
    )
    assert look(seen, minimum_saving_micros_per_hour=300_000).best is None
    assert look(seen, minimum_saving_micros_per_hour=288_000).best is not None


def test_a_machine_on_demand_is_only_replaced_by_what_the_next_look_would_keep() -> None:
    packing = dataclasses.replace(PACKING, option_price_ceiling_percent=300)
    seen = cluster(machine("a", "m5.2xlarge"), bound=on("a", 2))
    outlook = consolidate(seen, (), DisruptionSettings(), packing, most_nodes=1)

    assert outlook.best is not None
    options = outlook.best.plan.nodes[0].options
    assert {option.offering.instance_type for option in options} == {"m5.large"}


def test_of_spot_only_the_cheapest_pools_that_keep_the_saving_are_asked_for() -> None:
    """EC2 takes a deep one of them, and the next look would find what it costs too much."""
    packing = dataclasses.replace(PACKING, option_price_ceiling_percent=300)
    seen = cluster(spot("a", "m5.2xlarge"), bound=on("a", 2), provisioners=(SPOT_ONLY,))
    for pools, types in ((1, {"m5.large"}), (4, {"m5.large", "m5.xlarge"})):
        settings = DisruptionSettings(minimum_saving_percent=50, spot_pools=pools)
        best = consolidate(seen, (), settings, packing, most_nodes=1).best
        assert best is not None
        options = best.plan.nodes[0].options
        assert {option.offering.instance_type for option in options} == types
        dearest = max(option.price_micros_per_hour for option in options)
        assert dearest <= 64_000
        assert best.saving_micros_per_hour == 128_000 - dearest


def test_nothing_is_disrupted_while_pods_wait_for_capacity() -> None:
    seen = cluster(machine("a"), bound=(), pending=(pod("new"),))

    assert look(seen).reason == "pods wait for capacity"


def test_a_pod_that_no_node_can_hold_does_not_stop_consolidation() -> None:
    hopeless = pod("huge", cpu=900_000)
    seen = cluster(machine("a"), bound=(), pending=(hopeless,))

    assert look(seen).best is not None


def test_a_node_is_not_removed_for_a_machine_that_is_being_launched() -> None:
    coming = slot(0, allocatable=Resources.of(cpu=1900, memory=7 * GIB, pods=29))
    seen = cluster(machine("a"), bound=on("a", 1), slots=(coming,))

    assert look(seen).reason == "nothing saves enough"


def test_an_uninitialized_node_is_no_room_either() -> None:
    young = machine("b", ready=None, provider_id="aws:///us-east-1a/i-slot0")
    seen = cluster(machine("a"), young, bound=on("a", 1), slots=(slot(0, node_name="b"),))

    assert look(seen).best is None


def test_limits_count_the_old_node_while_the_new_one_comes() -> None:
    owner = provisioner(consolidation=True, limits=Resources.of(cpu=9000))
    seen = cluster(machine("a", "m5.2xlarge"), bound=on("a", 2), provisioners=(owner,))
    wide = provisioner(consolidation=True, limits=Resources.of(cpu=10_000))

    assert look(seen).best is None
    assert look(dataclasses.replace(seen, provisioners=(wide,))).best is not None


def test_anti_affinity_and_budgets_keep_their_nodes() -> None:
    apart: dict[str, Any] = {"anti_affinity": (affinity(),)}
    seen = cluster(machine("a"), machine("b"), bound=(*on("a", 1, **apart), *on("b", 1, **apart)))
    held = PodDisruptionBudget(
        namespace="default", name="web", selector=selector(app="web"), disruptions_allowed=0
    )

    assert look(seen).reason == "nothing saves enough"
    assert look(seen, budgets=(held,)).reason == "no node may be disrupted"


def test_spot_becomes_spot_only_with_enough_cheaper_pools() -> None:
    seen = cluster(spot("a", "m5.2xlarge"), bound=on("a", 2), provisioners=(SPOT_ONLY,))

    assert look(seen, spot_pools=15).best is None
    found = look(seen, spot_pools=3).best
    assert found is not None
    assert len(found.plan.nodes[0].options) >= 3


def test_two_spot_nodes_become_one_whatever_the_number_of_pools() -> None:
    seen = cluster(
        spot("a", "m5.xlarge"),
        spot("b", "m5.xlarge"),
        bound=(*on("a", 3, cpu=600), *on("b", 3, cpu=600)),
        provisioners=(SPOT_ONLY,),
    )
    outlook = look(seen, spot_pools=100)

    assert outlook.best is not None
    assert outlook.best.saving_micros_per_hour > 0
    assert len(outlook.best.plan.nodes) < len(outlook.best.remove)


def test_the_tries_are_limited_and_counted() -> None:
    seen = cluster(
        *(machine(name, "m5.xlarge") for name in "abcdef"),
        bound=tuple(other_pod for name in "abcdef" for other_pod in on(name, 3, cpu=1200)),
    )

    assert look(seen, max_simulations=3).simulations == 3


def test_the_same_snapshot_always_gives_the_same_answer() -> None:
    seen = cluster(
        *(machine(name, "m5.xlarge") for name in "abc"),
        bound=tuple(other_pod for name in "abc" for other_pod in on(name, 2, cpu=600)),
    )

    assert look(seen) == look(dataclasses.replace(seen, nodes=tuple(reversed(seen.nodes))))


def test_of_the_best_group_only_the_nodes_that_count_are_moved() -> None:
    """Two of three would go; one of them saves next to nothing, so its pods stay."""
    tiny = instance_type("t3.nano", cpu=2000, memory=8 * GIB, price=5_000)
    seen = cluster(
        machine("a", "m5.2xlarge"),
        node(
            "b",
            labels={**node().labels, keys.INSTANCE_TYPE: "t3.nano"},
            allocatable=Resources.of(memory=7 * GIB, pods=29),
        ),
        bound=(*on("a", 2), *pods(1, prefix="b-", node_name="b", cpu=0, memory=GIB)),
        instance_types=(*CATALOG, tiny),
    )
    outlook = look(seen)

    assert outlook.best is not None
    assert outlook.best.remove == ("a",)

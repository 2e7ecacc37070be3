"""Which nodes are removed in favour of fewer or cheaper ones."""

import pytest

from shared.disruption.consolidation import ConsolidationResult, DisruptionMethod, consolidate
from shared.disruption.settings import DisruptionSettings
from shared.disruption.simulate import by_price, without_nodes
from shared.model import labels as keys
from shared.model.dialect import OwnerKind
from shared.model.resources import Resources
from shared.model.values import replace
from shared.packing.problem import PackingSettings
from shared.planning.rules.limits import used_capacity
from tests.builders import (
    CATALOG,
    GIB,
    instance_type,
    node,
    node_of,
    pods,
    provisioner,
    slot,
    snapshot,
)
from tests.unit.disruption.clusters import (
    ONE_OPTION,
    SPOT_ONLY,
    best_change,
    cluster,
    consolidated,
    on,
    several_on,
    spot,
)


def test_empty_nodes_are_removed_first_and_all_at_once() -> None:
    seen = cluster(node_of("a"), node_of("b"), node_of("c"), bound=several_on("c", 1))
    outlook = consolidated(seen)

    assert outlook.best is not None
    assert outlook.best.method == DisruptionMethod.EMPTY
    assert outlook.best.remove == ("a", "b")
    assert outlook.best.saving_micros_per_hour == 192_000
    assert outlook.simulations == 0


def test_a_change_is_of_so_few_nodes_that_a_step_of_its_timer_ends() -> None:
    empty = cluster(*(node_of(f"n{number}") for number in range(5)))
    best = best_change(empty, most_at_once=3)
    assert best.remove == ("n0", "n1", "n2")
    used = cluster(
        *(node_of(f"n{number}") for number in range(6)),
        bound=tuple(on(f"n{number}", cpu=100) for number in range(6)),
    )
    best = best_change(used, most_at_once=3)
    assert len(best.remove) == 3


def test_one_node_may_become_several_cheaper_ones() -> None:
    dear = instance_type("m5.2xlarge", cpu=8000, memory=32 * GIB, price=500_000)
    types = (CATALOG[2], dear)
    seen = cluster(
        node_of("a", "m5.2xlarge"), bound=several_on("a", 9, cpu=600), instance_types=types
    )
    best = best_change(seen)
    assert len(best.plan.nodes) == 3
    assert best.plan.cost_micros_per_hour == 3 * 96_000
    assert best.saving_micros_per_hour == 500_000 - sum(
        planned_node.highest_price_micros_per_hour for planned_node in best.plan.nodes
    )


def test_a_saving_below_the_minimum_moves_no_pod() -> None:
    seen = cluster(node_of("a", "m5.2xlarge"), bound=several_on("a", 2))

    assert consolidated(seen, minimum_saving_percent=80) == ConsolidationResult(
        reason="nothing saves enough", unchanged=("a",), simulations=1
    )
    assert consolidated(seen, minimum_saving_micros_per_hour=300_000).best is None
    assert consolidated(seen, minimum_saving_micros_per_hour=288_000).best is not None


def test_a_machine_on_demand_is_only_replaced_by_what_the_next_look_would_keep() -> None:
    packing = replace(ONE_OPTION, option_price_ceiling_percent=300)
    seen = cluster(node_of("a", "m5.2xlarge"), bound=several_on("a", 2))
    outlook = consolidate(seen, (), DisruptionSettings(), packing, most_nodes=1)

    assert outlook.best is not None
    options = outlook.best.plan.nodes[0].options
    assert {option.offering.instance_type for option in options} == {"m5.large"}


def test_of_spot_only_the_cheapest_types_that_keep_the_saving_are_asked_for() -> None:
    """EC2 takes a deep one of them, and the next look would find what it costs too much."""
    packing = replace(ONE_OPTION, option_price_ceiling_percent=300)
    seen = cluster(spot("a", "m5.2xlarge"), bound=several_on("a", 2), provisioners=(SPOT_ONLY,))
    for many, types in ((1, {"m5.large"}), (2, {"m5.large", "m5.xlarge"})):
        settings = DisruptionSettings(minimum_saving_percent=50, spot_types=many)
        best = consolidate(seen, (), settings, packing, most_nodes=1).best
        assert best is not None
        options = best.plan.nodes[0].options
        assert {option.offering.instance_type for option in options} == types
        dearest = max(option.price_micros_per_hour for option in options)
        assert dearest <= 64_000
        assert best.saving_micros_per_hour == 128_000 - dearest


def test_a_node_is_not_removed_for_a_machine_that_is_being_launched() -> None:
    coming = slot(0, allocatable=Resources.of(cpu=1900, memory=7 * GIB, pods=29))
    seen = cluster(node_of("a"), bound=several_on("a", 1), slots=(coming,))

    assert consolidated(seen).reason == "nothing saves enough"


def test_limits_count_the_old_node_while_the_new_one_comes() -> None:
    owner = provisioner(consolidation=True, limits=Resources.of(cpu=9000))
    seen = cluster(node_of("a", "m5.2xlarge"), bound=several_on("a", 2), provisioners=(owner,))
    wide = provisioner(consolidation=True, limits=Resources.of(cpu=10_000))

    assert consolidated(seen).best is None
    assert consolidated(replace(seen, provisioners=(wide,))).best is not None


def test_types_far_from_the_cheapest_count_among_those_that_could_serve() -> None:
    types = tuple(instance_type(f"m{5 + n}.large", price=96_000 + 60_000 * n) for n in range(4))
    seen = cluster(
        spot("a", "m5.2xlarge"),
        bound=several_on("a", 2),
        provisioners=(SPOT_ONLY,),
        instance_types=(*types, CATALOG[1]),
    )
    packing = by_price(PackingSettings())

    found = {
        many: consolidate(seen, (), DisruptionSettings(spot_types=many), packing, most_nodes=9)
        for many in (4, 5)
    }
    assert found[4].best is not None
    assert found[5].best is None


def test_two_spot_nodes_become_one_whatever_the_number_of_types() -> None:
    seen = cluster(
        spot("a", "m5.xlarge"),
        spot("b", "m5.xlarge"),
        bound=(*several_on("a", 3, cpu=600), *several_on("b", 3, cpu=600)),
        provisioners=(SPOT_ONLY,),
    )
    best = best_change(seen, spot_types=100)
    assert best.saving_micros_per_hour > 0
    assert len(best.plan.nodes) < len(best.remove)


def test_the_tries_are_limited_and_counted() -> None:
    seen = cluster(
        *(node_of(name, "m5.xlarge") for name in "abcdef"),
        bound=tuple(other_pod for name in "abcdef" for other_pod in several_on(name, 3, cpu=1200)),
    )

    assert consolidated(seen, max_simulations=3).simulations == 3


def test_the_same_snapshot_always_gives_the_same_answer() -> None:
    seen = cluster(
        *(node_of(name, "m5.xlarge") for name in "abc"),
        bound=tuple(other_pod for name in "abc" for other_pod in several_on(name, 2, cpu=600)),
    )

    assert consolidated(seen) == consolidated(replace(seen, nodes=tuple(reversed(seen.nodes))))


def test_of_the_best_group_only_the_nodes_that_count_are_moved() -> None:
    """Two of three would go; one of them saves next to nothing, so its pods stay."""
    tiny = instance_type("t3.nano", cpu=2000, memory=8 * GIB, price=5_000)
    seen = cluster(
        node_of("a", "m5.2xlarge"),
        node_of("b", tiny, allocatable=Resources.of(memory=7 * GIB, pods=29)),
        bound=(*several_on("a", 2), *pods(1, prefix="b-", node_name="b", cpu=0, memory=GIB)),
        instance_types=(*CATALOG, tiny),
    )
    assert best_change(seen).remove == ("a",)


@pytest.mark.parametrize("kind", OwnerKind)
def test_machines_in_flight_count_under_limits_while_nodes_are_tried(kind: OwnerKind) -> None:
    owner = provisioner(kind=kind)
    labels = {owner.owner_label: "default"}
    standing = node(
        labels=labels, annotations={keys.SLOT: "p/0/0"}, capacity=Resources.of(cpu=4000)
    )
    coming = slot(labels=labels)
    by_kubelet = replace(
        node("b", provider_id=f"aws:///test-1a/{coming.instance_id}", finalizers=()), annotations={}
    )
    for nodes in [(standing,), (standing, by_kubelet)]:
        found = without_nodes(
            snapshot(provisioners=(owner,), nodes=nodes, slots=(coming,)), {standing.name}
        )
        assert used_capacity(found)["default"]["cpu"] == 6000

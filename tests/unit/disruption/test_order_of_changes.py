"""A large saving goes before small ones, and does not wait for them."""

from datetime import timedelta

from shared.disruption.consolidation import ConsolidationResult
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import CATALOG, GIB, NOW, instance_type, node_of, pods
from tests.unit.disruption.clusters import LATER, best_change, cluster, consolidated, several_on

# $1.8360 an hour, as c6a.12xlarge.
LARGE = instance_type("c6a.12xlarge", cpu=48_000, memory=96 * GIB, price=1_836_000)
TYPES = (*CATALOG, LARGE)
SMALL = tuple(f"s{number}" for number in range(30))


def quarter_full(name: str = "large") -> tuple[Pod, ...]:
    return pods(12, prefix=f"{name}-", node_name=name, cpu=1000, memory=GIB)


def beside_small_ones(large: Node, *, pods_each: int = 1) -> ClusterSnapshot:
    """Return a large node beside small ones that are used even less."""
    return cluster(
        large,
        *(node_of(name) for name in SMALL),
        bound=(
            *quarter_full(),
            *(each for name in SMALL for each in several_on(name, pods_each, cpu=150)),
        ),
        instance_types=TYPES,
    )


def of_age() -> Node:
    return node_of("large", LARGE, created_at=NOW)


def young() -> Node:
    return node_of("large", LARGE, created_at=LATER - timedelta(minutes=3))


def removed(outlook: ConsolidationResult) -> tuple[str, ...]:
    assert outlook.best is not None
    return outlook.best.remove


def test_the_node_that_wastes_most_is_tried_though_tries_are_few() -> None:
    seen = beside_small_ones(of_age())
    for tries in (1, 4):
        assert "large" in removed(consolidated(seen, 3, max_simulations=tries))


def test_small_changes_move_no_pods_to_a_large_node_that_is_soon_old_enough() -> None:
    """They would save cents, and the pods that come would make it wait for consolidateAfter."""
    seen = beside_small_ones(young())
    best = best_change(seen, 3)
    assert "large" not in {placement.node for placement in best.plan.placements}
    assert "large" not in best.remove
    # Once it is old enough, it goes first.
    aged = tuple(replace(node, created_at=NOW) for node in seen.nodes)
    assert "large" in removed(consolidated(replace(seen, nodes=aged), 3))


def test_a_change_that_saves_more_than_a_young_node_wastes_may_use_its_room() -> None:
    full = [("a", 3), ("b", 4)]
    seen = cluster(
        node_of("a", LARGE),
        node_of("b", "m5.2xlarge", created_at=LATER - timedelta(minutes=3)),
        bound=tuple(each for name, count in full for each in several_on(name, count, cpu=900)),
        instance_types=TYPES,
    )
    best = best_change(seen)
    assert best.remove == ("a",)
    assert {placement.node for placement in best.plan.placements} == {"b"}


def test_a_group_that_is_worth_more_than_a_young_node_wastes_is_judged_by_what_it_saves() -> None:
    cheaper = instance_type("c6a.special", cpu=48_000, memory=96 * GIB, price=1_500_000)
    seen = cluster(
        young(),
        node_of("a", LARGE),
        node_of("s"),
        bound=(*quarter_full(), *several_on("a", 1, cpu=40_000), *several_on("s", 1, cpu=150)),
        instance_types=(*TYPES, cheaper),
    )
    # With the pods of both on the young node and a cheaper one, $0.43 would be saved of $1.93.
    assert removed(consolidated(seen)) == ("a",)

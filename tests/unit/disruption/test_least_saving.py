"""How little a change may save, and a node within it."""

from typing import Any

from shared.disruption.consolidation import DisruptionMethod
from tests.builders import (
    CATALOG,
    GIB,
    instance_type,
    node_of,
)
from tests.unit.disruption.clusters import best_change, cluster, consolidated, several_on


def test_node_is_removed_with_others_when_it_adds_more_than_the_minimum_saving() -> None:
    """Alone it would save 3 % of its price; what must save enough is the change as a whole."""
    small = instance_type("m6.large", price=196_000)
    large = instance_type("m6.2xlarge", cpu=8000, memory=32 * GIB, price=396_000)
    seen = cluster(
        *(node_of(name, kind) for name, kind in (("a", small), ("b", large))),
        bound=(*several_on("a", 1, cpu=1900), *several_on("b", 4, cpu=1900)),
        instance_types=(*CATALOG, small, large),
    )
    alone = best_change(seen, 1)
    assert alone.remove == ("a",)
    assert best_change(seen, 2).remove == ("a", "b")
    assert consolidated(seen, 2, minimum_saving_micros_per_hour=13_000).best == alone


def test_no_pod_moves_for_less_than_the_least_amount_though_there_is_room() -> None:
    """A machine of $0.006 an hour is not worth a move; two of them are."""
    tiny = instance_type("t3.nano", cpu=1000, memory=4 * GIB, price=6_000)
    types = (*CATALOG, tiny)
    a, b = node_of("a", tiny), node_of("b", tiny)
    big = node_of("big")
    bound = (*several_on("big", 1, cpu=1700), *several_on("a", 1, cpu=100))
    one = cluster(big, a, bound=bound, instance_types=types)
    two = cluster(big, a, b, bound=(*bound, *several_on("b", 1, cpu=100)), instance_types=types)

    cheap: dict[str, Any] = {"eviction_cost_micros": 4_000}
    assert consolidated(one, **cheap).best is None
    best = best_change(two, **cheap)
    assert (best.method, best.saving_micros_per_hour >= 12_000) == (DisruptionMethod.DELETE, True)
    assert consolidated(one, minimum_saving_micros_per_hour=6_000, **cheap).best is not None

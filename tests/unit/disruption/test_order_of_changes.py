"""A large saving goes before small ones."""

from shared.disruption.consolidation import ConsolidationResult
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.snapshot import ClusterSnapshot
from tests.builders import CATALOG, GIB, instance_type, node_of, pods
from tests.unit.disruption.clusters import cluster, consolidated, several_on

# $1.8360 an hour, as c6a.12xlarge.
LARGE = instance_type("c6a.12xlarge", cpu=48_000, memory=96 * GIB, price=1_836_000)
TYPES = (*CATALOG, LARGE)
SMALL = tuple(f"s{number}" for number in range(30))


def quarter_full(name: str = "large") -> tuple[Pod, ...]:
    return pods(12, prefix=f"{name}-", node_name=name, cpu=1000, memory=GIB)


def beside_small_ones(large: Node) -> ClusterSnapshot:
    """Return a large node beside small ones that are used even less."""
    return cluster(
        large,
        *(node_of(name) for name in SMALL),
        bound=(
            *quarter_full(),
            *(each for name in SMALL for each in several_on(name, 1, cpu=150)),
        ),
        instance_types=TYPES,
    )


def removed(outlook: ConsolidationResult) -> tuple[str, ...]:
    assert outlook.best is not None
    return outlook.best.remove


def test_the_node_that_wastes_most_is_tried_though_tries_are_few() -> None:
    seen = beside_small_ones(node_of("large", LARGE))
    for tries in (1, 4):
        assert "large" in removed(consolidated(seen, 3, max_simulations=tries))

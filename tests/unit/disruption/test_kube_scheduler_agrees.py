"""A change of nodes is made only if kube-scheduler finds room for its pods, too."""

from typing import Any

import pytest

from shared.disruption.simulate import kube_scheduler_agrees, simulate
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.snapshot import ClusterSnapshot
from tests.builders import budget, node_of, pod
from tests.unit.disruption.clusters import PACKING, cluster, consolidated

# An emptier node, and one with less room.
NODES = (node_of("a", "m5.xlarge"), node_of("b"), node_of("c"))
STAYS = {keys.DO_NOT_DISRUPT: "true"}
STAYING = (
    pod("there", node_name="b", cpu=50, annotations=STAYS),
    pod("too", node_name="c", cpu=900, annotations=STAYS),
)


def going(name: str, cpu: int, **more: Any) -> Pod:
    return pod(name, node_name="a", cpu=cpu, **more)


def without_a(*bound: Pod) -> ClusterSnapshot:
    return cluster(*NODES, bound=(*STAYING, *bound))


SMALL_FIRST = (going("1-small", 500), going("2-large", 1600))


@pytest.mark.parametrize(
    ("bound", "budgets", "expected"),
    [
        pytest.param((going("1-large", 1600), going("2-small", 500)), (), True, id="large-first"),
        pytest.param(SMALL_FIRST, (), False, id="small-first"),
        pytest.param(
            (going("1-small", 500, claims=RESOLVED), SMALL_FIRST[1]), (), True, id="volumes-detach"
        ),
        pytest.param(
            (going("0-tiny", 100), *SMALL_FIRST), (), False, id="no-budget-makes-them-wait"
        ),
        pytest.param(
            (going("0-tiny", 100), SMALL_FIRST[0], going("2-large", 1600, labels={})),
            (budget(1),),
            True,
            id="a-budget-lets-one-go-at-a-time",
        ),
    ],
)
def test_pods_find_room_in_the_order_in_which_they_are_made_again(
    bound: tuple[Pod, ...],
    budgets: tuple[PodDisruptionBudget, ...],
    expected: bool,  # noqa: FBT001
) -> None:
    seen = without_a(*bound)
    plan = simulate(seen, {"a"}, PACKING)
    assert plan is not None
    assert not plan.nodes
    assert kube_scheduler_agrees(seen, {"a"}, plan, budgets) == expected


def test_new_nodes_take_pods_too() -> None:
    seen = without_a(going("1-large", 1600), going("2-large", 1600))
    plan = simulate(seen, {"a"}, PACKING)
    assert plan is not None
    assert plan.nodes
    assert kube_scheduler_agrees(seen, {"a"}, plan, ())


def test_a_change_that_kube_scheduler_would_undo_is_not_made() -> None:
    seen = without_a(*SMALL_FIRST)
    assert consolidated(seen).best is None
    assert consolidated(seen, eviction_cost_micros=0).best is not None

"""What is launched where kube-scheduler finds no room for moved pods counts as a cost."""

from typing import Any

import pytest

from shared.disruption.simulate import launched_again, simulate
from shared.model import labels as keys
from shared.model.kubernetes.disruption_budgets import PodDisruptionBudget
from shared.model.kubernetes.pods import Pod
from shared.model.kubernetes.volumes import RESOLVED
from shared.model.plan import Plan
from shared.model.resources import Resources
from shared.model.snapshot import ClusterSnapshot
from shared.model.values import replace
from tests.builders import budget, node_of, pod
from tests.unit.disruption.clusters import PACKING, SAVING, best_change, cluster, consolidated

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
    ("bound", "budgets", "nodes"),
    [
        pytest.param((going("1-large", 1600), going("2-small", 500)), (), 0, id="large-first"),
        pytest.param(SMALL_FIRST, (), 1, id="small-first"),
        pytest.param(
            (going("1-small", 500, claims=RESOLVED), SMALL_FIRST[1]), (), 0, id="volumes-detach"
        ),
        pytest.param((going("0-tiny", 100), *SMALL_FIRST), (), 1, id="no-budget-makes-them-wait"),
        pytest.param(
            (going("0-tiny", 100), SMALL_FIRST[0], going("2-large", 1600, labels={})),
            (budget(1),),
            0,
            id="a-budget-lets-one-go-at-a-time",
        ),
    ],
)
def test_pods_find_room_in_the_order_in_which_they_are_made_again(
    bound: tuple[Pod, ...], budgets: tuple[PodDisruptionBudget, ...], nodes: int
) -> None:
    again = launched_after(without_a(*bound), *budgets)
    assert again is not None
    assert len(again.nodes) == nodes


def launched_after(seen: ClusterSnapshot, *budgets: PodDisruptionBudget) -> Plan | None:
    plan = simulate(seen, {"a"}, PACKING)
    assert plan is not None
    return launched_again(seen, {"a"}, plan, budgets, PACKING)


def test_new_nodes_take_pods_too() -> None:
    two = (going("1-large", 1600), going("2-large", 1600))
    assert launched_after(without_a(*two)) == Plan()
    # The tiny one goes to the emptiest node, which is the new one, and two find no room.
    again = launched_after(without_a(*two, going("0-tiny", 400)))
    assert again is not None
    assert len(again.nodes) == 1


def test_a_change_is_not_made_where_a_pod_would_fit_nowhere() -> None:
    seen = without_a(*SMALL_FIRST)
    bounded = replace(seen, provisioners=(replace(SAVING, limits=Resources.of(cpu=2000)),))
    assert launched_after(bounded) is None
    assert consolidated(bounded).best is None


def test_what_is_launched_again_counts() -> None:
    seen = without_a(*SMALL_FIRST)
    counted, uncounted = best_change(seen), best_change(seen, eviction_cost_micros=0)
    assert counted.saving_micros_per_hour < uncounted.saving_micros_per_hour
    # A node as dear as the one that goes.
    assert consolidated(replace(seen, nodes=(node_of("a", "m5.large"), *NODES[1:]))).best is None

"""Whether kube-scheduler finds room for pods that it places one by one."""

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.pods import Pod, PreferredNodes
from shared.planning.kube_scheduler import kube_scheduler_places
from tests.builders import GIB, ZONES, needs, node_of, pod, snapshot, spread

SMALL, LARGE = pod("small", cpu=500), pod("large", cpu=1900)
EMPTY = node_of("a")
HALF = (node_of("b"), pod("there", node_name="b", cpu=1000))
IN_OTHER_ZONE = {keys.ZONE: ZONES[1]}
ASKS_FOR_MORE = PreferredNodes(weight=1, requirements=needs(keys.ZONE, "In", "nowhere"))


def placed(*pods: Pod) -> bool:
    node, bound = HALF
    return kube_scheduler_places(
        snapshot(*pods, nodes=(EMPTY, node), bound=(bound,), sites=()), pods
    )


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param((LARGE, SMALL), True, id="each-finds-room"),
        pytest.param((SMALL, LARGE), False, id="the-first-takes-the-emptiest-node"),
        pytest.param((LARGE, pod("large-too", cpu=1900)), False, id="a-full-node-takes-no-more"),
        pytest.param(
            (pod(cpu=500, preferred_nodes=(ASKS_FOR_MORE,)),), True, id="preferences-yield"
        ),
        pytest.param((), True, id="none"),
    ],
)
def test_pods_are_placed_where_most_is_left(
    pods: tuple[Pod, ...],
    expected: bool,  # noqa: FBT001
) -> None:
    assert placed(*pods) == expected


def test_rules_send_pods_to_nodes_with_less_room() -> None:
    asked = [pod(f"web-{number}", cpu=100, spreads=(spread(),)) for number in range(4)]
    nodes = (EMPTY, node_of("b", labels=IN_OTHER_ZONE))
    full = pod("there", labels={}, node_name="b", cpu=1700)
    seen = snapshot(*asked, nodes=nodes, bound=(full,), sites=())
    # All in one zone would leave it four ahead.
    assert kube_scheduler_places(seen, asked)


def test_between_nodes_with_as_much_left_the_evenly_used_one_is_taken() -> None:
    there = (
        pod("cpu", node_name="a", cpu=800, memory=0),
        pod("both", node_name="b", cpu=400, memory=3 * GIB // 2),
    )
    first, wide = pod("first", cpu=100, memory=GIB // 4), pod("wide", cpu=1500, memory=0)
    seen = snapshot(*(first, wide), nodes=(node_of("a"), node_of("b")), bound=there, sites=())
    assert kube_scheduler_places(seen, (wide,))
    assert not kube_scheduler_places(seen, (first, wide))

"""Where kube-scheduler places pods, one by one."""

import pytest

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.planning.kube_scheduler import kube_scheduler_places
from tests.builders import GIB, ZONES, node_of, pod, snapshot, spread

SMALL, LARGE = pod("small", cpu=500), pod("large", cpu=1900)
EMPTY, HALF = node_of("a"), node_of("b")
IN_HALF = pod("there", node_name="b", cpu=1000)
IN_OTHER_ZONE = {keys.ZONE: ZONES[1]}


def placed(asked: tuple[Pod, ...], bound: tuple[Pod, ...], *nodes: Node) -> str:
    """Return the nodes of the pods, in their order; - where there is no room."""
    places = kube_scheduler_places(snapshot(*asked, nodes=nodes, bound=bound, sites=()), asked)
    return "".join(places.get(each.uid, "-") for each in asked)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param((LARGE, SMALL), "ab", id="each-finds-room"),
        pytest.param((SMALL, LARGE), "a-", id="the-first-takes-the-emptiest-node"),
        pytest.param((LARGE, pod("large-too", cpu=1900)), "a-", id="a-full-node-takes-no-more"),
    ],
)
def test_pods_are_placed_where_most_is_left(asked: tuple[Pod, ...], expected: str) -> None:
    assert placed(asked, (IN_HALF,), EMPTY, HALF) == expected


@pytest.mark.parametrize(("used", "expected"), [(1400, "aba"), (1850, "aaa")])
def test_preferences_send_pods_to_nodes_with_less_room_if_there_is_any(
    used: int, expected: str
) -> None:
    soft = {"cpu": 100, "spreads": (spread(hard=False),)}
    asked = tuple(pod(f"web-{number}", **soft) for number in range(3))
    full = pod("there", labels={}, node_name="b", cpu=used)
    assert placed(asked, (full,), EMPTY, node_of("b", labels=IN_OTHER_ZONE)) == expected


def test_between_nodes_with_as_much_left_the_evenly_used_one_is_taken() -> None:
    there = (
        pod("cpu", node_name="a", cpu=800, memory=0),
        pod("both", node_name="b", cpu=400, memory=3 * GIB // 2),
    )
    first, wide = pod("first", cpu=100, memory=GIB // 4), pod("wide", cpu=1500, memory=0)
    nodes = (node_of("a"), node_of("b"))
    assert placed((wide,), there, *nodes) == "b"
    assert placed((first, wide), there, *nodes) == "b-"

"""The Cluster port: binding, evicting and deleting pods."""

import pytest

from shared.model.errors import ConflictError, EvictionRefusedError, NotFoundError
from tests.contract.kube.worlds import World, find, pod


def test_a_pod_is_bound_once_and_binding_it_there_again_is_fine(world: World) -> None:
    world.apply(pod("a"))
    waiting = find(world, "a")
    world.cluster.bind(waiting, "n1")
    world.cluster.bind(waiting, "n1")
    assert find(world, "a").node_name == "n1"
    with pytest.raises(ConflictError):
        world.cluster.bind(waiting, "n2")


def test_binding_a_pod_that_is_gone_or_another_one_is_refused(world: World) -> None:
    world.apply(pod("a"))
    waiting = find(world, "a")
    world.replace_pod(pod("a"))
    with pytest.raises(ConflictError):
        world.cluster.bind(waiting, "n1")
    world.cluster.delete_pod(find(world, "a"))
    with pytest.raises(NotFoundError):
        world.cluster.bind(waiting, "n1")


def test_many_pods_are_bound_at_once_and_lost_ones_are_left_out(world: World) -> None:
    for name in ("a", "b", "c"):
        world.apply(pod(name))
    waiting = {name: find(world, name) for name in ("a", "b", "c")}
    world.cluster.bind(waiting["b"], "elsewhere")
    world.cluster.delete_pod(waiting["c"])
    bound = world.cluster.bind_all([(waiting[name], "n1") for name in ("a", "b", "c")])
    assert [other_pod.name for other_pod in bound] == ["a"]
    assert find(world, "a").node_name == "n1"
    assert find(world, "b").node_name == "elsewhere"
    assert world.cluster.bind_all([]) == ()


def test_a_budget_refuses_an_eviction_for_now(world: World) -> None:
    world.apply(pod("a", node="n1", phase="Running"))
    world.forbid_eviction("shop/a", {"app": "a"})
    with pytest.raises(EvictionRefusedError):
        world.cluster.evict(find(world, "a"))
    assert not find(world, "a").is_terminating


def test_an_evicted_pod_is_terminating_until_its_kubelet_ends_it(world: World) -> None:
    world.apply(pod("a", node="n1", phase="Running"))
    running = find(world, "a")
    world.cluster.evict(running)
    assert find(world, "a").is_terminating
    world.cluster.evict(running)


def test_evicting_or_deleting_a_pod_that_is_gone_is_fine(world: World) -> None:
    world.apply(pod("a"))
    waiting = find(world, "a")
    world.cluster.delete_pod(waiting)
    assert world.cluster.pod("shop", "a") is None
    world.cluster.delete_pod(waiting)
    world.cluster.evict(waiting)


def test_a_pod_that_is_deleted_by_force_is_gone_at_once(world: World) -> None:
    world.apply(pod("a", node="n1", phase="Running"))
    running = find(world, "a")
    world.cluster.evict(running)
    world.cluster.force_delete_pod(running)
    assert world.cluster.pod("shop", "a") is None
    world.cluster.force_delete_pod(running)


def test_another_pod_of_the_same_name_is_left_alone(world: World) -> None:
    world.apply(pod("a", node="n1", phase="Running"))
    old = find(world, "a")
    world.replace_pod(pod("a", node="n1", phase="Running"))
    world.cluster.delete_pod(old)
    world.cluster.force_delete_pod(old)
    world.cluster.evict(old)
    assert not find(world, "a").is_terminating

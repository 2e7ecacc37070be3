"""PodDisruptionBudgets and owners of nodes, by the fake and by the adapter."""

from typing import Any

from shared.model.provisioner import Provisioner
from shared.ports import NodeChange
from tests.contract.kube.worlds import World, find, find_node, manifest, pod


def budget(name: str, allowed: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "observedGeneration": 1,
        },
    }


def test_budgets_are_read_with_what_they_allow_now(world: World) -> None:
    world.apply(pod("web"))
    world.apply(budget("z", 2, app="other"))
    world.apply(budget("a", 0, app="web"))
    first, last = world.cluster.disruption_budgets()
    assert (first.namespace, first.name, first.disruptions_allowed) == ("shop", "a", 0)
    assert (last.name, last.disruptions_allowed) == ("z", 2)
    assert first.protects(find(world, "web"))
    assert not last.protects(find(world, "web"))


def test_a_node_is_given_an_owner(world: World) -> None:
    world.cluster.create_node(manifest())
    assert find_node(world).owners == ()
    for uid in ("uid-a", "uid-b"):
        change = NodeChange(owner=Provisioner(name=uid, uid=uid))
        world.cluster.change_node(find_node(world), change)
    assert find_node(world).owners == ("uid-a", "uid-b")

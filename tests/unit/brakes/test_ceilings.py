"""How much of a ceiling is in use: conditions and Events of Provisioners."""

import pytest

from shared.model.brakes import Brakes, Ceiling
from tests.builders import provisioner
from tests.unit.brakes.test_hold import braked
from tests.unit.launching.launches import apart
from tests.unit.worlds import World


def of_ceiling(world: World) -> tuple[bool, str, str]:
    return world.cluster.within_ceiling["default"]


def look(world: World) -> None:
    """Let sweep run, and provision look if sweep asked for it."""
    world.outbox.looks.clear()
    world.sweep()
    if world.outbox.looks:
        world.provision(look=True)


@pytest.mark.parametrize("whose", ["cluster", "provisioner"])
def test_from_four_fifths_of_a_ceiling_on_provisioners_say_so_until_it_is_less(whose: str) -> None:
    ceiling = Ceiling(max_price_micros_per_hour=500_000)
    owned = ceiling if whose == "provisioner" else Ceiling()
    # A machine costs 96,000 an hour on demand.
    world = World(provisioner(ceiling=owned), *apart(4))
    if whose == "cluster":
        braked(world, Brakes(ceiling=ceiling))
    report = world.provision()
    assert report.ceiling_percent == 76
    assert world.cluster.within_ceiling == {}
    assert world.messages("NearCeiling") == []
    look(world)
    assert world.outbox.looks == []

    world.cluster.add(*apart(5)[4:])
    assert world.provision().ceiling_percent == 96
    name = "the cluster" if whose == "cluster" else "this Provisioner"
    text = f"nodes of {name} cost $0.48 per hour, at most $0.50 are allowed"
    assert of_ceiling(world) == (True, "NearCeiling", text)
    (told,) = world.events("NearCeiling")
    assert (told.kind, told.name, told.severity) == ("Provisioner", "default", "Warning")
    assert told.message == text

    for node in world.cluster.nodes():
        world.kubelet_joins(node.name)
        world.bind(node.name)
    for node in world.cluster.nodes()[:2]:
        world.cloud.end(node.instance_id)
        del world.cluster.node_values[node.name]
    look(world)
    assert of_ceiling(world)[:2] == (True, "WithinCeiling")
    look(world)
    assert world.outbox.looks == []
    # A change is told, and not that nothing has changed.
    assert world.cluster.called("set_provisioner_condition").count("default") == 2


def test_at_the_ceiling_the_condition_says_so_and_the_pods_get_events() -> None:
    world = World(provisioner(), *apart(3))
    braked(world, Brakes(ceiling=Ceiling(max_price_micros_per_hour=200_000)))
    world.provision_until_quiet()
    text = "nodes of the cluster cost $0.19 per hour, at most $0.20 are allowed"
    held = f"{text}; pending pods need more"
    assert of_ceiling(world) == (False, "CeilingReached", held)
    assert world.messages("CeilingReached") == [held]
    (told,) = set(world.messages("FailedProvisioning"))
    assert "price-per-hour $0.0080 left of $0.2000" in told
    # The pod is deleted: no more is wanted than there is.
    pending = next(pod for pod in world.cluster.pods.values() if not pod.node_name)
    del world.cluster.pods[pending.key]
    look(world)
    assert of_ceiling(world) == (True, "NearCeiling", text)


def test_ceiling_of_nodes_is_reported_in_nodes() -> None:
    world = World(provisioner(ceiling=Ceiling(max_nodes=2)), *apart(3))
    world.provision_until_quiet()
    text = "this Provisioner has 2 nodes, at most 2 are allowed"
    held = f"{text}; pending pods need more"
    assert of_ceiling(world) == (False, "CeilingReached", held)


def test_a_provisioner_whose_ceiling_is_taken_away_shows_none() -> None:
    world = World(provisioner(ceiling=Ceiling(max_nodes=0)), *apart(1))
    world.provision()
    assert of_ceiling(world)[1] == "CeilingReached"
    world.cluster.add(provisioner())
    look(world)
    assert of_ceiling(world) == (True, "WithinCeiling", "has no ceiling")

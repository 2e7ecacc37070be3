"""Ceilings: they hold, and how much of one is in use is said by conditions and Events."""

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from tests.builders import needs, node, pod, provisioner
from tests.unit.nodes.brakes.test_hold import braked
from tests.unit.nodes.launch.launches import ANY_WAY, apart, open_intent
from tests.unit.worlds import NAME, World


def of_ceiling(world: World) -> tuple[bool, str, str]:
    return world.cluster.within_ceiling["default"]


def look(world: World) -> None:
    """Let sweep run, and provision look if sweep asked for it."""
    world.outbox.evaluations.clear()
    world.sweep()
    if world.outbox.evaluations:
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
    assert world.outbox.evaluations == []

    world.cluster.add(*apart(5)[4:])
    assert world.provision().ceiling_percent == 96
    name = "the cluster" if whose == "cluster" else "this Provisioner"
    text = f"nodes of {name} cost $0.48 per hour, at most $0.50 are allowed"
    assert of_ceiling(world) == (True, "NearCeiling", text)
    (told,) = world.events("NearCeiling")
    assert (told.kind, told.name, told.severity) == ("Provisioner", "default", "Warning")
    assert told.message == text

    for launched in world.cluster.nodes():
        world.kubelet_joins(launched.name)
        world.bind(launched.name)
    for ended in world.cluster.nodes()[:2]:
        world.cloud.end(ended.instance_id)
        del world.cluster.node_values[ended.name]
    look(world)
    assert of_ceiling(world)[:2] == (True, "WithinCeiling")
    look(world)
    assert world.outbox.evaluations == []
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


def test_ceiling_on_nodes_is_never_exceeded_and_the_pods_get_events() -> None:
    world = World(provisioner(ceiling=Ceiling(max_nodes=2)), *apart(3))
    report = world.provision()
    assert len(world.alive) == 2
    assert report.pods_unschedulable == 1
    assert any("nodes 0 left of 2" in event for event in world.messages("FailedProvisioning"))
    world.provision_until_quiet()
    assert len(world.alive) == 2


def test_ceiling_on_dollars_counts_the_most_expensive_option() -> None:
    ceiling = Ceiling(max_price_micros_per_hour=200_000)
    world = World(provisioner(ceiling=ceiling, requirements=ANY_WAY), *apart(3))
    world.provision_until_quiet()
    spent = sum(slot.price_micros_per_hour for slot in world.ledger.slots(NAME))
    assert 0 < spent <= 200_000
    assert len(world.alive) < 3


def test_open_launches_count_under_a_ceiling() -> None:
    world = World(provisioner(ceiling=Ceiling(max_nodes=2)), *apart(2))
    open_intent(world)
    world.cluster.add(pod("third", cpu=1500))
    world.provision_until_quiet()
    assert len(world.alive) == 2


def test_the_ceiling_of_the_cluster_holds_all_provisioners_together() -> None:
    world = World(
        provisioner(labels={"team": "a"}),
        provisioner(name="other", labels={"team": "b"}),
        pod("a", cpu=1500, node_selector=needs("team", "In", "a")),
        pod("b", cpu=1500, node_selector=needs("team", "In", "b")),
    )
    braked(world, Brakes(ceiling=Ceiling(max_nodes=1)))
    report = world.provision()
    assert len(world.alive) == 1
    assert report.nodes_over_ceiling == 1
    (text,) = world.messages("FailedProvisioning")
    assert text == "the whole cluster: 0 nodes left under the ceiling, 1 needed"
    report = world.provision()
    assert (report.nodes_over_ceiling, report.pods_unschedulable) == (0, 1)


def test_existing_nodes_count_at_the_price_of_their_offering() -> None:
    of_type = {keys.INSTANCE_TYPE: "m5.large", keys.ZONE: "us-east-1a"}
    known = {**of_type, keys.CAPACITY_TYPE: "on-demand", keys.PROVISIONER_NAME: "default"}
    unknown = {keys.INSTANCE_TYPE: "x1.gone", keys.PROVISIONER_NAME: "default"}
    guessed = {keys.INSTANCE_TYPE: "m5.large", keys.PROVISIONER_NAME: "default"}
    limit = Ceiling(max_price_micros_per_hour=300_000)
    world = World(
        provisioner(ceiling=limit),
        *(
            node(f"n{number}", labels=labels, unschedulable=True)
            for number, labels in enumerate((known, unknown, guessed, {}))
        ),
        *apart(2),
    )
    world.provision()
    assert len(world.alive) == 1


def test_what_a_node_really_has_is_what_its_slot_says() -> None:
    world = World(provisioner(ceiling=Ceiling(max_nodes=9)), *apart(1))
    world.provision()
    (slot,) = world.ledger.slots(NAME)
    assert "nodes" not in set(slot.capacity)

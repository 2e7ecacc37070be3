"""What nodes show to lack is remembered and planned with."""

from typing import Any

from shared.model import labels as keys
from shared.model.resources import Resources
from shared.snapshot.gather import gather
from shared.snapshot.observed_allocatable import LEARNED, learn, with_learned
from tests.builders import GIB, SHAPES, node, pod, provisioner, slot
from tests.unit.worlds import MINUTE, NAME, World

TYPE = "m5.large"


def shown(cpu: int = 1900, image: str = "ami-1", **more: int) -> Any:
    amounts = {"memory": 7 * GIB, "pods": 29, **more}
    return node(allocatable=Resources.of(cpu=cpu, **amounts), annotations={keys.IMAGE_ID: image})


def planned_with(world: World, cpu: int = 1900) -> Any:
    return slot(
        allocatable=Resources.of(cpu=cpu, memory=7 * GIB, pods=29), launched_at=world.clock.now()
    )


def missing(world: World) -> Any:
    return world.ledger.memo(NAME, f"{LEARNED}{TYPE}").value.get("missing")


def test_a_node_that_shows_less_is_learned_from() -> None:
    world = World()
    assert learn(world.ports, shown(1800), planned_with(world)) == {"cpu": 100}
    assert missing(world) == {"cpu": 100}
    (lessened,) = with_learned(
        [SHAPES[TYPE]],
        world.ledger.memos(NAME, LEARNED),
    )
    known = SHAPES[TYPE]
    assert lessened.allocatable["cpu"] == known.allocatable["cpu"] - 100
    assert lessened.capacity == known.capacity


def test_a_node_that_shows_enough_teaches_nothing() -> None:
    world = World()
    assert learn(world.ports, shown(2000), planned_with(world)) == {}
    assert learn(world.ports, shown(1900, pods=0), planned_with(world)) == {}
    assert missing(world) is None


def test_machines_launched_before_it_was_known_do_not_count_twice() -> None:
    world = World()
    early = planned_with(world)
    world.advance(MINUTE)
    learn(world.ports, shown(1800), early)
    learn(world.ports, shown(1850, memory=6 * GIB), early)
    assert missing(world) == {"cpu": 100, "memory": GIB}
    world.advance(MINUTE)
    learn(world.ports, shown(1780), planned_with(world, 1800))
    assert missing(world) == {"cpu": 120, "memory": GIB}


def test_another_image_that_shows_all_takes_it_back() -> None:
    world = World()
    learn(world.ports, shown(1800), planned_with(world))
    learn(world.ports, shown(1900), planned_with(world, 1800))
    assert missing(world) == {"cpu": 100}
    learn(world.ports, shown(1900, image="ami-2"), planned_with(world, 1800))
    assert missing(world) is None


def test_the_next_plan_uses_the_observed_allocatable_and_an_event_says_so() -> None:
    world = World(provisioner(), pod())
    world.provision()
    name = world.node.name
    (one,) = world.ledger.slots(NAME)
    world.kubelet_joins(
        name,
        allocatable=Resources.from_mapping(
            {**dict(one.allocatable.items), "cpu": one.allocatable["cpu"] - 150}
        ),
    )
    assert world.bind(name).initialized
    (said,) = world.events("LessThanPlanned")
    assert "cpu 150m" in said.message
    world.cluster.add(pod("b"))
    seen = {
        instance_type.name: instance_type
        for instance_type in gather(world.ports, "p").snapshot.instance_types
    }
    bought = one.offering.instance_type
    assert seen[bought].allocatable["cpu"] == SHAPES[bought].allocatable["cpu"] - 150

"""What nodes show of their memory, and lack of all else, is remembered and planned with."""

from typing import Any

from shared.disruption.drift import shape_hash
from shared.model import labels as keys
from shared.model.provisioner import KubeletConfiguration, NodeTemplate
from shared.model.resources import Resources
from shared.planning.rules.provisioner_offerings import provisioner_offerings
from shared.snapshot.gather import gather
from shared.snapshot.observed_allocatable import (
    ALLOCATABLE_NOTES,
    observed_allocatable,
    save_observed_allocatable,
)
from tests.builders import GIB, node, pod, pods, provisioner, slot
from tests.unit.worlds import NAME, World

TYPE = "m5.large"
SHAPE = shape_hash(provisioner())
SEVEN = {"memory": 7 * GIB}


def shown(cpu: int = 1900, image: str = "ami-1", shape: str = SHAPE, **more: int) -> Any:
    amounts = {"memory": 7 * GIB, "pods": 29, **more}
    return node(
        allocatable=Resources.of(cpu=cpu, **amounts),
        annotations={keys.IMAGE_ID: image, keys.PROVISIONER_HASH: shape},
    )


def planned_with(cpu: int = 1900) -> Any:
    return slot(allocatable=Resources.of(cpu=cpu, memory=7 * GIB, pods=29))


def known(world: World, owner: Any = None) -> Any:
    found = observed_allocatable(
        world.ledger.notes(NAME, ALLOCATABLE_NOTES), owner or provisioner()
    )
    return {name: dict(amounts.items) for name, amounts in found.items()}


def test_a_node_that_shows_less_is_learned_from() -> None:
    world = World()
    assert save_observed_allocatable(world.ports, shown(1800), planned_with()) == {"cpu": 100}
    assert known(world) == {TYPE: {"cpu": 1800, **SEVEN}}


def test_a_node_that_shows_enough_teaches_its_memory_alone() -> None:
    world = World()
    assert (
        save_observed_allocatable(world.ports, shown(1900, pods=0, memory=0), planned_with()) == {}
    )
    assert known(world) == {}
    assert (
        save_observed_allocatable(world.ports, shown(2000, pods=30, memory=8 * GIB), planned_with())
        == {}
    )
    assert known(world) == {TYPE: {"memory": 8 * GIB}}


def test_the_least_of_several_nodes_counts() -> None:
    world = World()
    save_observed_allocatable(world.ports, shown(1800), planned_with())
    save_observed_allocatable(world.ports, shown(1850, memory=6 * GIB), planned_with())
    assert known(world) == {TYPE: {"cpu": 1800, "memory": 6 * GIB}}
    save_observed_allocatable(world.ports, shown(1780), planned_with(1800))
    save_observed_allocatable(world.ports, shown(0), planned_with(1780))
    assert known(world) == {TYPE: {"cpu": 1780, "memory": 6 * GIB}}


def test_a_node_that_shows_nothing_new_is_not_written_down() -> None:
    world = World()
    save_observed_allocatable(world.ports, shown(1800), planned_with())
    before = world.ledger.notes(NAME, ALLOCATABLE_NOTES)
    save_observed_allocatable(world.ports, shown(1800), planned_with())
    assert world.ledger.notes(NAME, ALLOCATABLE_NOTES) == before


def test_a_node_of_another_image_begins_anew() -> None:
    world = World()
    save_observed_allocatable(world.ports, shown(1800), planned_with())
    save_observed_allocatable(world.ports, shown(1850, image="ami-2"), planned_with(1800))
    assert known(world) == {TYPE: {"cpu": 1850, **SEVEN}}


def test_nothing_is_known_of_a_provisioner_that_has_changed() -> None:
    world = World()
    save_observed_allocatable(world.ports, shown(1800), planned_with())
    changed = provisioner(kubelet=KubeletConfiguration(max_pods=8))
    assert known(world, changed) == {}
    save_observed_allocatable(world.ports, shown(1850, shape=shape_hash(changed)), planned_with())
    # A machine that was launched before the change joins last.
    save_observed_allocatable(world.ports, shown(1700), planned_with())
    assert known(world, changed) == {TYPE: {"cpu": 1850, **SEVEN}}


def test_what_one_provisioners_nodes_lack_is_taken_off_its_own_alone() -> None:
    eight = NodeTemplate(user_data="maxPods: 8")
    world = World(provisioner(), *pods(24, cpu=10, memory=2**20))
    machine = shown(pods=8, shape=shape_hash(provisioner("eight", template=eight)))
    save_observed_allocatable(world.ports, machine, slot(provisioner="eight"))
    assert known(world, provisioner("eight", template=eight)) == {TYPE: {"pods": 8, **SEVEN}}
    assert world.provision().nodes_launched == 1


def test_the_next_plan_uses_the_observed_allocatable_and_an_event_says_so() -> None:
    world = World(provisioner(), pod())
    world.provision()
    name = world.node.name
    (one,) = world.ledger.slots(NAME)
    less = {**dict(one.allocatable.items), "cpu": one.allocatable["cpu"] - 150}
    world.kubelet_joins(name, allocatable=Resources.from_mapping(less))
    assert world.bind(name).initialized
    (said,) = world.events("LessThanPlanned")
    assert "cpu 150m" in said.message
    world.cluster.add(pod("b"))
    (site,) = gather(world.ports, "p").snapshot.sites
    assert dict(site.observed[one.offering.instance_type].items) == {
        "cpu": less["cpu"],
        "memory": less["memory"],
    }


def test_the_next_plan_has_room_for_a_pod_that_only_nodes_show_room_for() -> None:
    world = World(provisioner(), pod())
    world.provision()
    (one,) = world.ledger.slots(NAME)
    more = {**dict(one.allocatable.items), "memory": one.allocatable["memory"] + 2**20}
    world.kubelet_joins(world.node.name, allocatable=Resources.from_mapping(more))
    assert world.bind(world.node.name).initialized
    world.cluster.add(pod("b"))
    snapshot = gather(world.ports, "p").snapshot
    (site,), (owner,) = snapshot.sites, snapshot.provisioners
    kind = one.offering.instance_type
    (found,) = (
        offer.instance_type
        for offer in provisioner_offerings(owner, site, snapshot.instance_types, ())
        if offer.instance_type.name == kind
    )
    assert found.allocatable["memory"] == more["memory"]

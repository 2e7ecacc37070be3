"""Machines without a node, nodes without a machine, and what counts against limits."""

from typing import Any

from shared.model import labels as keys
from shared.model.kubernetes.nodes import Node
from shared.model.resources import Resources
from shared.ports import TimerKind
from tests.builders import instance, intent, node, pod, provisioner, slot
from tests.karpenter_cases.lifecycle.nodes import standing
from tests.unit.nodes.launch.launches import apart
from tests.unit.worlds import MINUTE, NAME, World


def ended(world: World) -> list[str]:
    """Return the machines whose end was begun."""
    timers = world.outbox.timers_of(TimerKind.TERMINATION)
    return sorted(str(timer.payload["instance_id"]) for timer in timers)


def swept(world: World, span: Any = 5 * MINUTE) -> World:
    world.advance(span)
    world.sweep()
    return world


def launched(count: int) -> World:
    """Machines that EC2 does not show as nodes yet."""
    world = World(provisioner(), *apart(count))
    world.cloud.delays.named = 60 * MINUTE
    world.provision()
    assert world.cluster.nodes() == ()
    return world


def test_a_machine_that_ended_before_it_was_a_node_frees_its_pods() -> None:
    world = launched(1)
    world.cloud.end(world.alive[0].instance_id)
    world.provision()
    world.cloud.delays.named *= 0
    world.provision_until_quiet()
    assert len(world.alive) == 1
    assert len(world.bound) == 1


def test_many_machines_that_ended_before_they_were_nodes_free_their_pods() -> None:
    world = launched(5)
    world.cloud.end(*(instance.instance_id for instance in world.alive))
    world.provision()
    world.cloud.delays.named *= 0
    world.provision_until_quiet()
    assert len(world.alive) == 5
    assert len(world.bound) == 5


def test_a_machine_that_lives_keeps_its_promise_though_no_node_is_seen() -> None:
    world = launched(1)
    before = world.ledger.slots(NAME)
    world.advance(MINUTE)
    world.provision()
    world.sweep()
    assert world.ledger.slots(NAME) == before
    assert len(world.alive) == 1


def test_nodes_without_a_provider_id_are_not_taken_for_lost() -> None:
    world = swept(World(provisioner(), node(provider_id=""), pod(node_name="n1")))
    assert world.node.deletion_at is None


def test_a_machine_without_an_owner_is_terminated() -> None:
    world = World(provisioner())
    world.cloud.add(instance("i-lost"))
    assert ended(swept(world)) == ["i-lost"]


def test_many_machines_without_an_owner_are_terminated() -> None:
    world = World(provisioner())
    world.cloud.add(*(instance(f"i-{n}") for n in range(20)))
    assert len(ended(swept(world))) == 20


def test_machines_with_owners_stay() -> None:
    nodes = [node(f"n{n}") for n in range(20)]
    world = World(provisioner(), *nodes)
    world.cloud.add(*(instance(f"i-n{n}") for n in range(20)))
    assert ended(swept(world)) == []


def test_a_young_machine_may_still_get_its_node() -> None:
    world = World(provisioner())
    world.cloud.add(instance("i-young"))
    assert ended(swept(world, MINUTE)) == []


def test_a_machine_that_we_did_not_launch_stays() -> None:
    world = World(provisioner())
    world.cloud.add(instance("i-other", tags={"Name": "another team's"}))
    world.cloud.add(instance("i-sister", tags={keys.TAG_CLUSTER: "another"}))
    assert ended(swept(world)) == []


def test_a_machine_with_its_node_stays_with_it() -> None:
    world = swept(standing(pod(node_name="n1")))
    assert ended(world) == []
    assert world.node.deletion_at is None


def test_many_machines_with_their_nodes_stay_with_them() -> None:
    names = [f"n{n}" for n in range(20)]
    world = World(provisioner(), *(node(name) for name in names))
    world.cluster.add(*(pod(f"p-{name}", node_name=name) for name in names))
    world.cloud.add(*(instance(f"i-{name}") for name in names))
    assert ended(swept(world)) == []
    assert all(other_node.deletion_at is None for other_node in world.cluster.nodes())


def test_a_machine_that_a_launch_has_written_down_stays() -> None:
    world = World(provisioner())
    world.cloud.add(instance("i-slot0"))
    one = slot(instance_id="i-slot0")
    world.ledger.slot_values[NAME, one.name] = one
    assert ended(swept(world)) == []


def test_a_machine_of_a_launch_that_is_not_finished_stays() -> None:
    world = World(provisioner())
    tags = {**instance().tags, keys.TAG_PLAN: "plan-1"}
    world.cloud.add(instance("i-new", tags=tags))
    world.ledger.intents[NAME, "plan-1", 0] = intent()
    assert ended(swept(world)) == []


def limited() -> World:
    """One node of two CPUs under a limit of three."""
    return World(provisioner(limits=Resources.of(cpu=3000)), *apart(1))


def another(world: World) -> int:
    """Let a second pod ask for a node of its own; return how many machines live then."""
    world.cluster.add(*apart(2)[1:])
    world.provision()
    return len(world.alive)


def test_a_machine_counts_against_limits_before_and_after_it_is_a_node() -> None:
    world = limited()
    world.cloud.delays.shown = MINUTE
    world.provision()
    assert another(world) == 1
    world.advance(MINUTE)
    world.provision()
    one: Node = world.node
    world.kubelet_joins(one.name)
    world.bind(one.name)
    assert world.ledger.slots(NAME) == ()
    assert another(world) == 1


def test_new_machines_count_against_limits_at_once() -> None:
    world = limited()
    world.cluster.add(*apart(2)[1:])
    world.provision()
    assert len(world.alive) == 1


def test_a_node_that_is_gone_no_longer_counts_against_limits() -> None:
    world = limited()
    world.provision()
    world.kubelet_joins(world.node.name)
    world.bind(world.node.name)
    assert another(world) == 1
    world.cloud.end(world.node.instance_id)
    world.cluster.node_values.clear()
    del world.cluster.pods[apart(1)[0].key]
    assert another(world) == 1
    assert len(world.bound) == 1

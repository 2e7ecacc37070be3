"""Machines that EC2 takes before they are nodes."""

from typing import Any

import pytest

from functions.cli.plan.recorded_decision import load_decision
from shared.model import labels as keys
from shared.model.ec2.launches import Instance, Slot
from shared.model.errors import ConflictError, UnauthorizedError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import Pod
from shared.model.messages.notices import Notice, NoticeKind
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.leave.interruption import Interruption
from shared.ports import NodeManifest, TimerKind
from tests.builders import pod, provisioner
from tests.unit.nodes.launch.launches import ANY_WAY
from tests.unit.worlds import NAME, SECOND, World, failing, instead

WARNING = NoticeKind.SPOT_INTERRUPTION


def warn(world: World, instance_id: str) -> str:
    return (
        Interruption(world.ports)
        .run(Notice(kind=WARNING, instance_ids=(instance_id,)), instance_id)
        .action
    )


def launched_unseen(*members: Pod) -> World:
    """A world whose machine is launched and not a node yet, as EC2 did not show it."""
    world = World(provisioner(requirements=ANY_WAY), *members)
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    return world


def test_interrupted_machine_becomes_no_node_and_its_pods_get_another() -> None:
    world = launched_unseen(pod())
    (taken,) = world.alive
    assert warn(world, taken.instance_id) == "planned again"
    (slot,) = world.ledger.slots(NAME)
    assert slot.interrupted_at == world.clock.now()
    # It has no room and promises nothing; what it takes of limits it takes until it has ended.
    assert (slot.pods, slot.allocatable) == ((), Resources())
    assert slot.capacity
    world.provision()
    (other,) = (found for found in world.alive if found.instance_id != taken.instance_id)
    assert other.offering != taken.offering
    assert world.node.instance_id == other.instance_id
    assert world.bound == {"a": world.node.name}


def test_second_warning_changes_nothing() -> None:
    world = launched_unseen(pod())
    (taken,) = world.alive
    warn(world, taken.instance_id)
    before = world.ledger.slots(NAME)
    world.advance(SECOND)
    assert warn(world, taken.instance_id) == "planned again"
    assert world.ledger.slots(NAME) == before


def warned_while_its_node_is_made(*members: Pod) -> tuple[World, Instance]:
    """A world in which a warning and a Node come at once, and the machine of that Node."""
    world = launched_unseen(*members)
    (taken,) = world.alive
    create_node = world.cluster.create_node

    def warned_first(manifest: NodeManifest) -> Any:
        assert warn(world, taken.instance_id) == "planned again"
        return create_node(manifest)

    instead(world.cluster, "create_node", warned_first)
    world.provision()
    instead(world.cluster, "create_node", create_node)
    return world, taken


def test_node_that_is_being_made_as_its_machine_is_interrupted_is_drained_by_bind() -> None:
    world, taken = warned_while_its_node_is_made(pod())
    # A pod runs on it: only its drain terminates the machine.
    assert world.bound == {"a": world.node.name}
    assert taken.instance_id in {found.instance_id for found in world.alive}
    (slot,) = world.ledger.slots(NAME)
    assert (slot.interrupted_at, slot.node_name) == (world.clock.now(), "")
    marked_at = slot.interrupted_at
    assert marked_at is not None
    world.provision()
    # Provision may delete no Node.
    assert world.cluster.node_values[taken.private_dns_name].deletion_at is None
    assert set(world.outbox.binds) == {(NAME, (taken.private_dns_name,))}
    world.bind(taken.private_dns_name)
    node = world.cluster.node_values[taken.private_dns_name]
    assert node.deletion_at is not None
    assert node.annotations[keys.REMOVAL_REASON] == WARNING.value
    deadline = (marked_at + 90 * SECOND).isoformat(timespec="seconds")
    assert node.annotations[keys.DRAIN_DEADLINE] == deadline
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == 1
    assert len(world.messages("Interrupted")) == 1
    before = len(world.outbox.binds)
    world.provision()
    assert len(world.outbox.binds) == before


def test_pods_of_such_a_node_and_others_are_planned_for_though_bind_cannot_be_called() -> None:
    world, _ = warned_while_its_node_is_made(pod())
    world.cluster.add(pod("late"))
    instead(world.outbox, "invoke_bind", failing(UnauthorizedError("no right")))
    assert world.provision().nodes_launched
    last = max(key for key in world.decisions.documents if key.startswith("decisions/"))
    plan = load_decision(world.decisions.documents[last]).plan
    assert sorted(ref.name for node in plan.nodes for ref in node.pods) == ["a", "late"]


def test_bind_drains_a_node_that_changed_as_it_was_read() -> None:
    world, taken = warned_while_its_node_is_made(pod())
    delete_node, tries = world.cluster.delete_node, [True]

    def changed_meanwhile(node: Node) -> None:
        if tries:
            raise ConflictError(f"node {node.name} changed" * tries.pop())
        delete_node(node)

    instead(world.cluster, "delete_node", changed_meanwhile)
    world.bind(taken.private_dns_name)
    assert world.cluster.node_values[taken.private_dns_name].deletion_at is not None


@pytest.mark.parametrize("ours", [True, False])
def test_node_that_was_made_since_the_nodes_were_listed_is_drained(*, ours: bool) -> None:
    world = launched_unseen(pod())
    (taken,) = world.alive
    nodes = world.cluster.nodes

    def made_meanwhile() -> tuple[Node, ...]:
        listed = nodes()
        instead(world.cluster, "nodes", nodes)
        world.provision()
        if not ours:
            world.cluster.add(replace(world.node, finalizers=(), resource_version=""))
        return listed

    instead(world.cluster, "nodes", made_meanwhile)
    assert warn(world, taken.instance_id) == ("drained" if ours else "ignored")
    assert (world.node.deletion_at is not None) is ours
    assert len(world.outbox.timers_of(TimerKind.TERMINATION)) == int(ours)


def test_machine_that_is_interrupted_while_a_plan_is_made_becomes_no_node() -> None:
    world = launched_unseen(pod())
    (taken,) = world.alive
    provisioners = world.cluster.provisioners

    def warned_meanwhile() -> Any:
        warn(world, taken.instance_id)
        return provisioners()

    instead(world.cluster, "provisioners", warned_meanwhile)
    world.provision()
    assert taken.instance_id not in {node.instance_id for node in world.cluster.nodes()}


def test_bind_opens_no_node_of_an_interrupted_machine() -> None:
    world = launched_unseen(pod())
    world.provision()
    world.kubelet_joins(world.node.name)
    (slot,) = world.ledger.slots(NAME)
    assert world.ledger.change_slot(replace(slot, interrupted_at=world.clock.now()))
    report = world.bind(world.node.name)
    assert (report.initialized, report.waiting_for) == (
        False,
        "the end of its instance, which EC2 interrupts",
    )
    assert not world.node.is_open
    assert len(world.ledger.slots(NAME)) == 1


def test_slot_of_a_machine_that_ec2_does_not_end_is_dropped_for_sweep_to_terminate_it() -> None:
    world = launched_unseen(pod())
    (taken,) = world.alive
    warn(world, taken.instance_id)
    world.provision()
    world.advance(world.policy.registration_timeout + SECOND)
    world.provision()
    assert taken.instance_id not in {slot.instance_id for slot in world.ledger.slots(NAME)}


def test_a_slot_that_changes_is_marked_at_the_second_try_or_the_notice_comes_again() -> None:
    world = launched_unseen(pod())
    (taken,) = world.alive
    change_slot, tries = world.ledger.change_slot, [False]

    def changed_meanwhile(slot: Slot) -> bool:
        return tries.pop() if tries else change_slot(slot)

    instead(world.ledger, "change_slot", changed_meanwhile)
    assert warn(world, taken.instance_id) == "planned again"
    world = launched_unseen(pod())
    (taken,) = world.alive
    instead(world.ledger, "change_slot", lambda _: False)
    with pytest.raises(ConflictError, match=f"the slot of {taken.instance_id} changes too fast"):
        warn(world, taken.instance_id)

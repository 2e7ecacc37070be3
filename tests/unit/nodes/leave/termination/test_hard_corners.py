"""Corners of the launch and of the end of machines that only accidents reach."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.brakes import Brakes, Ceiling
from shared.model.errors import PermanentError, ThrottledError
from shared.model.kubernetes.nodes import Node
from shared.model.messages.notices import Notice, NoticeKind
from shared.model.values import replace
from shared.nodes.brakes.ceilings import affordable
from shared.nodes.leave.interruption import Interruption
from shared.nodes.leave.termination import Termination
from shared.nodes.timers.heartbeats import last_heartbeats, save_heartbeat
from shared.ports import NodeManifest, TimerKind
from shared.snapshot.launch_body import LaunchBody
from tests.builders import option, planned, pod, provisioner, slot, snapshot
from tests.unit.nodes.launch.launches import apart, intents, two_nodes
from tests.unit.worlds import MINUTE, NAME, SECOND, World, instead


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"version": 1}', b'{"version": 2}'])
def test_a_launch_body_that_cannot_be_read_says_so(text: bytes) -> None:
    with pytest.raises(PermanentError, match="launch body"):
        LaunchBody.from_bytes(text)


def test_a_body_that_is_not_the_one_of_its_intent_ends_the_launch() -> None:
    world = two_nodes()
    world.cloud.lose_next_answer()
    world.provision()
    (intent,) = world.ledger.open_intents(NAME)
    key = (NAME, intent.plan_id, intent.group)
    world.ledger.intents[key] = replace(intent, body_hash="another")
    world.advance(world.policy.invocation_timeout + 20 * SECOND)
    world.provision()
    assert intent not in world.ledger.open_intents(NAME)


def test_launch_that_cannot_continue_waits_until_ec2_shows_its_machines() -> None:
    world = two_nodes()
    world.cloud.lose_next_answer()
    world.provision()
    world.cloud.fail_next("image_ids", PermanentError("no"), PermanentError("no"))
    world.cluster.pods.clear()
    world.provision()
    assert intents(world) == (1, 0)
    world.advance(20 * SECOND)
    world.provision_until_quiet()
    assert len(world.ledger.slots(NAME)) == len(world.alive) == 2


def test_bind_is_woken_for_a_node_whose_kubelet_was_faster() -> None:
    world = two_nodes()
    original = world.cluster.create_node

    def create_node(manifest: NodeManifest) -> Node:
        made = original(manifest)
        world.cluster.add(replace(made, ready=True, resource_version=""))
        return world.cluster.node_values[made.name]

    instead(world.cluster, "create_node", create_node)
    world.provision()
    assert world.outbox.binds == [(NAME, tuple(node.name for node in world.cluster.nodes()))]


def test_a_launch_interrupted_before_the_name_is_written_starts_its_timers_again() -> None:
    world = World(provisioner(), *apart(1))
    original = world.ledger.change_slot

    def change_slot(entry: Any) -> bool:
        raise ThrottledError("dynamodb")

    instead(world.ledger, "change_slot", change_slot)
    with pytest.raises(ThrottledError):
        world.provision()
    assert len(world.outbox.timers_of(TimerKind.REGISTRATION)) == 1
    instead(world.ledger, "change_slot", original)
    world.provision()
    assert world.ledger.slots(NAME)[0].node_name == world.node.name


def test_a_stale_row_of_a_timer_is_removed() -> None:
    world = World()
    save_heartbeat(world.ledger, NAME, "uid-gone", "emptiness", world.clock.now())
    assert world.sweep().stale_timers == 0
    world.advance(6 * MINUTE)
    assert world.sweep().stale_timers == 1
    assert last_heartbeats(world.ledger, NAME) == {}


@pytest.mark.parametrize(("state", "known"), [("terminated", False), ("shutting-down", True)])
def test_the_row_of_a_machine_is_deleted_when_ec2_says_it_is_terminated(
    state: str, *, known: bool
) -> None:
    world = World()
    world.ledger.instances["i-1"] = NAME
    notice = Notice(kind=NoticeKind.STATE_CHANGE, instance_ids=("i-1",), state=state)
    Interruption(world.ports).run(notice, "i-1")
    assert (world.ledger.cluster_of("i-1") is not None) is known


def going(world: World) -> dict[str, Any]:
    """Let the node of a world be deleted and drained; return the state of its timer."""
    world.provision()
    one = world.node
    world.cluster.pods.clear()
    world.cluster.delete_node(one)
    # No pod is on its way to it any more.
    world.advance(30 * SECOND)
    return {
        "cluster": NAME,
        "node": one.name,
        "uid": one.uid,
        "instance_id": one.instance_id,
        "since": world.clock.now().isoformat(),
    }


@pytest.mark.parametrize("with_node", [True, False])
def test_throttled_termination_resumes_at_the_same_place(*, with_node: bool) -> None:
    world = World(provisioner(), *apart(1))
    state = going(world)
    if not with_node:
        world.cluster.node_values.clear()
    world.cloud.throttle_next("terminate")
    first = Termination(world.ports, None).step(state)
    assert first["next"] == "wait"
    looked = len(world.cloud.called("instances"))
    world.advance(2 * SECOND)
    Termination(world.ports, None).step(first)
    assert len(world.cloud.called("instances")) == looked
    assert world.alive == []


@pytest.mark.parametrize("with_node", [True, False])
def test_a_machine_without_our_tags_is_never_ended(*, with_node: bool) -> None:
    world = World(provisioner(), *apart(1))
    state = going(world)
    machine = next(iter(world.cloud.ec2.instances.values()))
    machine.tags[keys.TAG_CLUSTER] = "another"
    if not with_node:
        world.cluster.node_values.clear()
    result = Termination(world.ports, None).step(state)["result"]
    assert result == ("terminated" if with_node else "not ours")
    assert len(world.alive) == 1
    assert world.cluster.nodes() == ()


def test_a_ceiling_of_the_provisioner_holds_what_the_decision_let_through() -> None:
    seen = snapshot(provisioners=(provisioner(ceiling=Ceiling(max_nodes=1)),))
    nodes = (planned(pod("a"), options=(option(),)), planned(pod("b"), options=(option(),)))
    kept, over = affordable(seen, nodes, Ceiling())
    assert kept == nodes[:1]
    assert [over_ceiling.reason for over_ceiling in over] == [
        "default: 0 nodes left under the ceiling, 1 needed"
    ]


def test_the_stricter_of_two_ceilings_holds() -> None:
    world = World(provisioner(ceiling=Ceiling(max_nodes=3)), *apart(3))
    world.ports = replace(world.ports, brakes=Brakes(ceiling=Ceiling(max_nodes=2)))
    world.provision_until_quiet()
    assert len(world.alive) == 2


def test_what_is_promised_to_a_slot_stays_when_its_row_was_changed_meanwhile() -> None:
    world = World(provisioner())
    one = slot(instance_id="i-1")
    world.ledger.slot_values[NAME, one.name] = replace(one, cluster=NAME, version=2)
    assert world.ledger.change_slot(replace(one, cluster=NAME, version=1)) is False

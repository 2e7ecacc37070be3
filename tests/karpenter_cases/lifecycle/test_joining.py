"""How a machine becomes a node that is ready for pods."""

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import UnavailableError
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.resources import Resources
from shared.model.values import replace
from shared.ports import TimerKind
from tests.builders import DEFAULT_TOLERATIONS, NOT_READY, NOW, instance, node, pod, provisioner
from tests.karpenter_cases.lifecycle.nodes import (
    STARTING,
    changed,
    going,
    launched,
    reasons,
    register_step,
    says_first,
    standing,
)
from tests.unit.worlds import MINUTE, NAME, SECOND, World

WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)
BATCH = Taint(key="batch", effect=Effect.NO_SCHEDULE)


def taints(world: World) -> set[str]:
    return {taint.key for taint in world.node.taints}


@pytest.mark.parametrize("ready", [False, None])
def test_the_taint_stays_while_the_node_is_not_ready(*, ready: bool | None) -> None:
    world = launched()
    changed(world, ready=ready)
    assert not world.bind(world.node.name).initialized
    assert keys.NOT_READY_TAINT in taints(world)


def test_the_taint_is_removed_when_the_node_is_ready() -> None:
    world = launched()
    world.kubelet_joins(world.node.name)
    assert world.bind(world.node.name).initialized
    assert keys.NOT_READY_TAINT not in taints(world)


def test_a_ready_node_without_the_taint_is_left_as_it_is() -> None:
    world = standing()
    before = world.node
    assert world.bind("n1").initialized
    assert world.node == before


def test_an_unmanaged_node_is_not_changed() -> None:
    world = World(provisioner(), node(labels={}, taints=(NOT_READY,)))
    before = world.node
    assert not world.bind("n1").initialized
    assert world.node == before


def test_a_node_that_is_not_ready_in_time_is_deleted() -> None:
    world = standing(labels={keys.INITIALIZED: "false"}, **STARTING)
    assert register_step(world)["result"] == "never joined"
    assert world.node.deletion_at is not None
    assert "NeverJoined" in reasons(world)


def test_a_node_that_its_kubelet_made_gets_our_finalizer() -> None:
    world = launched_late()
    says_first(world, finalizers=("other",))
    world.provision()
    assert world.node.finalizers == (keys.TERMINATION_FINALIZER, "other")


def test_a_node_that_is_going_gets_no_finalizer_any_more() -> None:
    world = launched_late()
    one = says_first(world, finalizers=("other",), deletion_at=NOW)
    world.provision()
    assert world.node == one
    world.cluster.node_values.clear()
    world.provision()
    assert world.node.is_ours


def test_a_node_that_has_all_it_needs_is_not_written_to() -> None:
    world = launched_late()
    ours = says_first(
        world,
        labels={
            **node().labels,
            keys.HOSTNAME: world.alive[0].private_dns_name,
            keys.REGION: "us-east-1",
        },
        annotations={keys.SLOT: "plan-1/0/0"},
        finalizers=(keys.TERMINATION_FINALIZER,),
        provider_id=world.alive[0].provider_id,
    )
    known = {**ours.labels, **_labels_of(world)}
    world.cluster.add(replace(ours, labels=known, resource_version="8"))
    world.provision()
    assert world.cluster.called("change_node") == []


def _labels_of(world: World) -> dict[str, str]:
    (one,) = world.ledger.slots(NAME)
    shape = next(t for t in world.catalog.instance_types() if t.name == one.offering.instance_type)
    return {**shape.labels, **one.labels}


def test_an_unmanaged_node_gets_no_finalizer() -> None:
    foreign = node("foreign", labels={}, finalizers=())
    world = World(provisioner(), foreign)
    world.cloud.add(instance("i-foreign", tags={}))
    world.advance(10 * MINUTE)
    world.sweep()
    assert world.cluster.node_values["foreign"].finalizers == ()


def launched_late(**changes: Any) -> World:
    """A machine that EC2 does not show yet, so that its kubelet may be faster than we."""
    world = World(changes.pop("owner", None) or provisioner(), pod(**changes))
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    return world


def test_the_node_of_a_launched_machine_is_known_as_such_when_it_comes() -> None:
    world = launched_late()
    says_first(world)
    world.provision()
    (one,) = world.ledger.slots(NAME)
    assert one.node_name == world.node.name
    assert world.node.annotations[keys.SLOT] == one.name
    assert world.node.instance_id == one.instance_id


def test_the_node_belongs_to_its_provisioner_when_it_comes() -> None:
    world = launched_late()
    says_first(world)
    world.provision()
    assert world.node.owners == (world.cluster.provisioner_values["default"].uid,)


def test_a_node_that_is_complete_says_that_it_registered() -> None:
    world = launched()
    world.kubelet_joins(world.node.name)
    world.bind(world.node.name)
    assert world.node.labels[keys.REGISTERED] == "true"


def test_a_node_that_lost_its_taint_to_others_says_so_all_the_same() -> None:
    world = launched()
    world.kubelet_joins(world.node.name, taints=())
    world.bind(world.node.name)
    assert world.node.labels[keys.REGISTERED] == "true"


def test_labels_of_the_provisioner_come_to_the_node() -> None:
    world = launched_late(owner=provisioner(labels={"team": "red"}))
    says_first(world, labels={"kubelet": "says"})
    world.provision()
    assert {"team": "red", "kubelet": "says", keys.PROVISIONER_NAME: "default"}.items() <= (
        world.node.labels.items()
    )


def test_annotations_of_the_provisioner_come_to_the_node() -> None:
    world = launched_late(owner=provisioner(annotations={"team": "red"}))
    says_first(world, annotations={"kubelet": "says"})
    world.provision()
    assert {"team": "red", "kubelet": "says"}.items() <= world.node.annotations.items()


def test_taints_of_the_provisioner_come_to_the_node() -> None:
    bears = (*DEFAULT_TOLERATIONS, Toleration(key=BATCH.key, operator="Exists"))
    world = launched_late(owner=provisioner(taints=(BATCH,)), tolerations=bears)
    says_first(world)
    world.provision()
    assert BATCH in world.node.taints


def test_startup_taints_are_on_the_node_from_the_beginning() -> None:
    world = launched(owner=provisioner(startup_taints=(WAIT,)))
    assert WAIT in world.node.taints


def test_startup_taints_that_went_do_not_come_back() -> None:
    world = launched(owner=provisioner(startup_taints=(WAIT,)))
    world.kubelet_joins(world.node.name, taints=(NOT_READY,))
    world.provision()
    world.bind(world.node.name)
    world.sweep()
    assert WAIT not in world.node.taints


def test_a_node_that_registered_and_later_stops_reporting_is_kept() -> None:
    world = standing(**{**STARTING, "ready": False})
    world.advance(60 * MINUTE)
    world.sweep()
    assert world.outbox.timers_of(TimerKind.REGISTRATION) == []
    assert register_step(world)["result"] == "joined"
    assert world.node.deletion_at is None


def test_a_machine_that_does_not_join_is_deleted_after_five_minutes() -> None:
    world = launched()
    (timer,) = world.outbox.timers_of(TimerKind.REGISTRATION)
    assert timer.payload["wait_seconds"] == 300
    world.advance(5 * MINUTE)
    assert register_step(world)["result"] == "never joined"
    assert world.ledger.slots(NAME) == ()


def test_a_machine_that_ec2_never_shows_is_deleted_after_five_minutes() -> None:
    world = World(provisioner(), pod())
    world.cloud.delays.shown = timedelta(days=1)
    world.provision()
    assert len(world.ledger.slots(NAME)) == 1
    world.advance(5 * MINUTE + SECOND)
    world.provision()
    assert world.ledger.unavailable_offerings(world.clock.now(), NAME)


def test_a_machine_is_launched_for_a_pod() -> None:
    world = World(provisioner(), pod())
    world.provision()
    assert len(world.alive) == 1


def test_that_it_is_launched_is_written_down() -> None:
    world = World(provisioner(), pod())
    world.provision()
    assert [slot.instance_id for slot in world.ledger.slots(NAME)] == [world.alive[0].instance_id]
    assert world.ledger.cluster_of(world.alive[0].instance_id) == NAME


def test_a_machine_whose_launch_was_not_answered_is_taken_over_by_its_tags() -> None:
    world = World(provisioner(), pod())
    world.cloud.lose_next_answer()
    with contextlib.suppress(UnavailableError):
        world.provision()
    world.advance(MINUTE)
    world.provision_until_quiet()
    assert len(world.alive) == 1
    assert world.node.instance_id == world.alive[0].instance_id


def test_what_ec2_is_out_of_leaves_nothing_behind_but_the_memory_of_it() -> None:
    world = World(provisioner(), pod())
    every = list(world.cloud.prices)
    world.cloud.run_out_of(*every)
    world.provision()
    assert world.alive == []
    assert world.ledger.slots(NAME) == ()
    assert world.ledger.unavailable_offerings(world.clock.now())


def test_while_no_subnet_is_found_nothing_is_launched_and_later_it_is() -> None:
    world = World(provisioner(), pod())
    world.cloud.subnets = ()
    world.provision()
    assert world.alive == []
    world.cloud.subnets = None
    world.provision()
    assert len(world.alive) == 1


def test_node_with_less_allocatable_than_planned_is_reported() -> None:
    world = launched()
    (one,) = world.ledger.slots(NAME)
    fewer = Resources.from_mapping({**dict(one.allocatable.items), "cpu": 700})
    world.kubelet_joins(world.node.name, allocatable=fewer)
    world.bind(world.node.name)
    assert "LessThanPlanned" in reasons(world)


def test_a_machine_without_a_node_is_ended_by_its_id() -> None:
    world = going()
    world.cluster.node_values.clear()
    world.advance(2 * MINUTE)
    world.ledger.note_values.clear()
    world.sweep()
    state = world.outbox.timers_of(TimerKind.TERMINATION)[-1].payload
    assert (state["node"], state["instance_id"]) == ("", "i-n1")

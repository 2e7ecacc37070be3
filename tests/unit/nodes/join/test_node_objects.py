"""Node objects of launched machines, and their first pods."""

from datetime import timedelta
from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import (
    AutoscalerError,
    ConflictError,
    NotFoundError,
    PermanentError,
    UnauthorizedError,
    UnavailableError,
)
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.pods import ControllerRef
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.resources import Resources
from shared.model.values import replace
from shared.nodes.timers.heartbeats import last_heartbeats
from shared.ports import TimerKind
from tests.builders import (
    DEFAULT_TOLERATIONS,
    NOT_READY,
    SHAPES,
    instance_type,
    offering,
    pod,
    pods,
    provisioner,
)
from tests.unit.nodes.launch.launches import apart, two_nodes
from tests.unit.worlds import MINUTE, NAME, SECOND, World, instead

BATCH = Taint(key="batch", effect=Effect.NO_SCHEDULE)
WAIT = Taint(key="cilium", effect=Effect.NO_EXECUTE)
TOLERANT = (*DEFAULT_TOLERATIONS, Toleration(key="batch", operator="Exists"))


def test_the_node_has_all_it_needs() -> None:
    world = World(provisioner(labels={"team": "red"}, taints=(BATCH,)), pod(tolerations=TOLERANT))
    world.provision()
    (machine,) = world.alive
    node = world.node
    assert node.name == machine.private_dns_name
    assert node.provider_id == f"aws:///{machine.offering.zone}/{machine.instance_id}"
    assert node.finalizers == (keys.TERMINATION_FINALIZER,)
    assert node.is_ours
    expected = {
        keys.PROVISIONER_NAME: "default",
        "team": "red",
        keys.ZONE: "us-east-1a",
        keys.REGION: "us-east-1",
        keys.INSTANCE_TYPE: "m5.large",
        keys.ARCH: "amd64",
        keys.CAPACITY_TYPE: "on-demand",
        keys.HOSTNAME: node.name,
    }
    assert expected.items() <= node.labels.items()
    assert node.annotations[keys.SLOT] == "plan-1/0/0"
    assert {BATCH.key, keys.NOT_READY_TAINT, keys.CLOUD_UNINITIALIZED_TAINT} <= {
        taint.key for taint in node.taints
    }
    # Pods are bound to it already, and the kubelet admits them against these amounts.
    shape = SHAPES["m5.large"]
    assert (node.capacity, node.allocatable) == (shape.capacity, shape.allocatable)
    assert world.bound == {"a": node.name}


def test_devices_are_left_to_their_plugins() -> None:
    machine = instance_type("g4dn.xlarge", extra={"nvidia.com/gpu": 1})
    wanted = pod(requests=Resources.of(cpu=500, **{"nvidia.com/gpu": 1}))
    world = World(provisioner(), wanted, types=(machine,))
    world.provision()
    assert machine.capacity["nvidia.com/gpu"] == 1
    assert set(world.node.capacity) == set(machine.capacity) - {"nvidia.com/gpu"}
    assert set(world.node.allocatable) == set(world.node.capacity)


def test_no_pod_is_bound_to_an_incomplete_node_that_is_being_deleted() -> None:
    world = World(provisioner(), pod())
    original = world.cluster.bind_all

    def bind_all(_: object) -> None:
        instead(world.cluster, "bind_all", original)
        raise UnavailableError("no answer")

    instead(world.cluster, "bind_all", bind_all)
    with pytest.raises(UnavailableError):
        world.provision()
    world.cluster.delete_node(world.node)
    world.provision_until_quiet()
    (first,) = [node for node in world.cluster.nodes() if node.deletion_at is not None]
    (second,) = [node for node in world.cluster.nodes() if node.deletion_at is None]
    assert world.bound == {"a": second.name}
    assert first.name != second.name
    assert all(slot.instance_id != first.instance_id for slot in world.ledger.slots(NAME))


def test_timers_watch_over_registration_and_age() -> None:
    world = World(provisioner(ttl_until_expired=60 * MINUTE), pod())
    world.provision()
    (registration,) = world.outbox.timers_of(TimerKind.REGISTRATION)
    (expiration,) = world.outbox.timers_of(TimerKind.EXPIRATION)
    assert registration.payload["wait_seconds"] == 300
    assert expiration.payload["wait_seconds"] == 3600
    assert registration.payload["uid"] == world.node.uid
    kinds = (TimerKind.EXPIRATION, TimerKind.REGISTRATION)
    assert sorted(last_heartbeats(world.ledger, NAME)) == [(world.node.uid, kind) for kind in kinds]


def test_bare_metal_has_twenty_minutes_to_join_and_no_pod_is_bound_early() -> None:
    world = World(provisioner(), pod(), types=(instance_type("m5.metal"),))
    world.provision()
    (registration,) = world.outbox.timers_of(TimerKind.REGISTRATION)
    assert registration.payload["wait_seconds"] == 1200
    assert world.bound == {}
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["a"]


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": ControllerRef(kind="StatefulSet", name="s", uid="s")},
        {"claims": ("data",)},
        {"tolerations": ()},
    ],
)
def test_pods_that_cannot_be_bound_early_stay_promised(changes: dict[str, Any]) -> None:
    world = World(provisioner(), pod(**changes))
    world.provision()
    assert world.bound == {}
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["a"]
    assert not slot.bound
    assert slot.node_name == world.node.name


def test_no_pod_is_bound_early_to_a_node_with_a_startup_taint() -> None:
    everything = (*DEFAULT_TOLERATIONS, Toleration(operator="Exists"))
    world = World(
        provisioner(startup_taints=(WAIT,)), pod("plain"), pod("agent", tolerations=everything)
    )
    world.provision()
    assert list(world.bound) == ["agent"]
    (slot,) = world.ledger.slots(NAME)
    assert [ref.name for ref in slot.pods] == ["plain"]


def test_pods_that_were_bound_or_went_away_meanwhile_are_forgotten() -> None:
    world = World(provisioner(), pod("a"), pod("b"), pod("c"))
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    del world.cluster.pods["default/b"]
    world.advance(3 * SECOND)
    world.cluster.fail_next("bind", ConflictError("bound already"))
    world.provision()
    assert list(world.bound) == ["c"]
    (slot,) = world.ledger.slots(NAME)
    assert slot.pods == ()
    assert slot.bound


def joined_first(world: World, **changes: Any) -> Node:
    """Let the kubelet of the machine make its own Node before we do."""
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    (machine,) = world.alive
    fields: dict[str, Any] = {"name": machine.private_dns_name, "uid": "own", **changes}
    world.cluster.add(Node(**fields))
    world.provision()
    return world.node


def test_a_node_its_kubelet_made_first_is_adopted() -> None:
    world = World(provisioner(taints=(BATCH,), startup_taints=(WAIT,)), pod(tolerations=TOLERANT))
    node = joined_first(world, labels={keys.HOSTNAME: "x", "kubelet": "says"}, finalizers=("own",))
    assert node.uid == "own"
    assert node.is_ours
    assert node.finalizers == ("karpenter.sh/termination", "own")
    assert node.labels["kubelet"] == "says"
    assert node.labels[keys.PROVISIONER_NAME] == "default"
    assert node.annotations[keys.SLOT] == "plan-1/0/0"
    assert node.instance_id == world.alive[0].instance_id
    # What goes while a node starts may have gone already: only lasting taints are repaired.
    assert set(node.taints) == {BATCH, NOT_READY}


def test_a_node_that_is_ready_already_is_not_tainted_again() -> None:
    world = World(provisioner(), pod())
    node = joined_first(world, ready=True)
    assert node.taints == ()


def test_the_node_of_another_instance_is_never_adopted() -> None:
    world = World(provisioner(), pod())
    theirs = joined_first(world, ready=True, provider_id="aws:///us-east-1a/i-theirs")
    assert (theirs.finalizers, theirs.labels, theirs.taints) == ((), {}, ())
    (told,) = world.events("NodeRefused")
    assert f"node {theirs.name} is of another instance, aws:///us-east-1a/i-theirs" in told.message
    # Its pod is free to be planned again, and sweep terminates the instance.
    assert world.ledger.slots(NAME) == ()
    assert world.bound == {}


def test_an_instance_waits_for_the_node_of_an_ended_one_whose_name_it_has() -> None:
    world = World(provisioner(), pod())
    ours = {
        "labels": {keys.PROVISIONER_NAME: "default"},
        "annotations": {keys.SLOT: "ended/0/0"},
        "finalizers": (keys.TERMINATION_FINALIZER,),
        "provider_id": "aws:///us-east-1a/i-ended",
    }
    left = joined_first(world, ready=False, **ours)
    assert left.instance_id == "i-ended"
    assert len(world.ledger.slots(NAME)) == 1
    world.advance(world.policy.registration_timeout + SECOND)
    world.provision()
    assert any(told.reason == "NodeRefused" for told in world.cluster.kube_events)


@pytest.mark.parametrize("ready", [True, False])
def test_pods_of_a_node_that_may_be_open_are_not_bound_early(*, ready: bool) -> None:
    world = World(provisioner(), pod())
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    (slot,), (machine,) = world.ledger.slots(NAME), world.alive
    # A node that was open and is not Ready now is known by its slot.
    assert world.ledger.change_slot(replace(slot, opened=not ready))
    world.cluster.add(Node(name=machine.private_dns_name, uid="own", ready=ready))
    world.provision()
    assert world.bound == {}
    (slot,) = world.ledger.slots(NAME)
    assert [pod_ref.name for pod_ref in slot.pods] == ["a"]
    assert not slot.bound
    assert (NAME, (world.node.name,)) in world.outbox.binds or not ready


@pytest.mark.parametrize("error", [ConflictError("written"), NotFoundError("taken away")])
def test_node_with_conflicting_writes_or_a_deletion_is_repaired_later(
    error: AutoscalerError,
) -> None:
    world = World(provisioner(), pod())
    world.cluster.fail_next("change_node", error)
    node = joined_first(world)
    assert not node.is_ours
    assert world.outbox.wakes[-1] == (NAME, 2 * SECOND)
    world.provision()
    assert world.node.is_ours
    assert world.bound == {"a": world.node.name}


def test_a_node_of_ours_that_lost_a_label_gets_it_back_and_no_taint() -> None:
    world = World(provisioner(), pod())
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cloud.delays.shown = 0 * SECOND
    (machine,) = world.alive
    world.cluster.add(
        Node(
            name=machine.private_dns_name,
            uid="own",
            labels={keys.PROVISIONER_NAME: "default"},
            annotations={keys.SLOT: "plan-1/0/0"},
            finalizers=(keys.TERMINATION_FINALIZER,),
            provider_id=machine.provider_id,
        )
    )
    world.provision()
    assert world.node.labels[keys.ZONE] == "us-east-1a"
    assert world.node.taints == ()


def test_the_node_of_a_provisioner_that_is_gone_is_made_all_the_same() -> None:
    world = World(provisioner(), pod())
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    world.cluster.provisioner_values.clear()
    world.catalog.keep()
    world.advance(3 * SECOND)
    world.provision()
    assert world.node.is_ours
    assert world.node.labels[keys.INSTANCE_TYPE] == "m5.large"


def test_a_machine_that_is_not_shown_yet_is_looked_for_again() -> None:
    world = two_nodes()
    world.cloud.delays.shown = 3 * SECOND
    world.provision()
    assert world.cluster.nodes() == ()
    assert world.outbox.wakes == [(NAME, timedelta(seconds=2))]
    world.provision_until_quiet()
    assert len(world.bound) == 2


def test_a_node_is_made_once_its_machine_runs() -> None:
    world = two_nodes()
    world.cloud.delays.running = 3 * SECOND
    world.provision()
    assert world.cluster.nodes() == ()
    assert world.outbox.wakes == [(NAME, timedelta(seconds=2))]
    world.provision_until_quiet()
    assert len(world.bound) == 2
    assert len(world.alive) == 2


def test_a_machine_that_dies_before_it_is_a_node_is_replaced() -> None:
    world = two_nodes()
    world.cloud.delays.named = 3 * SECOND
    world.provision()
    world.cloud.end(world.alive[0].instance_id)
    world.advance(3 * SECOND)
    world.provision_until_quiet()
    assert len(world.alive) == 2
    assert len(world.bound) == 2
    assert offering() in world.ledger.unavailable_offerings(world.clock.now(), NAME)
    assert world.ledger.unavailable_offerings(world.clock.now()) == frozenset()


def test_machine_that_ec2_never_shows_is_abandoned() -> None:
    world = two_nodes()
    world.cloud.delays.shown = timedelta(days=1)
    world.provision()
    world.advance(timedelta(minutes=6))
    world.cloud.delays.shown = timedelta(0)
    world.cloud.end(*(instance.instance_id for instance in world.alive))
    world.cloud.ec2.instances.clear()
    world.provision_until_quiet()
    assert len(world.bound) == 2


def test_node_that_the_api_server_refuses_costs_only_its_machine() -> None:
    world = World(provisioner(), *apart(2))
    world.cluster.fail_next("create_node", PermanentError("422 metadata.labels: Invalid value"))
    world.provision()
    assert len(world.alive) == 2
    assert len(world.bound) == 1
    assert len(world.cluster.nodes()) == 1
    refused = world.events("NodeRefused")
    assert [(told.kind, "Invalid value" in told.message) for told in refused] == [
        ("Provisioner", True)
    ]


def test_a_binding_that_is_refused_costs_only_its_pod() -> None:
    world = World(provisioner(), *pods(3))
    world.cluster.fail_next("bind", UnauthorizedError("403 namespace is being terminated"))
    world.provision()
    assert len(world.bound) == 2
    (slot,) = world.ledger.slots(NAME)
    assert slot.node_name == world.node.name
    assert world.outbox.timers_of(TimerKind.REGISTRATION)


def test_missing_right_to_make_nodes_is_an_error_of_the_run() -> None:
    world = World(provisioner(), pod())
    world.cluster.fail_next("create_node", UnauthorizedError("403"))
    with pytest.raises(UnauthorizedError):
        world.provision()

"""How a machine of a NodePool becomes a node that is ready for pods."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.errors import PermanentError
from shared.model.kubernetes.nodes import Node
from shared.model.kubernetes.taints import Effect, Taint, Toleration
from shared.model.resources import Resources
from shared.nodes.join.registration import Registration
from shared.nodes.launch.refusals.registration_health import save_registration
from shared.ports import TimerKind
from tests.builders import ZONES, instance_type, offering, pod
from tests.karpenter_cases.lifecycle.births import bought
from tests.karpenter_cases.v1.worlds import changed_class, launched, named_pool, world
from tests.unit.worlds import SECOND, World

LARGE = (instance_type("m5.large"),)
WAIT = {"key": "cni", "effect": "NoExecute"}
UNREGISTERED = Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_SCHEDULE)


def reasons(there: World) -> set[str]:
    return {event.reason for event in there.cluster.kube_events}


def joined(there: World, **changes: Any) -> Any:
    """Let the kubelet speak, and bind look."""
    there.kubelet_joins(there.node.name, **changes)
    return there.bind(there.node.name)


def test_a_launch_without_capacity_is_given_up() -> None:
    there = world(named_pool(), types=LARGE)
    there.cloud.run_out_of(*(offering("m5.large", zone) for zone in ZONES))
    bought(there)
    assert there.ledger.open_intents("test") == ()
    assert there.cluster.nodes() == ()
    closed = world(named_pool(), changed_class(role=None, instanceProfile=None))
    assert bought(closed).ledger.open_intents("test") == ()
    assert closed.alive == []


def test_another_error_of_a_launch_is_told() -> None:
    there = world(named_pool(), types=LARGE)
    there.cloud.fail_next("create_fleet", PermanentError("InvalidParameter: no such thing"))
    bought(there)
    assert any("no such thing" in event.message for event in there.cluster.kube_events)


def test_a_node_that_does_not_join_in_time_is_given_up() -> None:
    there = launched()
    (timer,) = there.outbox.timers_of(TimerKind.REGISTRATION)
    assert timer.payload["wait_seconds"] == there.policy.registration_timeout.total_seconds()
    there.advance(there.policy.registration_timeout)
    assert Registration(there.ports).step(timer.payload)["result"] == "never joined"
    assert there.node.deletion_at is not None
    assert "NeverJoined" in reasons(there)


def registered_late(**spec: Any) -> World:
    """Return a world whose kubelet made the Node before Dovetail did."""
    metadata = {"labels": {"team": "red"}, "annotations": {"own": "note"}}
    taint = {"key": "batch", "effect": "NoSchedule"}
    there = world(named_pool(spec={"taints": [taint], **spec}, metadata=metadata), types=LARGE)
    there.cloud.delays.shown = 3 * SECOND
    bought(there, pod("a", tolerations=(Toleration(operator="Exists"),)))
    there.cloud.delays.shown = 0 * SECOND
    return there


def says_first(there: World, **changes: Any) -> Node:
    (machine,) = there.alive
    there.cluster.add(Node(name=machine.private_dns_name, uid="own", **changes))
    there.provision()
    return there.node


def test_a_node_gets_what_its_pool_says_when_it_registers() -> None:
    there = registered_late()
    found = says_first(
        there, taints=(Taint(key=keys.UNREGISTERED_TAINT, effect=Effect.NO_EXECUTE),)
    )
    assert found.owners == ("uid-default",)
    assert found.labels.items() >= {"team": "red", keys.NODE_POOL: "default"}.items()
    assert found.annotations["own"] == "note"
    assert "batch" in {taint.key for taint in found.taints}
    joined(there)
    assert there.node.labels[keys.REGISTERED] == "true"
    assert not there.node.is_closed


@pytest.mark.parametrize(("value", "synced"), [("true", False), ("false", True)])
def test_a_label_leaves_taints_as_they_registered(value: str, *, synced: bool) -> None:
    there = registered_late()
    found = says_first(there, labels={keys.DO_NOT_SYNC_TAINTS: value})
    assert ("batch" in {taint.key for taint in found.taints}) is synced


def test_a_startup_taint_that_others_removed_stays_away() -> None:
    there = launched({"startupTaints": [WAIT]})
    assert "cni" in {taint.key for taint in there.node.taints}
    assert joined(there, taints=(UNREGISTERED,)).initialized
    there.sweep()
    there.provision()
    assert "cni" not in {taint.key for taint in there.node.taints}


def test_a_node_that_lost_its_mark_is_told_of_and_goes_on() -> None:
    there = launched()
    assert joined(there, taints=()).initialized
    assert there.messages("UnregisteredTaintMissing")
    assert there.node.labels[keys.REGISTERED] == "true"


READINESS = Taint(key="readiness.k8s.io/gpu", effect=Effect.NO_SCHEDULE)
CLOUD = Taint(key=keys.CLOUD_UNINITIALIZED_TAINT, effect=Effect.NO_SCHEDULE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ready": False}, "the kubelet to be Ready"),
        ({"taints": (UNREGISTERED, Taint(key="cni", effect=Effect.NO_EXECUTE))}, "cni"),
        ({"taints": (UNREGISTERED, CLOUD)}, keys.CLOUD_UNINITIALIZED_TAINT),
        ({"taints": (UNREGISTERED, READINESS)}, READINESS.key),
    ],
    ids=["not-ready", "startup", "ephemeral", "readiness"],
)
def test_a_node_waits_for_what_is_missing(changes: dict[str, Any], words: str) -> None:
    there = launched({"startupTaints": [WAIT]})
    report = joined(there, **changes)
    assert not report.initialized
    assert words in report.waiting_for


def test_a_node_waits_for_the_devices_its_pods_need() -> None:
    duo = instance_type("g4dn.xlarge", extra={"nvidia.com/gpu": 1})
    there = bought(world(named_pool(), types=(duo,)), pod("gpu", extra={"nvidia.com/gpu": 1}))
    assert "nvidia.com/gpu" in joined(there).waiting_for
    shown = there.node.allocatable + Resources.from_mapping({"nvidia.com/gpu": 1})
    assert joined(there, allocatable=shown).initialized


def test_a_node_with_less_than_planned_says_so() -> None:
    there = bought(world(named_pool(), types=LARGE))
    (one,) = there.ledger.slots("test")
    less = {**dict(one.allocatable.items), "memory": one.allocatable["memory"] // 2}
    assert joined(there, allocatable=Resources.from_mapping(less)).initialized
    (message,) = there.messages("LessThanPlanned")
    assert "memory" in message


def test_two_of_four_machines_that_did_not_join_are_told() -> None:
    there = launched()

    def told() -> bool | None:
        there.sweep()
        return there.cluster.pool_statuses["default"].registers

    assert told() is None
    for _ in range(2):
        save_registration(there.ports, there.node, joined=False)
    assert told() is False
    for _ in range(4):
        save_registration(there.ports, there.node, joined=True)
    assert told() is True
    there.cluster.apply(named_pool(metadata={"labels": {"team": "new"}}))
    assert told() is None

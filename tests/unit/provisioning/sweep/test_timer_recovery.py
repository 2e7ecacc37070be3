"""Timers that are missing, silent or overdue are found by sweep and started once."""

from typing import Any

import pytest

from shared.model import labels as keys
from shared.model.values import replace
from shared.nodes.leave.emptiness_timer import Emptiness
from shared.ports import NodeChange, TimerKind
from tests.builders import (
    NOT_READY,
    NOW,
    node,
    pod,
    provisioner,
    ref,
    slot,
)
from tests.unit.provisioning.sweep.settled import machine
from tests.unit.worlds import MINUTE, NAME, SECOND, World


def test_missing_timers_are_started_once() -> None:
    owner = provisioner(ttl_until_expired=60 * MINUTE, ttl_after_empty=MINUTE)
    world = World(
        owner,
        node("empty"),
        node("full"),
        node("boots", ready=None, taints=(NOT_READY,)),
        node("going", deletion_at=NOW),
        node("foreign", finalizers=()),
        replace(node("karpenter", deletion_at=NOW), annotations={}),
        pod("x", node_name="full"),
    )
    for name in ("empty", "full", "boots", "going"):
        world.cloud.add(machine(f"i-{name}"))
    assert world.sweep().missing_timers == 5
    started = sorted((timer.kind.value, timer.payload["node"]) for timer in world.outbox.timers)
    assert started == [
        ("emptiness", "empty"),
        ("expiration", "empty"),
        ("expiration", "full"),
        ("registration", "boots"),
        ("termination", "going"),
    ]
    assert world.sweep().missing_timers == 0
    assert world.outbox.refused == []


def test_a_provisioner_that_is_gone_paused_or_has_no_ttl_starts_no_timer() -> None:
    for values in (
        (),
        (provisioner(),),
        (provisioner(paused=True, ttl_until_expired=MINUTE, ttl_after_empty=MINUTE),),
    ):
        world = World(*values, node())
        world.cloud.add(machine("i-n1"))
        assert world.sweep().missing_timers == 0


def test_a_promise_keeps_the_emptiness_timer_away() -> None:
    world = World(provisioner(ttl_after_empty=MINUTE), node())
    world.cloud.add(machine("i-n1"))
    one = slot(instance_id="i-n1", node_name="n1", pods=(ref(pod()),))
    world.ledger.slot_values[NAME, one.name] = one
    assert world.sweep().missing_timers == 0


def test_silent_drain_continues_under_another_name() -> None:
    world = World(provisioner(), node(deletion_at=NOW))
    world.cloud.add(machine("i-n1"))
    world.sweep()
    world.advance(19 * SECOND)
    assert world.sweep().missing_timers == 0
    world.advance(SECOND)
    assert world.sweep().missing_timers == 1
    first, second = world.outbox.timers_of(TimerKind.TERMINATION)
    assert first.name != second.name


@pytest.mark.parametrize(
    ("kind", "changes", "owner"),
    [
        (TimerKind.EXPIRATION, {}, provisioner(ttl_until_expired=10 * MINUTE)),
        (TimerKind.REGISTRATION, {"ready": None, "taints": (NOT_READY,)}, provisioner()),
    ],
)
def test_a_timer_that_did_not_act_when_it_was_due_is_started_anew(
    kind: TimerKind, changes: dict[str, Any], owner: Any
) -> None:
    world = World(owner, node(**changes))
    world.cloud.add(machine("i-n1"))
    world.sweep()
    world.advance(5 * MINUTE if kind == TimerKind.REGISTRATION else 10 * MINUTE)
    assert world.sweep().missing_timers == 0
    world.advance(121 * SECOND)
    assert world.sweep().missing_timers == 1
    first, second = world.outbox.timers_of(kind)
    assert first.name != second.name
    assert second.payload["wait_seconds"] == 0
    world.advance(MINUTE)
    assert world.sweep().missing_timers == 0


def test_a_node_whose_emptiness_timer_did_not_act_is_removed_in_its_stead() -> None:
    world = World(provisioner(ttl_after_empty=MINUTE), node())
    world.cloud.add(machine("i-n1"))
    world.sweep()
    world.advance(MINUTE + 10 * SECOND)
    assert world.sweep().missing_timers == 0
    world.advance(SECOND)
    assert world.sweep().missing_timers == 1
    (drain,) = world.outbox.timers_of(TimerKind.TERMINATION)
    assert drain.payload["node"] == "n1"
    (first,) = world.outbox.timers_of(TimerKind.EMPTINESS)
    assert Emptiness(world.ports).step(first.payload)["result"] == "gone"


def test_an_emptiness_timer_without_a_stamp_is_overdue_by_when_it_was_last_seen() -> None:
    world = World(provisioner(ttl_after_empty=MINUTE), node())
    world.cloud.add(machine("i-n1"))
    world.sweep()
    gone = NodeChange(set_annotations={keys.EMPTINESS_TIMESTAMP: None})
    world.cluster.change_node(world.node, gone)
    assert world.sweep().missing_timers == 0
    world.advance(MINUTE + 121 * SECOND)
    assert world.sweep().missing_timers == 1

"""The lease that an invocation holds: renewed when it is due, before any call."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.model.errors import ConflictError
from shared.nodes.launch.held_lease import HeldLease
from shared.ports import ClusterPorts
from tests.unit.worlds import NAME, SECOND, World


def held_lease(world: World) -> HeldLease:
    lease = world.ledger.acquire(NAME, "me", world.clock.now())
    assert lease is not None
    return HeldLease(world.ledger, world.clock, lease, world.policy.lease_span)


def test_the_lease_is_kept_by_a_write_only_when_a_third_of_it_is_over() -> None:
    world = World()
    held = held_lease(world)
    expires_at = held.value.expires_at
    held.renew_if_due()
    assert world.ledger.written("renew") == []
    world.advance(timedelta(seconds=26))
    held.renew_if_due()
    assert held.value.expires_at > expires_at
    assert world.ledger.written("renew") == [NAME]


CALLS: dict[str, Callable[[ClusterPorts], object]] = {
    "cluster": lambda ports: ports.cluster.nodes(),
    "cloud": lambda ports: ports.cloud.endpoint(),
    "ledger": lambda ports: ports.ledger.slots(NAME),
    "decisions": lambda ports: ports.decisions.put("a", b"b"),
    "outbox": lambda ports: ports.outbox.evaluate(NAME),
    "rivals": lambda ports: ports.rivals.running(),
}


@pytest.mark.parametrize("port", CALLS)
def test_a_call_of_a_guarded_port_renews_the_lease_when_it_is_due(port: str) -> None:
    world = World()
    held = held_lease(world)
    ports = held.guard(world.ports)
    assert ports.cluster.name == NAME
    for _ in range(2):
        world.advance(20 * SECOND)
        CALLS[port](ports)
    assert world.ledger.written("renew") == [NAME, NAME]


def test_a_call_of_a_guarded_port_is_not_made_once_the_lease_is_lost() -> None:
    world = World()
    held = held_lease(world)
    world.advance(world.policy.lease_span + SECOND)
    assert world.ledger.acquire(NAME, "other", world.clock.now()) is not None
    with pytest.raises(ConflictError):
        held.guard(world.ports).outbox.evaluate(NAME)
    assert world.outbox.evaluations == []


def test_a_lease_that_was_released_is_not_renewed() -> None:
    world = World()
    held = held_lease(world)
    ports = held.guard(world.ports)
    assert held.release()
    world.advance(world.policy.lease_span + SECOND)
    ports.outbox.evaluate(NAME)
    assert world.ledger.written("renew") == []

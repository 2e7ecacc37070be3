"""Nodes that are due one by one: too old, or no longer what they should be."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from shared.disruption.consolidation import DisruptionMethod
from shared.disruption.drift import stamp_of
from shared.disruption.evaluation import DisruptionCause
from shared.disruption.expiration import time_to_expiration
from shared.model.kubernetes.nodes import Node
from shared.nodes.leave.expiration_timer import Expiration
from tests.builders import NOW, OTHER_SHAPE, affinity, node_of, pod, provisioner
from tests.unit.disruption.clusters import (
    AGED,
    HOUR,
    LATER,
    changed,
    cluster,
    looked,
    on,
)
from tests.unit.nodes.leave.replacements import expired, joined, state_of, step
from tests.unit.worlds import MINUTE, World

OTHER = OTHER_SHAPE
RARE = {"example.com/rare": 1}


def old(name: str, kind: str = "m5.large", minutes: int = 0) -> Node:
    return node_of(name, kind, created_at=NOW - timedelta(minutes=minutes))


def odd(name: str, kind: str = "m5.large", minutes: int = 0) -> Node:
    born = NOW - timedelta(minutes=minutes)
    return node_of(name, kind, created_at=born, annotations=OTHER)


class Due:
    """One reason why nodes are due."""

    def __init__(
        self, cause: DisruptionCause, owner: Any, make: Callable[..., Node], **settings: Any
    ) -> None:
        self.cause = cause
        self.owner = owner
        self.make = make
        self.settings = settings

    def look(self, *nodes: Node, bound: Any = ()) -> Any:
        seen = cluster(*nodes, bound=bound, provisioners=(self.owner,))
        return looked(seen, **self.settings)


BOTH = pytest.mark.parametrize(
    "due",
    [
        pytest.param(Due(DisruptionCause.EXPIRATION, AGED, old), id="expiration"),
        pytest.param(Due(DisruptionCause.DRIFT, provisioner(), odd, drift=True), id="drift"),
    ],
)


@BOTH
def test_a_node_that_is_not_due_stays(due: Due) -> None:
    assert due.look(node_of("a", created_at=LATER), bound=(on("a"),)).change is None


@BOTH
def test_the_next_node_is_removed_when_pods_of_the_first_fit_nowhere(due: Due) -> None:
    found = due.look(due.make("a", minutes=9), due.make("b"), bound=(on("a", extra=RARE), on("b")))
    assert found.change.remove == ("b",)


def test_a_node_whose_ttl_was_lengthened_stays() -> None:
    owner = provisioner(ttl_until_expired=2 * HOUR)
    assert (
        Due(DisruptionCause.EXPIRATION, owner, old).look(old("a"), bound=(on("a"),)).change is None
    )


def test_a_node_whose_provisioner_was_changed_back_stays() -> None:
    owner = provisioner()
    same = node_of("a", annotations=stamp_of(owner))
    assert (
        Due(DisruptionCause.DRIFT, owner, odd, drift=True).look(same, bound=(on("a"),)).change
        is None
    )


@BOTH
def test_due_node_is_removed_when_its_pods_fit_elsewhere(due: Due) -> None:
    room = node_of("room", created_at=LATER)
    found = due.look(due.make("a"), room, bound=(on("a"),)).change
    assert (found.cause, found.method, found.remove) == (due.cause, DisruptionMethod.DELETE, ("a",))


@BOTH
def test_all_due_empty_nodes_are_removed_together(due: Due) -> None:
    found = due.look(*(due.make(name) for name in "abcd"), bound=(on("d"),)).change
    assert (found.method, found.remove) == (DisruptionMethod.EMPTY, ("a", "b", "c"))


@BOTH
def test_used_nodes_are_removed_one_at_a_time_and_the_oldest_first(due: Due) -> None:
    nodes = (due.make("a"), due.make("b", minutes=9), due.make("c", minutes=5))
    bound = tuple(on(name, cpu=1500) for name in "abc")
    assert due.look(*nodes, bound=bound).change.remove == ("b",)


@BOTH
def test_a_node_that_is_due_is_replaced_by_another(due: Due) -> None:
    found = due.look(due.make("a"), bound=(on("a"),)).change
    assert (found.method, len(found.plan.nodes)) == (DisruptionMethod.REPLACE, 1)


@BOTH
def test_a_node_that_is_due_is_replaced_by_several(due: Due) -> None:
    bound = tuple(on("a", n, anti_affinity=(affinity(),)) for n in range(3))
    found = due.look(due.make("a", "m5.2xlarge"), bound=bound).change
    assert (found.method, len(found.plan.nodes)) == (DisruptionMethod.REPLACE, 3)


def test_a_node_whose_replacement_fails_is_open_again() -> None:
    world = expired()
    world.provision(look=True)
    joined(world)
    world.cluster.add(*(pod(f"late{n}", node_name="big", cpu=2500) for n in range(2)))
    assert step(world, state_of(world))["result"] == "pods came that fit nowhere else"
    assert not world.cluster.node_values["big"].unschedulable


STATE = {"cluster": "test", "node": "big", "uid": "uid-big"}


def aged(world: World) -> dict[str, Any]:
    return Expiration(world.ports).step(STATE)


def test_the_timer_ends_when_nodes_may_live_for_ever() -> None:
    world = expired()
    world.cluster.add(provisioner())
    assert aged(world)["result"] == "lives for ever"


def test_a_node_is_due_from_the_moment_its_time_is_over() -> None:
    assert time_to_expiration(node_of("a"), AGED, LATER) == timedelta(0)
    assert changed(cluster(old("a"), provisioners=(AGED,))).cause == DisruptionCause.EXPIRATION


def test_a_node_is_not_due_a_moment_before() -> None:
    early = cluster(old("a"), provisioners=(AGED,), taken_at=LATER - timedelta(seconds=1))
    assert looked(early).change is None


def test_the_age_of_a_node_counts_from_its_own_birth() -> None:
    world = expired(created_at=NOW + 30 * MINUTE)
    assert aged(world)["wait_seconds"] == 30 * 60


def test_the_timer_waits_for_what_is_left_of_the_life() -> None:
    world = expired()
    world.cluster.add(provisioner(ttl_until_expired=3 * HOUR))
    assert aged(world)["wait_seconds"] == 2 * 3600

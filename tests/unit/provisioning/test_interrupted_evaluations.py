"""A look over all nodes gives way: to pods that wait, and to the end of its invocation."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from shared.disruption import evaluation
from shared.model.errors import ConflictError
from shared.ports import TimerKind
from tests.builders import pod
from tests.unit.nodes.leave.replacements import half_empty
from tests.unit.worlds import MINUTE, NAME, World


def _before_each_try(
    monkeypatch: pytest.MonkeyPatch, world: World, do: Callable[[int], None]
) -> None:
    """Let something happen before each simulation, which is told its number, and two seconds."""
    tried = [0]

    def evaluate(*given: Any, may_continue: Callable[[], bool], **more: Any) -> Any:
        def slowly() -> bool:
            tried[0] += 1
            world.clock.advance(timedelta(seconds=2))
            do(tried[0])
            return may_continue()

        return evaluation.evaluate(*given, may_continue=slowly, **more)

    monkeypatch.setattr("shared.provisioning.disruption_loop.evaluate", evaluate)


def test_pods_that_come_meanwhile_get_their_places_first_and_the_look_is_taken_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = half_empty()

    def come(number: int) -> None:
        if number == 1:
            world.cluster.add(pod("new", cpu=1000))
            assert world.ledger.acquire(NAME, "another", world.clock.now()) is None

    _before_each_try(monkeypatch, world, come)
    report = world.provision(look=True)

    assert report.rounds == 2
    assert report.pods_placed == 1
    # In the second round the pod has its place, and so nothing is to be looked for.
    assert report.nodes_disrupted == 0
    assert world.outbox.timers_of(TimerKind.REPLACEMENT) == []
    assert not world.ledger.is_dirty(NAME)


def test_a_wake_for_nothing_only_delays_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    world = half_empty()

    def wake(number: int) -> None:
        if number == 1:
            world.ledger.acquire(NAME, "another", world.clock.now())

    _before_each_try(monkeypatch, world, wake)
    report = world.provision(look=True)

    assert (report.rounds, report.nodes_disrupted) == (2, 1)


def test_a_look_never_outlives_its_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    world = half_empty()
    _before_each_try(monkeypatch, world, lambda _: None)
    report = world.provision(look=True, span=world.policy.lease_span + timedelta(seconds=1))

    assert (report.rounds, report.nodes_disrupted) == (1, 0)
    # Nothing was found in the time there was: that is not tried again every minute.
    world.advance(MINUTE)
    assert world.provision(look=True).nodes_disrupted == 0


def test_evaluation_ends_when_the_lease_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    world = half_empty()
    steal: Callable[[int], None] = lambda _: world.ledger.steal(NAME, world.clock.now())  # noqa: E731
    _before_each_try(monkeypatch, world, steal)

    with pytest.raises(ConflictError):
        world.provision(look=True)
    assert world.outbox.timers_of(TimerKind.REPLACEMENT) == []

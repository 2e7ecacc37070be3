"""Provision while each call takes seconds: it keeps its lease, so that another does not begin."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.model.values import replace
from tests.builders import node, pod, provisioner
from tests.unit.worlds import NAME, SECOND, World

PORTS = ("cluster", "cloud", "ledger", "decisions", "outbox")


class Slow:
    """A port of which each call does something else first."""

    def __init__(self, target: Any, first: Callable[[], None]) -> None:
        self._target = target
        self._first = first

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            self._first()
            return found(*args, **more)

        return call


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("seconds", range(1, 6))
def test_the_lease_is_kept_from_the_first_list_to_the_last_node(
    seconds: int, *, look: bool
) -> None:
    world = World(
        provisioner(), node("n1"), node("n2"), *(pod(f"p{number}", cpu=3500) for number in range(3))
    )

    def first() -> None:
        world.advance(seconds * SECOND)
        assert not world.ledger.abandoned(NAME, world.clock.now())

    slow: dict[str, Any] = {name: Slow(getattr(world.ports, name), first) for name in PORTS}
    assert world.provision(look=look, ports=replace(world.ports, **slow)).nodes_launched

"""A play fails for each expectation that is falsified, and passes while it holds."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from infra.local.demo.cluster_client import ClusterClient
from infra.local.demo.drains import NODE_POOLS
from infra.local.demo.expectations import Situation
from infra.local.demo.fault_injection import FaultInjection
from infra.local.demo.karpenter import Karpenter
from infra.local.demo.observer import Observer
from infra.local.demo.play import Player
from infra.local.demo.scenario import Scenario, Step
from infra.local.demo.timeline import Timeline
from tests.unit.demo.test_expectations import HOLDS


class Seen:
    """An observer that has seen a certain timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.lock = threading.RLock()


class Telling(ClusterClient):
    """A cluster that knows of certain Events, and what NodePools say of their nodes."""

    def __init__(self, at: Situation) -> None:
        super().__init__("http://127.0.0.1:1")
        self._events = sorted(at.events)
        self._health = at.health

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        assert query == {}
        if path == NODE_POOLS:
            return [_pool(name, status) for name, status in self._health.items()]
        assert path == "api/v1/events"
        return [{"reason": why, "involvedObject": {"name": name}} for why, name in self._events]


def _pool(name: str, status: str) -> dict[str, Any]:
    condition = {"type": "NodesHealthy", "status": status}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


class Left:
    """What a Karpenter has left: instances, each of an owner."""

    def __init__(self, at: Situation) -> None:
        self.instance_ids = at.launched
        self.hands = lambda: at.hands


def _rows(at: Situation) -> list[dict[str, Any]]:
    return [{"kind": kind, "struck": struck, "count": n} for (kind, struck), n in at.harm.items()]


def failures(at: Situation, name: str, argument: Any) -> list[str]:
    """Play one step that expects one thing of a world seen like this; return what failed."""
    step = Step(title="look", does={}, expects={name: argument}, within_seconds=0)
    scenario = Scenario(name="one", title="One", folder=Path(), steps=(step,))
    observer = cast("Observer", Seen(at.timeline))
    player = Player(Telling(at), observer, at.speed, lambda _: None)
    # What stood before the play is what the situation says stood before.
    player._faults = FaultInjection(
        lambda verb: {"harm": _rows(at)} if verb == "harm" else {}, lambda _: None
    )
    player._known = at.known_nodes
    player._closed_until = at.closed_until
    player._bound = at.bound_micros_per_hour
    player.karpenter = cast("Karpenter", Left(at))
    (result,) = player.play(scenario)
    return [failed for failed, _ in result.failures]


@pytest.mark.parametrize(("name", "make", "argument", "falsify"), HOLDS, ids=[h[0] for h in HOLDS])
def test_a_play_fails_when_its_expectation_is_falsified(
    name: str,
    make: Callable[[], Situation],
    argument: dict[str, Any],
    falsify: Callable[[Situation], None],
) -> None:
    at = make()
    assert failures(at, name, argument) == []
    falsify(at)
    assert failures(at, name, argument) == [name]

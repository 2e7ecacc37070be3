"""The day before a cluster was watched, as decisions and launches recorded it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.cli.watch.day_before import MOST_READ, day_before, recorded_point, with_launches
from functions.cli.watch.history import Point
from shared.model import labels as keys
from shared.model.snapshot import ClusterSnapshot
from shared.nodes.launch.launch_results import LaunchedKind, LaunchResult
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.provisioning.decisions.record import compressed, decision_document
from tests.builders import NOW, node, offering, pod, slot, snapshot
from tests.unit.cli.watch.running import AtOnce, WorldRecords
from tests.unit.nodes.launch.launches import two_nodes
from tests.unit.worlds import MINUTE

BEGAN = 1_000.0


def result(at: float, count: int, price: int = 10, group: int = 0) -> LaunchResult:
    kind = LaunchedKind(offering=offering("m5.large"), price_micros_per_hour=price, count=count)
    return LaunchResult(
        plan_id="p",
        group=group,
        provisioner="default",
        at=datetime.fromtimestamp(at, UTC),
        planned=count,
        launched=(kind,) if count else (),
    )


def point(at: float, price: int, nodes: int) -> Point:
    return Point(at=at, price=price, owned=price, bound=None, nodes=nodes)


def document(taken: ClusterSnapshot, plan_id: str = "p1") -> bytes:
    settings = PackingSettings()
    return compressed(decision_document(plan_id, taken, decide(taken, settings), settings))


def test_a_decision_tells_the_nodes_of_its_moment_and_their_price() -> None:
    other = node("n2", annotations={}, finalizers=())
    joined = slot(instance_id="i-n1", node_name="n1")
    mine = node("n1", provider_id="aws:///us-east-1a/i-n1", annotations={keys.SLOT: "p/0/0"})
    taken = snapshot(pod(), nodes=(mine, other), slots=(joined, slot(instance_id="i-new")))
    told = recorded_point(document(taken), b"")
    assert told == Point(
        at=NOW.timestamp(), price=3 * 96_000, owned=2 * 96_000, bound=None, nodes=3
    )


def test_a_launch_adds_to_what_the_decision_saw_until_the_next_one() -> None:
    seen = [
        (point(300, 25, 2), []),
        (point(100, 50, 5), [result(120, 1, group=1), result(110, 2), result(350, 9)]),
        (point(90, 1, 1), [result(80, 0)]),
    ]
    assert with_launches(seen, BEGAN) == (
        point(90, 1, 1),
        point(100, 50, 5),
        point(110, 70, 7),
        point(120, 80, 8),
        point(300, 25, 2),
    )


def test_what_came_after_it_was_opened_is_left_out() -> None:
    assert with_launches([(point(BEGAN, 1, 1), []), (point(BEGAN - 9, 2, 2), [])], BEGAN) == (
        point(BEGAN - 9, 2, 2),
    )


def test_the_day_is_read_from_decisions_and_what_came_of_them() -> None:
    world = two_nodes()
    world.provision()
    [launched] = WorldRecords(world).launch_results("plan-1")
    world.advance(10 * MINUTE)
    first, second = day_before(WorldRecords(world), AtOnce(), world.clock.now())
    assert (first.nodes, first.price) == (0, 0)
    assert (second.nodes, second.at) == (2, launched.at.timestamp())
    assert second.owned == sum(s.price_micros_per_hour for s in world.ledger.slots("test"))


def test_what_cannot_be_read_does_not_hide_the_rest_and_nothing_recorded_is_nothing() -> None:
    world = two_nodes()
    assert day_before(WorldRecords(world), AtOnce(), world.clock.now()) == ()
    world.provision()
    day = f"{world.clock.now():%Y-%m-%d}"
    world.decisions.put(f"decisions/test/{day}/plan-0.json.gz", b"of a later release")
    world.advance(10 * MINUTE)
    assert len(day_before(WorldRecords(world), AtOnce(), world.clock.now())) == 2


@pytest.mark.parametrize(("recorded", "read"), [(MOST_READ, MOST_READ), (999, MOST_READ), (1, 1)])
def test_of_many_decisions_some_are_read_the_first_and_the_last_among_them(
    recorded: int, read: int
) -> None:
    until = datetime(2026, 1, 2, 12, tzinfo=UTC)

    class Many(WorldRecords):
        asked: tuple[Any, ...] = ()

        def decisions(self, day: str, after: str) -> tuple[str, ...]:
            self.asked += ((day, after),)
            return tuple(f"{number:03}" for number in range(recorded)) if "-02" in day else ()

        def document(self, key: str) -> bytes:
            opened.append(key)
            taken = until - timedelta(hours=1) + timedelta(seconds=int(key))
            return document(snapshot(taken_at=taken), key)

    opened: list[str] = []
    records = Many(two_nodes())
    assert len(day_before(records, AtOnce(), until)) == read
    assert (opened[0], opened[-1], len(opened)) == ("000", f"{recorded - 1:03}", read)
    after = "decisions/test/2026-01-01/20260101t120000"
    assert records.asked == (("2026-01-01", after), ("2026-01-02", after))

"""The last decisions: read once each, newest first, and opened."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.cli.watch.live import IDLE_RECORDS_EVERY
from functions.cli.watch.recent_decisions import MOST_DECISIONS, RecentDecisions
from shared.model.errors import UnavailableError
from shared.model.values import replace
from tests.unit.cli.watch.running import AtOnce, Scene, WorldRecords
from tests.unit.nodes.launch.launches import two_nodes
from tests.unit.worlds import MINUTE, World, failing


def test_decisions_of_the_archive_are_listed_newest_first_and_open() -> None:
    world = two_nodes()
    world.provision()
    scene = Scene(WorldRecords(world))
    scene.see(*world.cluster.pending_pods())
    scene.cluster.synced()
    scene.read()
    told = scene.turn()
    assert told["cluster"] == "test"
    [decision] = told["decisions"]
    assert (decision["id"], decision["pods"]) == ("plan-1", 2)
    slots = world.ledger.slots("test")
    kind = slots[0].offering
    assert decision["outcome"] == {
        "at": max(slot.launched_at for slot in slots).isoformat(),
        "launched": [[2, kind.instance_type, kind.capacity_type.value]],
        "cost": sum(slot.price_micros_per_hour for slot in slots),
        "refused": [],
        "ended": True,
    }
    opened = scene.live.decision("plan-1")
    assert opened is not None
    assert opened["bucket"] == "archive"
    assert scene.live.document("plan-1") == world.decisions.get(opened["key"])
    assert scene.live.decision("plan-9") is None


def test_a_decision_from_before_the_last_opens_too() -> None:
    world = two_nodes()
    world.provision()
    scene = Scene(WorldRecords(world))
    scene.read()
    [recorded] = [key for key in world.decisions.documents if key.startswith("decisions/")]
    content = world.decisions.get(recorded)
    old = "20251224t101500-3f9a1c"
    world.decisions.put(f"decisions/test/2025-12-24/{old}.json.gz", content)
    opened = scene.live.decision(old)
    assert opened is not None
    assert (opened["pods"], opened["bucket"], opened["outcome"]) == (2, "archive", None)
    assert scene.live.document(old) == content
    [known] = world.ports.ledger.notes("test", "launch#plan-1#")
    note = replace(known, name=f"launch#{old}#0")
    world.ports.ledger.put_note("test", note, world.clock.now() + MINUTE)
    again = scene.live.decision(old)
    assert again is not None
    assert again["outcome"]["launched"][0][0] == 2


def test_a_decision_that_is_gone_or_cannot_be_reached_does_not_open() -> None:
    world = two_nodes()
    scene = Scene(WorldRecords(world))
    scene.read()
    gone = "20251224t101500-3f9a1c"
    assert (scene.live.decision(gone), scene.live.document(gone)) == (None, None)
    assert scene.records is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scene.records, "document", failing(UnavailableError("no answer")))
        assert (scene.live.decision(gone), scene.live.document(gone)) == (None, None)


def test_the_list_of_decisions_is_whole_while_old_ones_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = two_nodes()
    world.provision()
    archive = RecentDecisions(WorldRecords(world), AtOnce())
    archive.read(world.clock.now())

    def drop_and_sort(key: str) -> str:
        monkeypatch.undo()
        monkeypatch.setattr("functions.cli.watch.recent_decisions.MOST_DECISIONS", 1)
        [recorded] = [key for key in world.decisions.documents if key.startswith("decisions/")]
        world.decisions.put(recorded.replace("plan-1", "plan-2"), world.decisions.get(recorded))
        archive.read(world.clock.now())
        return key

    monkeypatch.setattr("functions.cli.watch.recent_decisions._by_plan", drop_and_sort)
    assert len(archive.newest_first()) == 1
    assert archive.newest_first()[0]["key"].endswith("plan-2.json.gz")


def test_the_newest_decision_is_read_first_and_the_list_is_not_current_before_the_last() -> None:
    world = two_nodes()
    world.provision()
    [recorded] = [key for key in world.decisions.documents if key.startswith("decisions/")]
    world.decisions.put(recorded.replace("plan-1", "plan-2"), world.decisions.get(recorded))
    opened: list[tuple[str, bool]] = []

    class Noting(AtOnce):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            opened.append((args[0].rpartition("/")[2], archive.is_current))
            return super().submit(fn, *args, **kwargs)

    archive = RecentDecisions(WorldRecords(world), Noting())
    archive.read(world.clock.now())
    assert opened == [("plan-2.json.gz", False), ("plan-1.json.gz", False)]
    assert archive.is_current


class Listed(WorldRecords):
    """Records that keep which lists were asked for."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.asked: list[tuple[str, str]] = []

    def decisions(self, day: str, after: str) -> tuple[str, ...]:
        self.asked.append((day, after))
        return super().decisions(day, after)


def key_of(at: datetime, number: int) -> str:
    return f"decisions/test/{at:%Y-%m-%d}/plan-{number:03}.json.gz"


def test_only_what_may_be_new_is_listed() -> None:
    world = two_nodes()
    records = Listed(world)
    archive = RecentDecisions(records, AtOnce())
    now = datetime(2026, 1, 2, 12, tzinfo=UTC)
    yesterday = now - timedelta(days=1)
    world.decisions.put(key_of(yesterday, 0), b"")
    archive.read(now)
    archive.read(now)
    for number in range(1, MOST_DECISIONS + 1):
        world.decisions.put(key_of(now, number), b"")
    for _ in range(2):
        archive.read(now)
    archive.read(now + timedelta(hours=12))
    today, oldest = "2026-01-02", key_of(now, 1)
    assert records.asked == [
        ("2026-01-01", ""),
        *[(today, "")] * 3,
        (today, oldest),
        *[(today, oldest), ("2026-01-03", oldest)],
    ]


def test_a_decision_that_cannot_be_read_does_not_hide_the_others() -> None:
    world = two_nodes()
    world.provision()
    day = f"{world.clock.now():%Y-%m-%d}"
    world.decisions.put(f"decisions/test/{day}/plan-0.json.gz", b"of a later release")
    scene = Scene(WorldRecords(world))
    scene.cluster.synced()
    scene.read()
    scene.clock.advance(IDLE_RECORDS_EVERY)
    scene.read()
    assert [decision["id"] for decision in scene.turn()["decisions"]] == ["plan-1"]
    asked = [key for verb, key in world.decisions.calls if verb == "get" and "plan-0" in key]
    assert len(asked) == 1

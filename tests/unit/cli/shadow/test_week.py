"""A week is recorded through crashes and torn writes: the report is the same as without."""

import random
import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from functions.cli.shadow.figures import json_figures, shadow_figures
from functions.cli.shadow.fleet import Fleet, Observation
from functions.cli.shadow.record import Recorded, ShadowRecord, Span
from functions.cli.shadow.shadow_page import shadow_page
from functions.cli.shadow.step import step
from tests.unit.cli.shadow.week import ABOUT, BEGAN, observations, rules

EVERY = timedelta(hours=1)
RULES = rules(EVERY)
WEEK = observations(24, 168, EVERY)


def go_on(path: Path, observed: Iterable[Observation]) -> Recorded:
    """Continue the record in a file, as a new process does; return what it then holds."""
    with ShadowRecord(path, make=True) as record:
        record.begin(ABOUT)
        observe(record, observed)
        return record.recorded()


def observe(record: ShadowRecord, observed: Iterable[Observation]) -> None:
    fleet = record.fleet()
    for found in observed:
        made = step(fleet, found, RULES)
        record.add(fleet, made)
        fleet = made.fleet


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The record of one process that nothing happened to."""
    return go_on(tmp_path_factory.mktemp("whole") / "week.db", WEEK)


def crash(path: Path, observed: Iterable[Observation], torn_bytes: int) -> None:
    """Leave the files as a crash leaves them, without the last bytes of SQLite's log."""
    left = path.with_suffix(".left")
    with ShadowRecord(path, make=True) as record:
        observe(record, observed)
        shutil.copy(path, left)
        log = Path(f"{path}-wal").read_bytes()
    shutil.move(left, path)
    Path(f"{path}-wal").write_bytes(log[: len(log) - torn_bytes])


def test_a_week_is_the_same_with_crashes_and_torn_writes(whole: Recorded, tmp_path: Path) -> None:
    rng, path, at = random.Random(7), tmp_path / "week.db", 0
    while at < len(WEEK):
        following = min(at + rng.randint(1, 24), len(WEEK))
        # Each process observes what came after the last observation that it finds recorded.
        crash(path, WEEK[:following], rng.choice((0, 1, 20, 4096, 9000)))
        at = following
    recorded = go_on(path, WEEK)
    assert recorded == whole
    assert shadow_page(recorded, shadow_figures(recorded)) == shadow_page(
        whole, shadow_figures(whole)
    )


def test_a_torn_write_loses_at_most_the_observation_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "torn.db"
    crash(path, WEEK[:5], 0)
    log = Path(f"{path}-wal").read_bytes()
    times = set()
    for cut in range(0, len(log), 1013):
        copy = tmp_path / f"cut{cut}.db"
        shutil.copy(path, copy)
        Path(f"{copy}-wal").write_bytes(log[: len(log) - cut])
        with ShadowRecord(copy, make=True) as record:
            fleet = record.fleet()
        times.add(fleet.progress.last_at if fleet.progress else None)
        # Whole observations alone: the fleet is that of its last one.
        count = sum(found.at <= fleet.progress.last_at for found in WEEK) if fleet.progress else 0
        assert fleet == after(WEEK[:count])
    assert times <= {None, *(found.at for found in WEEK[:5])}
    assert WEEK[4].at in times
    assert len(times) > 2


def after(observed: Iterable[Observation]) -> Fleet:
    """Return the fleet after observations, without what ended at the last."""
    fleet = Fleet()
    for found in observed:
        fleet = step(fleet, found, RULES).fleet
    real = {uid: node for uid, node in fleet.real.items() if node.run.ended_at is None}
    return Fleet(
        progress=fleet.progress,
        nodes=fleet.nodes,
        places=fleet.places,
        real=real,
        shown=fleet.shown,
    )


def test_a_time_without_a_process_is_a_gap_and_counts_on_neither_side(
    whole: Recorded, tmp_path: Path
) -> None:
    go_on(tmp_path / "gap.db", WEEK[:50])
    recorded = go_on(tmp_path / "gap.db", WEEK[60:])
    figures, without = shadow_figures(recorded), shadow_figures(whole)
    assert figures.gaps == (Span(began_at=WEEK[49].at, ended_at=WEEK[60].at),)
    assert figures.observed == without.observed - 11 * EVERY
    assert figures.total.real.micros < without.total.real.micros
    assert "not observed from 2026-01-03 02:00 UTC to 2026-01-03 13:00 UTC (11.0 h)" in shadow_page(
        recorded, figures
    )


def test_the_figures_of_a_week_add_up(whole: Recorded) -> None:
    figures = shadow_figures(whole)
    total = figures.total
    assert figures.observed == 167 * EVERY
    assert list(figures.days) == [f"2026-01-0{day}" for day in range(1, 8)]
    for side in ("real", "shadow"):
        days = [getattr(costs, side) for costs in figures.days.values()]
        assert abs(sum(day.micros for day in days) - getattr(total, side).micros) <= len(days)
        assert sum(day.node_seconds for day in days) == getattr(total, side).node_seconds
        assert max(day.most_nodes for day in days) == getattr(total, side).most_nodes
    # The stand-in consolidates nothing: Dovetail must find something.
    assert 0 < total.shadow.micros < total.real.micros
    assert whole.purchases
    assert whole.spans[0].began_at == BEGAN + EVERY
    assert json_figures(whole, figures)["observed_seconds"] == 167 * 3600

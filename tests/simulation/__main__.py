"""`make faults`: very many schedules, the crash points, the mutations and the hard days."""

import argparse
import logging
import sys
import time
from collections.abc import Callable
from multiprocessing.pool import ApplyResult
from pathlib import Path
from typing import Any, TypeVar

from tests.simulation.campaigns import crash_points, hard_days, lifetimes, mutations, notices
from tests.simulation.campaigns.campaign import Tally, explain, folder_of, kept, pool, run_all
from tests.simulation.campaigns.report import Figures, Lives, write

_MUTATION_SCHEDULES = 1500
_PARTS = 40
_LIVES = 500
# A few slow calls delay several of a world's 200 machines, and would decide its 99th percentile.
_WARNED_WORLDS = 10
_SHARE = 1 / 12
T = TypeVar("T")


def main() -> int:
    """Run everything; return 1 when any invariant was broken or any bar was missed."""
    parser = argparse.ArgumentParser(prog="tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--minutes", type=int, default=90, help="of the storm")
    parser.add_argument("--nodes", type=int, default=1000, help="of the burst")
    parser.add_argument("--write", type=Path, help="page whose figures are replaced")
    parser.add_argument("--seed", type=int, help="run and explain this schedule alone")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return _one(arguments.seed)
    begun = time.monotonic()
    progress = _progress(arguments.schedules, begun)
    folder = folder_of(Path(__file__).parents[2])
    with pool(arguments.workers) as workers:

        def run(name: str, part: Callable[..., T], *args: Any, **more: Any) -> ApplyResult[T]:
            return workers.apply_async(kept, (folder, name, part, *args), more)

        storm = run(f"storm-{arguments.minutes}", hard_days.storm, arguments.minutes)
        throttling = [
            run("fleet-throttled", hard_days.throttled, hard_days.FLEET_CALLS),
            run("all-throttled", hard_days.throttled),
        ]
        burst = run(f"burst-{arguments.nodes}", hard_days.burst, arguments.nodes)
        runaway = run("runaway", hard_days.runaway)
        emptied = run("emptied", lifetimes.emptied, _LIVES)
        troubled = run("troubled", lifetimes.emptied, _LIVES, share=_SHARE)
        warned = [
            run(f"warned-{seed}", notices.notices, 200, 200, 120.0, seed)
            for seed in range(_WARNED_WORLDS)
        ]
        noticed = run("noticed", notices.notices)
        blocked = run("blocked", lifetimes.blocked)
        catches = [
            run(f"mutation-{mutation.name}", mutations.hunt, mutation.name, _MUTATION_SCHEDULES)
            for mutation in mutations.MUTATIONS
        ]
        points = [
            run(f"points-{n}-of-{_PARTS}", crash_points.run_part, n, _PARTS) for n in range(_PARTS)
        ]
        tally = run_all(workers, arguments.first, arguments.schedules, folder, progress)
        sys.stderr.write("\n")
        figures = Figures(
            seeds=range(arguments.first, arguments.first + arguments.schedules),
            tally=tally,
            workers=arguments.workers,
            points=[result for part in points for result in part.get()],
            catches=[catch.get() for catch in catches],
            storm=storm.get(),
            throttling=[apply_result.get() for apply_result in throttling],
            burst=burst.get(),
            runaway=runaway.get(),
            lives=Lives(
                emptied=emptied.get(),
                troubled=troubled.get(),
                warned=notices.together([part.get() for part in warned]),
                storm=noticed.get(),
                blocked=blocked.get(),
            ),
        )
    for line in figures.lines():
        sys.stdout.write(f"{line}\n")
    for outcome in tally.broken[:5]:
        for line in explain(outcome):
            sys.stdout.write(f"{line}\n")
    if arguments.write:
        write(arguments.write, figures)
    for line in figures.missed():
        sys.stdout.write(f"MISSED: {line}\n")
    return 1 if figures.missed() else 0


def _progress(schedules: int, begun: float) -> Callable[[Tally], None]:
    told: set[int] = set()

    def progress(tally: Tally) -> None:
        for outcome in tally.broken[len(told) :]:
            # Reported at once: the seed can be examined while the campaign runs.
            told.add(outcome.seed)
            sys.stderr.write(f"\rseed {outcome.seed}: {outcome.text}\n")
        seconds = time.monotonic() - begun
        left = seconds / tally.schedules * (schedules - tally.schedules)
        line = (
            f"\r{tally.schedules:,} of {schedules:,} schedules, "
            f"{len(tally.broken)} violations, {seconds:.0f} s, {left:.0f} s to go  "
        )
        sys.stderr.write(line)
        sys.stderr.flush()

    return progress


def _one(seed: int) -> int:
    from tests.simulation.schedule.running import run_seed

    outcome = run_seed(seed)
    if not outcome.broken:
        sys.stdout.write(f"seed {seed}: {len(outcome.fired)} faults, all invariants held\n")
        return 0
    for line in explain(outcome):
        sys.stdout.write(f"{line}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

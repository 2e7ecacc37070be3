"""Many schedules: what they found, what they covered, and how long they took."""

import functools
import gc
import logging
import multiprocessing
import multiprocessing.pool
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from shared.runtime import logs_and_metrics
from tests.simulation.schedule.faults import Action, CallFault, CallFaults, Site
from tests.simulation.schedule.running import Outcome, run_scene, run_seed, shrink
from tests.simulation.schedule.scenario import Scene

_CRASHES: Final = (("before", Action.CRASH_BEFORE), ("after", Action.CRASH_AFTER))
_CHUNK: Final = 50
_CODE: Final = ("shared", "functions", "infra/local", "tests/fakes", "tests/simulation")
T = TypeVar("T")


@dataclass
class Tally:
    """What schedules came to; two can be added.

    Attributes:
        broken: Outcomes in which an invariant did not hold.
        seen: A schedule that called each site.
        crashed: Sites and when (before or after), that some schedule crashed.
        short: Seeds of schedules with too few messages or faults to count.
        longest: Most seconds anything was not in order after the last fault, by kind.
    """

    schedules: int = 0
    messages: int = 0
    invocations: int = 0
    faults: int = 0
    machines: int = 0
    checks: int = 0
    cpu_seconds: float = 0.0
    broken: list[Outcome] = field(default_factory=list)
    seen: dict[Site, Scene] = field(default_factory=dict)
    crashed: set[tuple[Site, str]] = field(default_factory=set)
    short: list[int] = field(default_factory=list)
    longest: Counter[str] = field(default_factory=Counter)

    def count(self, outcome: Outcome, *, directed: bool = False) -> None:
        self.schedules += 1
        self.messages += outcome.messages
        self.invocations += outcome.invocations
        self.faults += len(outcome.fired)
        self.machines += outcome.machines
        self.checks += outcome.checks
        if outcome.broken:
            self.broken.append(outcome)
        elif not directed and not outcome.counts:
            self.short.append(outcome.seed)
        for site in () if directed else outcome.sites:
            # What only a directed schedule calls, its seed alone does not lead to.
            self.seen.setdefault(site, outcome.scene)
        self.crashed |= outcome.crashed
        for name, seconds in outcome.longest.items():
            self.longest[name] = max(self.longest[name], round(seconds))

    def add(self, other: "Tally") -> None:
        for name in ("schedules", "messages", "invocations", "faults", "machines", "checks"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cpu_seconds += other.cpu_seconds
        self.broken += other.broken
        self.short += other.short
        for site, scene in other.seen.items():
            self.seen.setdefault(site, scene)
        self.crashed |= other.crashed
        self.longest |= other.longest

    @property
    def not_crashed(self) -> list[tuple[Site, str]]:
        """Sites that were called and never crashed, sorted."""
        wanted = {(site, when) for site in self.seen for when, _ in _CRASHES}
        return sorted(wanted - self.crashed)


def run_range(seeds: Iterable[int]) -> Tally:
    """Run the schedules of these seeds."""
    tally = Tally()
    begun = time.process_time()
    for seed in seeds:
        tally.count(run_seed(seed))
    tally.cpu_seconds = time.process_time() - begun
    return tally


def crash_the_rest(tally: Tally) -> None:
    """Run a schedule for each site that none has crashed yet, with one more fault: this crash."""
    for site, when in tally.not_crashed:
        if (site, when) in tally.crashed:
            continue
        action = dict(_CRASHES)[when]
        scene = tally.seen[site]
        plan = CallFaults(scene.seed, share=scene.share, also=CallFault(site, 1, action))
        tally.count(run_scene(scene, plan), directed=True)


def kept(folder: Path, name: str, part: Callable[..., T], *args: Any, **more: Any) -> T:
    """Return what a part of the campaign came to: from the folder if it was run before."""
    path = folder / f"{name}.pickle"
    if path.exists():
        found: T = pickle.loads(path.read_bytes())
        return found
    result = part(*args, **more)
    whole = path.with_suffix(f".{os.getpid()}")
    whole.write_bytes(pickle.dumps(result))
    whole.replace(path)
    return result


def folder_of(root: Path) -> Path:
    """Return where results of the code as it is now are kept; it exists."""
    code = sha256()
    for part in _CODE:
        for path in sorted((root / part).rglob("*.py")):
            code.update(path.read_bytes())
    folder = root / ".build" / "faults" / code.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def pool(workers: int) -> multiprocessing.pool.Pool:
    """Return processes that run schedules, each on a processor of its own."""
    return multiprocessing.get_context("spawn").Pool(workers, settle, ())


def run_all(
    workers: multiprocessing.pool.Pool,
    first: int,
    schedules: int,
    folder: Path,
    progress: Callable[[Tally], None],
) -> Tally:
    """Run schedules on several processors; `progress` is told after each chunk.

    Args:
        folder: Where chunks are kept that were run before.
    """
    chunks = [
        range(start, min(start + _CHUNK, first + schedules))
        for start in range(first, first + schedules, _CHUNK)
    ]
    tally = Tally()
    for part in workers.imap_unordered(functools.partial(_chunk, folder), chunks):
        tally.add(part)
        progress(tally)
    crash_the_rest(tally)
    return tally


def _chunk(folder: Path, seeds: range) -> Tally:
    return kept(folder, f"{seeds.start}-{seeds.stop}", run_range, seeds)


def settle() -> None:
    """Keep a worker on one processor: its threads take turns, they never run side by side."""
    logging.disable(logging.CRITICAL)
    logs_and_metrics.logger.setLevel("CRITICAL")
    number = multiprocessing.current_process()._identity[0]
    free = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {free[number % len(free)]})
    # What is loaded by now stays; what a schedule leaves behind is looked for seldom.
    gc.freeze()
    gc.set_threshold(100_000, 5, 5)


def explain(outcome: Outcome) -> Iterator[str]:
    """Yield the lines that say how an invariant was broken, with as few faults as do it."""
    yield f"seed {outcome.seed}: {outcome.text}"
    smallest = shrink(outcome)
    yield f"  {len(smallest.fired)} of {len(outcome.fired)} faults suffice: {smallest.text}"
    for fault in smallest.fired:
        yield f"    {fault}"
    yield "  the last calls:"
    for line in smallest.log[-40:]:
        yield f"    {line}"

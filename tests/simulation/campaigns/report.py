"""What a run of everything found, as lines for people and as tables for the page."""

import os
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.simulation.campaigns.campaign import Tally
from tests.simulation.campaigns.crash_points import Result
from tests.simulation.campaigns.hard_days import Burst, Runaway, Storm, Throttling
from tests.simulation.campaigns.lifetimes import Blocked, Emptied
from tests.simulation.campaigns.mutations import Catch
from tests.simulation.campaigns.notices import Notices
from tools.made_part import with_result

_BEGIN = "<!-- figures: begin -->"
_END = "<!-- figures: end -->"
MOST_FAILED = 70
MOST_TRIES = 3
MOST_RUNAWAYS = 2
NEVER_USABLE = "NodesNeverUsable"
# Seconds: after its ttl until an empty node is gone; until what replaces a warned machine is asked
# for, in 99 of 100; until all notices of a storm are dealt with.
MOST_LATE = 30.0
MOST_ASKED = 5.0
MOST_ABSORBED = 60.0


@dataclass(frozen=True)
class Lives:
    """What was measured of the ends of nodes.

    Attributes:
        emptied: While machines, kubelets and EC2 misbehave.
        troubled: While functions, messages and timers fail, too.
    """

    emptied: Emptied
    troubled: Emptied
    warned: Notices
    storm: Notices
    blocked: Blocked

    def missed(self) -> list[str]:
        """Return every bar that was missed."""
        emptied, warned, storm, blocked = self.emptied, self.warned, self.storm, self.blocked
        bars = {
            f"empty nodes: {emptied.gone_seconds[-1]} s": emptied.gone_seconds[-1] > MOST_LATE,
            f"spot warnings: {warned.p99_seconds} s": warned.p99_seconds > MOST_ASKED,
            f"not replaced: {warned.unasked} {storm.unasked}": warned.unasked + storm.unasked > 0,
            f"notices: {storm.absorbed_seconds} s": storm.absorbed_seconds > MOST_ABSORBED,
            f"left after notices: {warned.left} {storm.left}": bool(warned.left or storm.left),
            f"blocked drains: {blocked}": blocked.is_breeding,
        }
        return [text for text, is_missed in bars.items() if is_missed]

    def lines(self) -> Iterator[str]:
        """Yield the figures as a Markdown table."""
        emptied, warned, storm, blocked = self.emptied, self.warned, self.storm, self.blocked
        gone = emptied.gone_seconds
        yield "| end of nodes | figure | bar |"
        yield "|---|---|---|"
        yield (
            f"| empty nodes gone after their ttl, {len(gone):,} in {emptied.schedules:,} schedules "
            f"| median {gone[len(gone) // 2]:.1f} s, latest {gone[-1]:.1f} s | {MOST_LATE:.0f} s |"
        )
        troubled, late = self.troubled, self.troubled.gone_seconds
        yield (
            f"| the same while functions, messages and timers fail, {len(late):,} in "
            f"{troubled.schedules:,} schedules | {100 * troubled.within(MOST_LATE):.1f} % in "
            f"{MOST_LATE:.0f} s, latest {late[-1] / 60:.1f} min | |"
        )
        asked = warned.asked_seconds
        yield (
            f"| replacement asked for after a spot warning, {warned.ours:,} machines, those of a "
            f"cluster in two minutes | median {asked[len(asked) // 2]:.1f} s, 99 of 100 in "
            f"{warned.p99_seconds:.1f} s | {MOST_ASKED:.0f} s |"
        )
        yield (
            f"| {storm.notices:,} notices within a second, {storm.ours:,} about Dovetail's "
            f"machines, 100 invocations at once | absorbed in {storm.absorbed_seconds:.1f} s; "
            "replacements asked for: median "
            f"{storm.asked_seconds[len(storm.asked_seconds) // 2]:.1f} s, 99 of "
            f"100 in {storm.p99_seconds:.1f} s | {MOST_ABSORBED:.0f} s |"
        )
        yield (
            f"| expired nodes whose pods a budget holds, {blocked.minutes} min | "
            f"{blocked.machines} machines for {blocked.first}, {blocked.moved} pods moved | "
            f"{2 * blocked.first}; 0 |"
        )


@dataclass(frozen=True)
class Figures:
    """Everything that was measured."""

    seeds: range
    tally: Tally
    workers: int
    points: Sequence[Result]
    catches: Sequence[Catch]
    storm: Storm
    throttling: Sequence[Throttling]
    burst: Burst
    runaway: Runaway
    lives: Lives

    def result(self) -> str:
        """Return what was found, in one line."""
        wrong = len(self.tally.broken) + sum(1 for point in self.points if point.broken)
        noticed = sum(1 for catch in self.catches if catch.seed >= 0)
        return (
            f"{self.tally.schedules:,} random schedules of faults and {len(self.points):,} crash "
            f"points: {wrong} violations. Of {len(self.catches)} safeguards that were taken away "
            f"one at a time, the tests noticed {noticed}"
        )

    def missed(self) -> list[str]:
        """Return every bar that was missed."""
        found = [f"seed {outcome.seed}: {outcome.text}" for outcome in self.tally.broken]
        found += [f"too few messages or faults: seed {value}" for value in self.tally.short[:5]]
        found += [f"no schedule crashed {when} {site}" for site, when in self.tally.not_crashed]
        found += [f"crash point {p.point.fault}: {p.broken}" for p in self.points if p.broken]
        found += [
            f"mutation not caught: {catch.mutation}" for catch in self.catches if catch.seed < 0
        ]
        storm, burst = self.storm, self.burst
        if storm.failed > MOST_FAILED or storm.first_success > MOST_TRIES or storm.left:
            found.append(f"storm: {storm}")
        found += [
            f"throttling: {run}"
            for run in self.throttling
            if run.factor > run.most_factor or run.redelivered or run.left
        ]
        if burst.missed:
            found.append(f"burst: {burst}")
        if self.runaway.machines > MOST_RUNAWAYS or NEVER_USABLE not in self.runaway.events:
            found.append(f"runaway: {self.runaway}")
        return found + self.lives.missed()

    def lines(self) -> Iterator[str]:
        """Yield the figures as a Markdown fragment."""
        tally = self.tally
        schedules = max(tally.schedules, 1)
        yield f"{datetime.now(UTC):%Y-%m-%d}, {machine()}."
        yield ""
        yield "| random schedules | |"
        yield "|---|---|"
        seeds = self.seeds
        again = "some once more, to crash where none of them did"
        yield f"| seeds | {seeds.start:,} to {seeds.stop - 1:,}; {again} |"
        yield f"| schedules | {tally.schedules:,} |"
        yield f"| violations | {len(tally.broken)} |"
        yield f"| messages | {tally.messages:,} ({tally.messages / schedules:.0f} each) |"
        yield f"| faults | {tally.faults:,} ({tally.faults / schedules:.0f} each) |"
        yield f"| invocations | {tally.invocations:,} |"
        yield f"| machines launched | {tally.machines:,} |"
        yield f"| checks | {tally.checks:,} |"
        yield f"| call sites, each crashed before and after | {len(tally.seen)} |"
        yield (
            f"| CPU time | {tally.cpu_seconds / 60:.1f} min on {self.workers} workers, "
            f"{1000 * tally.cpu_seconds / schedules:.0f} ms each |"
        )
        yield ""
        yield "| crash points | run | wrong |"
        yield "|---|---|---|"
        for kind in sorted({point.point.kind for point in self.points}):
            for when in ("before", "after"):
                run = [p for p in self.points if (p.point.kind, p.point.when) == (kind, when)]
                wrong = sum(1 for result in run if result.broken)
                yield f"| {kind} {when} the call | {len(run):,} | {wrong} |"
        yield ""
        yield "| safeguard taken away | noticed by | after schedules |"
        yield "|---|---|---|"
        for catch in self.catches:
            yield f"| {catch.mutation} | {catch.invariant or 'no law'} | {catch.schedules:,} |"
        yield ""
        yield from self._days()
        yield ""
        yield from self.lives.lines()

    def _days(self) -> Iterator[str]:
        storm, burst, runaway = self.storm, self.burst, self.runaway
        yield "| hard day | figure | bar |"
        yield "|---|---|---|"
        yield (
            f"| no capacity, {storm.minutes} min, {storm.pods:,} pods | {storm.failed} of "
            f"{storm.attempts} calls launched nothing; first success: call {storm.first_success} "
            f"| {MOST_FAILED}; {MOST_TRIES} |"
        )
        for run in self.throttling:
            what = "CreateFleet call" if len(run.methods) == 1 else "call of each EC2 method"
            yield (
                f"| every second {what} throttled | {run.calls_throttled} calls for {run.calls} "
                f"({run.factor:.1f} x), {run.redelivered} redeliveries "
                f"| {run.most_factor:.0f} x; 0 |"
            )
        calls = ", ".join(f"{name} {count:,}" for name, count in burst.calls.items())
        yield (
            f"| {burst.machines:,} machines of mixed shapes at once, and gone again | {calls} | "
            f"{burst.bars} |"
        )
        yield (
            f"| a node never usable for its pod, {runaway.minutes} min | {runaway.machines} "
            f"machines, Events: {', '.join(runaway.events) or 'none'} | {MOST_RUNAWAYS}; an Event |"
        )


def machine() -> str:
    """Return what this ran on."""
    model = ""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        found = re.search(r"model name\s*:\s*(.+)", text)
        model = found.group(1) if found else ""
    except OSError:
        model = platform.processor()
    return f"{os.cpu_count()} cores {model}, Python {platform.python_version()}".replace("  ", " ")


def write(page: Path, figures: Figures) -> None:
    """Replace the result and the figures of the page."""
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(_BEGIN)
    _, tail = rest.split(_END)
    body = "\n".join(figures.lines())
    written = with_result(f"{head}{_BEGIN}\n{body}\n{_END}{tail}", figures.result())
    page.write_text(written, encoding="utf-8")

"""`make whole`: traces on real components, with Karpenter's controller and with Dovetail.

A run that was played in this state of the checkout is not played again: its figures are in
.build/whole, a JSON file each.
"""

import argparse
import dataclasses
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from infra.local.demo.children import ROOT
from infra.local.demo.problem import Problem
from tests.benchmarks.report import machine, markdown
from tests.real.build import build_cluster, minors, say
from tests.real.table import git_state
from tests.weeks.bound import bounds_of
from tests.weeks.drawn import DRAWN, SHORT
from tests.weeks.meter import Played, Waits
from tests.weeks.traces import HOUR, Trace
from tests.whole.measuring import Measured
from tests.whole.playing import SYSTEMS, Play, play
from tests.whole.worlds import build_controller

_CACHE: Final = ROOT / ".build" / "whole"
_HEADS: Final = (
    *("trace", "who", "$ (bounds)", "node-hours, most at once, launched"),
    *("bound p50, p95 s", "running p50, p95 s", "again p50, p95 s", "evicted, young"),
    *("EC2 calls", "Kubernetes calls, writes", "CPU s", "MiB", "left: nodes, $/h", "load"),
)
_DETAILS: Final = ("trace", "who", "what", "how often")


def main() -> int:
    """Play what has not been played, print two tables."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _end)
    try:
        traces = [_drawn(name, options.seconds) for name in options.traces]
        program, controller = build_cluster(options.minor), build_controller()
        runs = list(_runs(traces, options, program, controller))
    except Problem as problem:
        sys.stderr.write(f"tests.whole: {problem}\n")
        return 2
    sys.stdout.write(_page(runs))
    return 0


def _end(*_: object) -> None:
    raise KeyboardInterrupt


def _drawn(name: str, seconds: float) -> Trace:
    """Return a trace of a name as `bursts-1`, cut where it is to end."""
    draws = {draw.__name__: draw for draw in (*SHORT, *DRAWN)}
    kind, _, seed = name.rpartition("-")
    if kind not in draws or not seed.isdecimal():
        raise Problem(f"TRACE={name}: name one of {', '.join(draws)} and a seed, as bursts-1")
    trace = draws[kind](int(seed))
    last = min(seconds or trace.seconds, trace.seconds)
    kept = tuple(change for change in trace.changes if change.second < last)
    known = {change.workload for change in kept}
    return dataclasses.replace(
        trace,
        name=name,
        hours=last / HOUR,
        changes=kept,
        workloads=tuple(one for one in trace.workloads if one.name in known),
    )


def _runs(
    traces: Iterable[Trace], options: argparse.Namespace, program: Path, controller: Path
) -> Iterator[Measured]:
    state = git_state()
    for trace in traces:
        bounds = bounds_of(trace)
        for run in range(1, options.runs + 1):
            for system in options.systems:
                boots = "-drawn" if options.drawn_boots else ""
                name = f"{trace.name}-{trace.seconds:.0f}-{options.after}{boots}-{system}-{run}"
                path = _CACHE / f"{name}.json"
                known = _read(path)
                if known is not None and known.state == state:
                    yield known
                    continue
                say(f"{name}: about {trace.seconds / 60 + 2:.0f} min")
                seed = int(trace.name.rpartition("-")[2]) if options.drawn_boots else None
                logs = _CACHE / "logs" / name
                asked = Play(state, trace, system, run, options.after, bounds, logs, seed)
                measured = play(asked, program, controller)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(msgspec.json.format(msgspec.json.encode(measured)) + b"\n")
                for problem in measured.problems:
                    say(f"  {problem}")
                yield measured


def _read(path: Path) -> Measured | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Measured)
    except (FileNotFoundError, msgspec.ValidationError):
        return None


def _page(runs: Sequence[Measured]) -> str:
    """Return the medians of the runs, and what was called and evicted in the first of each."""
    sets: dict[tuple[str, str], list[Measured]] = {}
    for run in runs:
        sets.setdefault((run.trace, run.system), []).append(run)
    rows = [_row(found) for found in sets.values()]
    details = [row for found in sets.values() for row in _details(found[0])]
    tables = (markdown(_HEADS, rows), markdown(_DETAILS, details))
    return "\n".join([f"{machine()}\n", *tables[0], "", *tables[1], ""])


def _row(runs: Sequence[Measured]) -> tuple[str, ...]:
    def median(figure: Callable[[Measured], float], digits: int = 0) -> str:
        return f"{statistics.median(map(figure, runs)):.{digits}f}"

    def waits(kind: Callable[[Played], Waits]) -> str:
        half = median(lambda run: kind(run.played).half, 1)
        return f"{half}, {median(lambda run: kind(run.played).most, 1)}"

    first = runs[0]
    nodes = (
        median(lambda run: run.played.node_hours, 2),
        median(lambda run: run.played.most_nodes),
        median(lambda run: run.played.launched),
    )
    evicted = median(lambda run: run.played.evicted), median(lambda run: run.played.young)
    asked = median(lambda run: sum(run.kube_calls.values())), median(lambda run: run.kube_writes)
    left = median(lambda run: run.left_nodes), median(lambda run: run.left_dollars_per_hour, 2)
    bounds = ", ".join(f"{bound:.3f}" for bound in first.bounds)
    return (
        f"{first.trace}, {first.seconds:.0f} s × {len(runs)}",
        first.system,
        f"{median(lambda run: run.played.dollars, 3)} ({bounds})",
        ", ".join(nodes),
        waits(lambda played: played.bound),
        waits(lambda played: played.running),
        waits(lambda played: played.again),
        ", ".join(evicted),
        median(lambda run: run.ec2_calls),
        ", ".join(asked),
        median(lambda run: run.played.cpu_seconds),
        ", ".join(f"{group} {mib:.0f}" for group, mib in first.memory_mib.items()),
        ", ".join(left),
        median(lambda run: run.load, 1),
    )


def _details(run: Measured) -> Iterator[tuple[str, ...]]:
    parts: Mapping[str, Mapping[str, float]] = {
        "AWS": run.played.calls,
        "Kubernetes": run.kube_calls,
        "evicted": run.evictions,
        "CPU s": run.cpu_seconds,
        "$": dataclasses.asdict(run.played.spent),
    }
    for what, counts in parts.items():
        text = ", ".join(
            f"{name} {count:.2f}" if what == "$" else f"{name} {count:.0f}"
            for name, count in counts.items()
        )
        yield run.trace, run.system, what, text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.whole", description=__doc__)
    add = parser.add_argument
    add("traces", nargs="*", default=["bursts-1"], help="trace and seed, as bursts-1")
    add("--systems", nargs="*", default=SYSTEMS, choices=SYSTEMS)
    add("--runs", type=int, default=1, help="how often each is played")
    add("--seconds", type=float, default=0, help="play only the first so many")
    add("--after", default="30s", help="consolidateAfter of the NodePool")
    add("--drawn-boots", action="store_true", help="instances boot as in virtual time: 20 to 90 s")
    add("--minor", default=minors()[-1], help=f"of Kubernetes: one of {', '.join(minors())}")
    return parser


if __name__ == "__main__":
    sys.exit(main())

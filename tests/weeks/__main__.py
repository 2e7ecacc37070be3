"""`make weeks`: what traces cost over time, how long pods wait and how often they are evicted.

Karpenter's results of the traces of a seed are kept beside this file, those of the traces drawn by
the commit in .build/weeks; one is used as long as trace, NodePool and program are the same. When
the world changes, delete them.
"""

import argparse
import dataclasses
import functools
import multiprocessing
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Final

from tests.benchmarks.report import machine, markdown
from tests.peers.sides import build_karpenter
from tests.weeks.bound import Bounds, bounds_of
from tests.weeks.drawn import DRAWN, SHORT, drawn_by
from tests.weeks.meter import Played
from tests.weeks.plays import Asked, dovetail, karpenter
from tests.weeks.published import published
from tests.weeks.traces import Trace

_BESIDE: Final = Path(__file__).with_name("kept")
_BUILT: Final = Path(__file__).parents[2] / ".build" / "weeks"
_PAGE: Final = """\
# Dovetail beside Karpenter, over days

{means}

Made by `make weeks`. {machine}

One cluster for a day (*quiet* and *nightly*: a week), in virtual time: the same world for both,
Karpenter v1.14.1 with all its controllers, unchanged, one NodePool with Karpenter's default budgets
and `consolidateAfter: {after}`. What is played, and what the columns mean, is
[there](../../tests/weeks/README.md). Single decisions of both are compared [beside](peers.md).

{table}
"""
_HEADS: Final = (
    *("trace (bounds, $)", "who", "$", "÷ bounds", "node-hours, most, launched"),
    *("bound p50, p95 s", "running p50, p95 s", "again p95 s", "evicted, young", "CPU s"),
    "$ booting, waiting, left, unused, used",
)


def main() -> int:
    """Play the traces, print the table and the ratios."""
    parser = argparse.ArgumentParser(prog="tests.weeks", description=__doc__)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="all when none is given")
    parser.add_argument("--seed", type=int, default=1, help="of the traces that are drawn")
    parser.add_argument("--after", default="30s", help="consolidateAfter of the NodePool")
    parser.add_argument("--pods", type=Path, help="list of pods of the published trace")
    parser.add_argument("--alone", action="store_true", help="without Karpenter, which needs Go")
    parser.add_argument("--write", type=Path, metavar="FILE", help="a page to write")
    given = parser.parse_args()
    program = None if given.alone else build_karpenter()
    known = list(_known(given.traces, given.seed, given.after, given.pods))
    further = [] if given.traces else list(_further(given.after))
    if not known:
        names = ", ".join(draw.__name__ for draw in (*DRAWN, *SHORT))
        parser.error(f"no trace of these names: use {names}, or published with --pods")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        begun = [
            (
                asked,
                pool.submit(bounds_of, asked.trace),
                pool.submit(dovetail, asked),
                pool.submit(karpenter, asked, program) if program is not None else None,
            )
            for asked in (*known, *further)
        ]
        rows: list[tuple[str, ...]] = []
        ratios: list[tuple[float, float]] = []
        for asked, bounds, ours, theirs in begun:
            _add(asked, bounds.result(), ours, theirs, rows, ratios)
    means = [
        f"**In {len(part)} {said} traces, Dovetail costs {dollars:.3f} of what Karpenter costs and "
        f"evicts {evictions:.2f} of the pods, in the mean.**"
        for said, part in (("drawn", ratios[: len(known)]), ("further", ratios[len(known) :]))
        if part
        for dollars, evictions in [map(statistics.mean, zip(*part, strict=True))]
    ]
    table = "\n".join(markdown(_HEADS, rows))
    page = _PAGE.format(
        means=" ".join(means),
        machine=machine(),
        after=given.after,
        table=table,
    )
    if given.write:
        given.write.write_text(page, encoding="utf-8")
    sys.stdout.write(page)
    return 0


def _known(names: Sequence[str], seed: int, after: str, pods: Path | None) -> Iterator[Asked]:
    for draw in (*DRAWN, *SHORT):
        if draw.__name__ in names or (not names and draw in DRAWN):
            yield Asked(draw(seed), seed, after, _BESIDE)
    if pods is not None and (not names or "published" in names):
        for gpus in (False, True):
            yield Asked(published(pods, seed, gpus=gpus), seed, after, _BUILT)


def _further(after: str) -> Iterator[Asked]:
    """Yield three traces that nobody chose: the commit draws them."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    for trace, seed in drawn_by(commit):
        yield Asked(trace, seed, after, _BUILT)


def _add(
    asked: Asked,
    bounds: Bounds,
    ours: Future[Played],
    theirs: Future[Played] | None,
    rows: list[tuple[str, ...]],
    ratios: list[tuple[float, float]],
) -> None:
    """Add the rows of a trace, and its dollars and evictions as parts of Karpenter's."""
    row = functools.partial(_row, asked.trace, bounds)
    mine = ours.result()
    rows.append(row("Dovetail", mine))
    if theirs is not None:
        its = theirs.result()
        rows.append(row("Karpenter", its))
        ratios.append((mine.dollars / its.dollars, mine.evicted / max(its.evicted, 1)))
    sys.stderr.write(f"{asked.trace.name}: {asked.trace.said}\n")


def _row(trace: Trace, bounds: Bounds, who: str, played: Played) -> tuple[str, ...]:
    return (
        f"{trace.name} ({', '.join(f'{bound:.2f}' for bound in bounds)})",
        who,
        f"{played.dollars:.2f}",
        ", ".join(f"{played.dollars / bound:.2f}" for bound in bounds),
        f"{played.node_hours:.0f}, {played.most_nodes}, {played.launched}",
        *(f"{waits.half:.1f}, {waits.most:.1f}" for waits in (played.bound, played.running)),
        f"{played.again.most:.1f}",
        f"{played.evicted}, {played.young}",
        f"{played.cpu_seconds:.0f}",
        ", ".join(f"{part:.2f}" for part in dataclasses.astuple(played.spent)),
    )


if __name__ == "__main__":
    sys.exit(main())

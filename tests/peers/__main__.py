"""Dovetail and the real Karpenter on the same pods and the same catalogue.

`make peers` runs all cases and writes docs/evidence/peers.md; `make peers CASES="kmix topo"` runs
some and prints them only; `make peers DIR=folder` compares the NodePools of a folder and writes
their section alone.
"""

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from infra.local.demo.problem import Problem as CannotRun
from shared.packing.problem import PackingSettings
from tests.benchmarks.packing.workloads import PLAIN
from tests.peers.answers import Answer
from tests.peers.cases import FAMILIES, capped
from tests.peers.judge import judge, kept_preferences
from tests.peers.leaving import half, without_leaving
from tests.peers.pools import compared_all, section, section_of, with_section
from tests.peers.problems import Problem
from tests.peers.sides import (
    ask_dovetail,
    ask_karpenter,
    build_karpenter,
    consolidate_dovetail,
    consolidate_karpenter,
    stream_dovetail,
    stream_karpenter,
)

_SIZES: Final[dict[str, tuple[int, ...]]] = {
    "S400": (400,),
    "S100": (100,),
    "S10": (10,),
    "kmix": (100, 1_000, 10_000),
    "skew": (1_000, 10_000),
    "vmlike": (100, 1_000, 10_000),
    "unique": (2_000,),
    "constr": (1_000,),
    "gpumix": (1_000,),
    "topo": (100, 1_000),
    "topo-3-zones": (1_000, 10_000),
    "topo-linear": (100, 1_000, 5_000),
    "spread": (1_000,),
    "soft-spread": (1_000,),
    "soft-apart": (1_000,),
}
_CAPPED: Final = (("S400", 400), ("kmix", 1_000), ("kmix", 10_000))
# Pods that arrive so many at a time; half of the pods leave.
_STREAMS: Final = (("kmix", 10_000), ("skew", 10_000))
_BATCHES: Final = (10, 30, 100, 1_000)
_LEAVING: Final = (("S400", 400), ("kmix", 1_000), ("skew", 1_000))
# Above so many pods Karpenter takes half a minute.
_MANY_PODS: Final = 5_000
_HEADINGS: Final = (
    *("case", "pods", "bound $/h"),
    *("Karpenter: $/h, over %, nodes, ms", "Dovetail: $/h, over %, nodes, ms"),
    *("plain: $/h, over %, nodes", "price ÷", "CPU ÷", "bound, ms"),
    *("preferences kept, K / D", "broken, K / D"),
)
_CONSOLIDATION_HEADINGS: Final = (
    *("case", "pods that stay", "machines of", "before: $/h, nodes", "bound $/h"),
    *("Karpenter: $/h, over %, nodes, moves", "Dovetail: $/h, over %, nodes, moves"),
    *("moves to Karpenter's price", "÷ Karpenter's", "s, K / D", "broken, K / D"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What both sides made of one problem.

    Attributes:
        name: Of the case.
        bound: The best that was proved, in millionths of a dollar per hour.
        karpenter: The answer of median price.
        plain: Dovetail's with settings that weigh the price alone.
        cpu_millis: Median CPU time, Karpenter's and Dovetail's.
    """

    name: str
    problem: Problem
    bound: int
    karpenter: Answer
    dovetail: Answer
    plain: Answer
    cpu_millis: tuple[float, float]

    def cells(self) -> list[str]:
        """Return the row as text."""
        sides = (self.karpenter, self.dovetail)
        figures = [
            f"{_bought(side, self.bound)}, {millis:,.1f}"
            for side, millis in zip(sides, self.cpu_millis, strict=True)
        ]
        preferences = [kept_preferences(self.problem, side) for side in sides]
        kept = [f"{kept:,} of {total:,}" if total else "–" for kept, total in preferences]
        return [
            self.name,
            f"{self.problem.pods:,}",
            f"{self.bound / 1e6:,.4f}",
            *figures,
            _bought(self.plain, self.bound),
            f"{self.price_ratio:.3f}",
            f"{self.cpu_ratio:.2f}",
            f"{self.dovetail.bound_millis:,.0f}" if self.dovetail.bound_millis else "–",
            " / ".join(kept),
            " / ".join(_told(broken) for broken in self.broken()),
        ]

    @property
    def price_ratio(self) -> float:
        """Dovetail's price by Karpenter's."""
        return self.dovetail.price_micros_per_hour / self.karpenter.price_micros_per_hour

    @property
    def cpu_ratio(self) -> float:
        """Dovetail's CPU time by Karpenter's."""
        return self.cpu_millis[1] / self.cpu_millis[0]

    def broken(self) -> tuple[Counter[str], Counter[str]]:
        """Return the rules that Karpenter and Dovetail break."""
        return judge(self.problem, self.karpenter), judge(self.problem, self.dovetail)


def result(rows: Sequence[Row]) -> str:
    """Return what both sides made of all problems, in one line."""
    told = []
    for what, ratios in (
        ("price", [row.price_ratio for row in rows]),
        ("CPU time", [row.cpu_ratio for row in rows]),
    ):
        told.append(
            f"{what} is {min(ratios):.2f} to {max(ratios):.2f} of Karpenter's "
            f"(median {statistics.median(ratios):.2f})"
        )
    sides = zip(*(row.broken() for row in rows), strict=True)
    karpenter, dovetail = (sum(map(bool, side)) for side in sides)
    return (
        f"In {len(rows)} cases Dovetail's {' and its '.join(told)}. "
        f"Karpenter breaks rules of pods in {karpenter} of them, Dovetail in {dovetail}"
    )


def _bought(answer: Answer, bound: int) -> str:
    price = answer.price_micros_per_hour
    left = f" ({len(answer.left_out)} left out)" if answer.left_out else ""
    return f"{price / 1e6:,.4f}, {100 * (price / bound - 1):.1f}, {len(answer.machines):,}{left}"


def _told(broken: Counter[str]) -> str:
    return "; ".join(f"{name}: {count}" for name, count in sorted(broken.items())) or "nothing"


def measure(program: Path, problem: Problem, repetitions: int) -> Row:
    """Ask both sides in turn, so often each."""
    times = 1 if problem.pods > _MANY_PODS else repetitions
    theirs = ask_karpenter(program, problem, times)
    ours = ask_dovetail(problem, PackingSettings(), repetitions)
    (plain,) = ask_dovetail(problem, PLAIN)
    by_price = sorted(theirs, key=lambda answer: answer.price_micros_per_hour)
    return Row(
        name=problem.name,
        problem=problem,
        bound=max(ours[0].bound_micros_per_hour, plain.bound_micros_per_hour),
        karpenter=by_price[len(by_price) // 2],
        dovetail=ours[0],
        plain=plain,
        cpu_millis=(
            statistics.median(answer.cpu_millis for answer in theirs),
            statistics.median(answer.cpu_millis for answer in ours),
        ),
    )


def measure_stream(program: Path, problem: Problem, batch: int, seed: int) -> Row:
    """Let the pods arrive in random order, so many at a time; CPU times are those of one batch."""
    arrivals = [pod for workload in problem.workloads for pod in workload.pods]
    random.Random(seed).shuffle(arrivals)
    theirs = stream_karpenter(program, problem, arrivals, batch)
    ours = stream_dovetail(problem, arrivals, batch)
    return Row(
        name=f"{problem.name}, batches of {batch:,}",
        problem=problem,
        bound=_bound(problem),
        karpenter=theirs,
        dovetail=ours,
        plain=stream_dovetail(problem, arrivals, batch, PLAIN),
        cpu_millis=(theirs.cpu_millis, ours.cpu_millis),
    )


def _bound(problem: Problem) -> int:
    answers = (*ask_dovetail(problem), *ask_dovetail(problem, PLAIN))
    return max(answer.bound_micros_per_hour for answer in answers)


def consolidations(program: Path, problem: Problem, seed: int) -> Iterator[list[str]]:
    """Yield a row for each side's machines, half of whose pods have left."""
    smaller, names = half(problem, seed)
    bound = _bound(smaller)
    planned = {
        "Karpenter": ask_karpenter(program, problem)[0],
        "Dovetail": ask_dovetail(problem)[0],
    }
    for side, plan in planned.items():
        standing = without_leaving(plan, names)
        theirs = consolidate_karpenter(program, smaller, standing)
        ours = consolidate_dovetail(smaller, standing)
        reached = ours.moved_until(theirs.answer.price_micros_per_hour)
        both = (theirs, ours)
        yield [
            problem.name,
            f"{smaller.pods:,}",
            side,
            f"{plan.price_micros_per_hour / 1e6:,.4f}, {len(standing):,}",
            f"{bound / 1e6:,.4f}",
            *(f"{_bought(done.answer, bound)}, {done.moved:,}" for done in both),
            "–" if reached is None else f"{reached:,}",
            "–" if reached is None or not theirs.moved else f"{reached / theirs.moved:.2f}",
            " / ".join(f"{done.answer.cpu_millis / 1e3:.1f}" for done in both),
            " / ".join(_told(judge(smaller, done.answer)) for done in both),
        ]


def problems(chosen: Sequence[str], seed: int, most_pods: int) -> list[Problem]:
    """Return the problems of some families, or of all."""
    found = [
        FAMILIES[name](count, seed)
        for name, sizes in _SIZES.items()
        for count in sizes
        if count <= most_pods and (not chosen or name in chosen)
    ]
    for name, count in _CAPPED:
        if count <= most_pods and (not chosen or name in chosen):
            found.append(capped(FAMILIES[name](count, seed)))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(_SIZES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-pods", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", type=Path, help="a document to write")
    parser.add_argument("--manifests", type=Path, help="a folder of NodePools: only these")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.cases) - set(_SIZES))
    if unknown:
        parser.error(f"{', '.join(unknown)}: use some of {', '.join(_SIZES)}")
    try:
        program = build_karpenter()
    except CannotRun as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if given.manifests:
        return _compare_pools(program, given)
    began = time.monotonic()

    def tell(case: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:4.0f} s  {case}\n")

    tables = list(_tables(program, given, tell))
    if given.write:
        kept = section_of(given.write.read_text(encoding="utf-8"))
        document = with_section(_document(tables, time.monotonic() - began), kept)
        given.write.write_text(document, encoding="utf-8")
    else:
        sys.stdout.write("\n".join(filter(None, tables)))
    return 0


def _compare_pools(program: Path, given: argparse.Namespace) -> int:
    """Print what both sides make of the NodePools of a folder, or write it; 1 if they differ."""
    made, too_much = section(*compared_all(program, given.manifests, given.seed))
    if given.write:
        document = with_section(given.write.read_text(encoding="utf-8"), made)
        given.write.write_text(document, encoding="utf-8")
    else:
        sys.stdout.write(made)
    sys.stderr.write("".join(f"{text}\n" for text in too_much))
    return 1 if too_much else 0


def _tables(program: Path, given: argparse.Namespace, tell: Callable[[str], None]) -> Iterator[str]:
    decided: list[Row] = []
    for problem in problems(given.cases, given.seed, given.most_pods):
        tell(f"{problem.name} {problem.pods:,}")
        decided.append(measure(program, problem, given.repetitions))
    yield f"**{result(decided)}.**\n" if decided else ""
    yield _table(_HEADINGS, [row.cells() for row in decided])
    streamed = []
    for problem in _chosen(_STREAMS, given):
        for batch in _BATCHES:
            tell(f"{problem.name} {problem.pods:,}, batches of {batch:,}")
            streamed.append(measure_stream(program, problem, batch, given.seed).cells())
    yield _table(_HEADINGS, streamed)
    consolidated: list[list[str]] = []
    for problem in _chosen(_LEAVING, given):
        tell(f"{problem.name} {problem.pods:,}, half of which leave")
        consolidated += consolidations(program, problem, given.seed)
    yield _table(_CONSOLIDATION_HEADINGS, consolidated)


def _chosen(cases: Sequence[tuple[str, int]], given: argparse.Namespace) -> list[Problem]:
    return [
        FAMILIES[name](count, given.seed)
        for name, count in cases
        if count <= given.most_pods and (not given.cases or name in given.cases)
    ]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([*lines, ""])


def _document(tables: Sequence[str], seconds: float) -> str:
    told, decisions, streams, consolidated = tables
    return f"""# Dovetail beside Karpenter

{told}
What both cost over days, with evictions and waits, is on [a page of its own](weeks.md). Here each
takes one decision.

Made by `make peers` in {seconds / 60:.0f} minutes, {datetime.now(UTC):%Y-%m-%d}: the code of
Karpenter v1.14.1, unchanged, decides for the same pods with the same catalogue. Each type has what
is left once four small DaemonSets run. A request costs what its cheapest option costs; of several
runs of Karpenter, which differ by the UIDs of the pods, the one of median price is shown. CPU time
is that of the whole decision, in a running process, up to the plan; the bound is proved
afterwards, and its time has a column of its own. *plain* weighs the price alone
(`max_node_vcpus` 0, one pool, no fee). The bound is the best that was proved in the run; *price ÷*
and *CPU ÷* are Dovetail's divided by Karpenter's.

{decisions}
## Streams

The pods arrive in random order, the same for both, so many at a time; what is launched is ready at
once and stays. ms is the CPU time of one batch, the bound that of all pods at once.

{streams}
## Consolidation

Half of the pods leave; each side consolidates the machines that one of them had planned, all at
once if it likes, until it finds nothing. A move is a pod that must start on another node; s is the
CPU time of all decisions.

{consolidated}"""


if __name__ == "__main__":
    sys.exit(main())

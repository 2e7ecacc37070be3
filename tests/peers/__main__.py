"""Dovetail and the real Karpenter on the same pods and the same catalogue; writes docs/peers.md.

`make peers` runs all cases; `make peers CASES="kmix topo"` some, and prints them only.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
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
from tests.peers.problems import Problem
from tests.peers.sides import ask_dovetail, ask_karpenter, build_karpenter

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
# Above so many pods Karpenter takes half a minute.
_MANY_PODS: Final = 5_000
_HEADINGS: Final = (
    *("case", "pods", "bound $/h"),
    *("Karpenter: $/h, over %, nodes, ms", "Dovetail: $/h, over %, nodes, ms"),
    *("plain: $/h, over %, nodes", "price ÷", "CPU ÷", "preferences kept, K / D", "broken, K / D"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What both sides made of one problem.

    Attributes:
        karpenter: The answer of median price.
        plain: Dovetail's with settings that weigh the price alone.
        cpu_millis: Median CPU time, Karpenter's and Dovetail's.
    """

    problem: Problem
    karpenter: Answer
    dovetail: Answer
    plain: Answer
    cpu_millis: tuple[float, float]

    @property
    def bound(self) -> int:
        """The best that was proved, in millionths of a dollar per hour."""
        return max(self.dovetail.bound_micros_per_hour, self.plain.bound_micros_per_hour)

    def cells(self) -> list[str]:
        """Return the row as text."""
        sides = (self.karpenter, self.dovetail)
        prices = [side.price_micros_per_hour for side in sides]
        figures = [
            f"{self._bought(side)}, {millis:,.1f}"
            for side, millis in zip(sides, self.cpu_millis, strict=True)
        ]
        preferences = [kept_preferences(self.problem, side) for side in sides]
        kept = [f"{kept:,} of {total:,}" if total else "–" for kept, total in preferences]
        return [
            self.problem.name,
            f"{self.problem.pods:,}",
            f"{self.bound / 1e6:,.4f}",
            *figures,
            self._bought(self.plain),
            f"{prices[1] / prices[0]:.3f}",
            f"{self.cpu_millis[1] / self.cpu_millis[0]:.2f}",
            " / ".join(kept),
            " / ".join(_told(judge(self.problem, side)) for side in sides),
        ]

    def _bought(self, answer: Answer) -> str:
        price = answer.price_micros_per_hour
        left = f" ({len(answer.left_out)} left out)" if answer.left_out else ""
        over = 100 * (price / self.bound - 1)
        return f"{price / 1e6:,.4f}, {over:.1f}, {len(answer.machines):,}{left}"


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
        problem=problem,
        karpenter=by_price[len(by_price) // 2],
        dovetail=ours[0],
        plain=plain,
        cpu_millis=(
            statistics.median(answer.cpu_millis for answer in theirs),
            statistics.median(answer.cpu_millis for answer in ours),
        ),
    )


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
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.cases) - set(_SIZES))
    if unknown:
        parser.error(f"{', '.join(unknown)}: use some of {', '.join(_SIZES)}")
    try:
        program = build_karpenter()
    except CannotRun as error:
        sys.stderr.write(f"{error}\n")
        return 1
    lines = [f"| {' | '.join(_HEADINGS)} |", f"|{' --- |' * len(_HEADINGS)}"]
    began = time.monotonic()
    for problem in problems(given.cases, given.seed, given.most_pods):
        sys.stderr.write(f"{time.monotonic() - began:4.0f} s  {problem.name} {problem.pods:,}\n")
        lines.append(f"| {' | '.join(measure(program, problem, given.repetitions).cells())} |")
    if given.write:
        given.write.write_text(_document(lines, time.monotonic() - began), encoding="utf-8")
    else:
        sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _document(lines: Sequence[str], seconds: float) -> str:
    return f"""# Dovetail beside Karpenter

Made by `make peers` in {seconds / 60:.0f} minutes, {datetime.now(UTC):%Y-%m-%d}: the code of
Karpenter v1.14.1, unchanged, decides for the same pods with the same catalogue. Each type has what
is left once four small DaemonSets run. A request costs what its cheapest option costs; of several
runs of Karpenter, which differ by the UIDs of the pods, the one of median price is shown. CPU time
is that of the whole decision, in a process that lives. *plain* weighs the price alone
(`max_node_vcpus` 0, one pool, no fee). The bound is the best that was proved in the run; *price ÷*
and *CPU ÷* are Dovetail's by Karpenter's.

{chr(10).join(lines)}
"""


if __name__ == "__main__":
    sys.exit(main())

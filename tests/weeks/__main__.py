"""`make weeks`: what traces cost over time, how long pods wait and how often they are evicted.

Karpenter's results are kept in .build/weeks by trace, NodePool and program.
"""

import argparse
import hashlib
import logging
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tests.benchmarks.report import machine, markdown
from tests.peers.sides import build_karpenter
from tests.weeks import karpenter
from tests.weeks.bound import least_micros
from tests.weeks.drawn import DRAWN
from tests.weeks.meter import Played, measured
from tests.weeks.published import published
from tests.weeks.traces import Trace
from tests.weeks.world import WeeksWorld, instance_types, node_pool

_KEPT: Final = Path(__file__).parents[2] / ".build" / "weeks"
_HEADS: Final = (
    *("trace", "who", "$", "÷ bound", "node-hours, most, launched"),
    *("bound p50, p95 s", "running p50, p95 s", "again p95 s", "evicted, young", "CPU s"),
)


def main() -> int:
    """Play the traces, print the table and the ratios."""
    parser = argparse.ArgumentParser(prog="tests.weeks", description=__doc__)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="all when none is given")
    parser.add_argument("--seed", type=int, default=1, help="of the traces that are drawn")
    parser.add_argument("--after", default="30s", help="consolidateAfter of the NodePool")
    parser.add_argument("--pods", type=Path, help="list of pods of the published trace")
    parser.add_argument("--alone", action="store_true", help="without Karpenter, which needs Go")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    program = None if given.alone else build_karpenter()
    rows, ratios = [], []
    for trace in _traces(given.traces, given.seed, given.pods):
        bound = least_micros(trace, instance_types(trace.families)) / 1e6
        ours = _dovetail(trace, given.seed, given.after)
        rows.append(row(trace, bound, "Dovetail", ours))
        if program is not None:
            theirs = _karpenter(trace, given.seed, given.after, program)
            rows.append(row(trace, bound, "Karpenter", theirs))
            ratios.append((ours.dollars / theirs.dollars, ours.evicted / max(theirs.evicted, 1)))
        sys.stderr.write(f"{trace.name}: {trace.said}\n")
    if not rows:
        known = ", ".join(draw.__name__ for draw in DRAWN)
        parser.error(f"no trace of these names: use {known}, or published with --pods")
    sys.stdout.write("\n".join([machine(), "", *markdown(_HEADS, rows), ""]))
    if ratios:
        dollars, evictions = (statistics.mean(column) for column in zip(*ratios, strict=True))
        sys.stdout.write(f"mean: dollars {dollars:.3f}, evictions {evictions:.2f} of Karpenter's\n")
    return 0


def _traces(names: Sequence[str], seed: int, pods: Path | None) -> Iterator[Trace]:
    yield from (draw(seed) for draw in DRAWN if not names or draw.__name__ in names)
    if pods is not None and (not names or "published" in names):
        yield from (published(pods, seed, gpus=gpus) for gpus in (False, True))


def _dovetail(trace: Trace, seed: int, after: str) -> Played:
    began = time.process_time()
    world = WeeksWorld(trace, seed, after)
    world.play()
    return measured(world, time.process_time() - began)


def _karpenter(trace: Trace, seed: int, after: str, program: Path) -> Played:
    stamp = program.with_suffix(".stamp").read_text("ascii")
    asked = f"{trace}{seed}{node_pool(trace.families, after)}{stamp}"
    kept = _KEPT / f"{hashlib.sha256(asked.encode()).hexdigest()[:20]}.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=Played)
    world = karpenter.KarpenterWorld(trace, seed, after)
    said = karpenter.play(world, program)
    played = measured(world, float(said["cpuSeconds"]))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(msgspec.json.encode(played))
    return played


def row(trace: Trace, bound: float, who: str, played: Played) -> tuple[str, ...]:
    """Return the row of a trace and an autoscaler.

    Args:
        bound: In dollars.
    """
    return (
        f"{trace.name} (${bound:.2f})",
        who,
        f"{played.dollars:.2f}",
        f"{played.dollars / bound:.2f}",
        f"{played.node_hours:.0f}, {played.most_nodes}, {played.launched}",
        *(
            f"{waits.quantile(0.5):.1f}, {waits.quantile(0.95):.1f}"
            for waits in (played.bound, played.running)
        ),
        f"{played.again.quantile(0.95):.1f}",
        f"{played.evicted}, {played.young}",
        f"{played.cpu_seconds:.0f}",
    )


if __name__ == "__main__":
    sys.exit(main())

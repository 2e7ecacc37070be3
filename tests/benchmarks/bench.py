"""One run, one table: what is bought, how fast.

Run as `python -m tests.benchmarks.bench [--quick] [--write FILE]`. What is done is told on standard
error; a bar that is not met is told in the table, never by the exit code: timings are noisy.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks import cold_import
from tests.benchmarks.cold_start import cold_rows
from tests.benchmarks.packing import plans, price_table, procedures, streams
from tests.benchmarks.planning import bounded, tenants
from tests.benchmarks.planning.rows import decision_rows
from tests.benchmarks.report import Row, machine, markdown, summary, table
from tests.benchmarks.timing import reference_milliseconds

_NOTES: Final = """
Workloads are synthetic and seeded, none is a trace; prices are those of the embedded catalogue,
some of them interpolated. Types: c, m and r of more than the second generation, amd64, no metal,
on demand ({types} types; `constr` adds arm64, `gpumix` machines with Nvidia GPUs), daemons of 280m
cpu, 320 MiB and 4 pods on each node.

* **bound**: no plan can cost less; printed by the planner with each plan, from prices of resources,
  and where that leaves more than 0.8 %, from [patterns](../plan.md#the-lower-bound). For `topo` it
  keeps of all rules only those that keep pods apart on hosts; for streams it is the bound of all
  pods at once. **gap**: percent over it.
* **ms**: CPU time on one core, the plan's checker included; median of up to nine runs. For streams:
  of one batch, in the mean. Cold rows: the whole process, from the interpreter's start; the first
  two without site-packages, the command as people start it.
* **plain**: node size uncapped, by the cheapest pool alone (k = 1), no fee per node. **default**:
  at most 96 vCPUs a node, by the cheapest usable pool (spot: the mean of 15).
  Under plain settings the plan under the default ones is made as well, unless a bound shows that it
  costs no less; the cheaper of the two is taken, and *ms* is the time of both.
* **batches of n**: the pods arrive in random order, n at a time; room that is left is used by those
  that come later. The packer is told what the pods that run take together. In batches of 100 and
  fewer (`small_batch_pods`) it fills free room with the pods that use up all it has, and may buy
  one node larger than needed, for at most 1 % of the running cost more (`growth_percent`). Measured
  on kmix in thirties: neither, 6.3 %; free room filled that way alone, 5.7 %; both, 4.4 %; always
  one node, 4.1 %, but then batches of 100 are 5.6 % instead of 2.6 %. If free room is valued by the
  mix that all of it holds together, and not node by node: 6.4 % instead of 6.1 %.
* A broken rule counts as a missed bar: zone and host skew, affinity, anti-affinity, each pod once
  and every option of every node large enough are looked up anew, not asked of the planner.
""".strip()


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small cases only, under a minute")
    parser.add_argument("--write", type=Path, help="file to write; prints otherwise")
    chosen = parser.parse_args()
    began = time.monotonic()
    speeds = [reference_milliseconds()]
    rows = list(_told(_rows(quick=chosen.quick)))
    told = summary(rows)
    speeds.append(reference_milliseconds())
    text = [
        "# Benchmarks",
        "",
        f"**{told}**",
        "",
        _made(speeds),
        "",
        _NOTES.format(types=len(price_table.listed())),
        "",
        *table(rows),
        "",
    ]
    # The table is on disk before the rest is measured.
    _write(text, began, chosen.write, last=chosen.quick)
    if not chosen.quick:
        _write([*text, *_beside()], began, chosen.write, last=True)
    sys.stderr.write(f"{told}\n")


def _write(text: Sequence[str], began: float, file: Path | None, *, last: bool) -> None:
    minutes = (time.monotonic() - began) / 60
    written = "\n".join(text).replace("{minutes}", f"{minutes:.1f}")
    if file is not None:
        file.write_text(written)
    elif last:
        sys.stdout.write(written)


def _beside() -> list[str]:
    return [
        "## Other seeds",
        "",
        "Best and worst of five other seeds of the cases with a bar:",
        "",
        *markdown(("case", "pods", "gap %", "ms", "bar", "met"), plans.other_seeds()),
        "",
        "## Search procedures",
        "",
        "Cases of 60 to 1,000 pods, packed again without each group of procedures:",
        "",
        *markdown(
            ("left out", "price of all %", "price of the worst case %", "CPU seconds"),
            procedures.table(),
        ),
        "",
        "## The work of one plan",
        "",
        *bounded.table(),
        "",
        "## A tenant beside others",
        "",
        *tenants.table(),
        "",
        "## Cold imports",
        "",
        "What a function imports before its first event, fresh processes:",
        "",
        cold_import.table(),
        "",
        "## Forwarder",
        "",
        _forwarder(),
        "",
    ]


def _made(speeds: Sequence[float]) -> str:
    return (
        f"Made by `make bench` in {{minutes}} minutes: {machine()}. A fixed piece of work took "
        f"{speeds[0]:.0f} ms of CPU time before the table and {speeds[1]:.0f} ms after it: where "
        "these are far apart other work shared the machine, and times are too long."
    )


def _forwarder() -> str:
    """Return what the benchmark of the forwarder says: its process must be a child of its own."""
    program = Path(__file__).with_name("forwarder_memory.py")
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    return ended.stdout.strip() or f"It failed: {ended.stderr.strip().splitlines()[-1]}"


def _rows(*, quick: bool) -> Iterator[Row]:
    yield from plans.plan_rows(quick=quick)
    yield from decision_rows(quick=quick)
    yield from streams.stream_rows(quick=quick)
    yield from cold_rows()


def _told(rows: Iterable[Row]) -> Iterator[Row]:
    """Pass the rows on, each told when it is there: a run takes minutes."""
    for row in rows:
        cells = row.cells()
        sys.stderr.write(f"{cells[0]} {cells[1]} {cells[3]}: {cells[5]}, bar met: {cells[-1]}\n")
        yield row


if __name__ == "__main__":
    main()

"""One run, one table: what the packer buys and how fast, beside two published procedures.

Run as `python -m tests.benchmarks.packing.bench [--quick] [--write FILE]`.
"""

import argparse
import gc
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared.packing.packer import pack
from shared.packing.problem import Packing, PackingProblem, PackingSettings
from tests.benchmarks.packing import price_table, published, streams, workloads

PLAIN = workloads.PLAIN
# Uncapped and by the cheapest pool: what the published procedures are compared with.
WALKTHROUGH = {"S400": (400, 250, 256), "S100": (100, 1000, 1024), "S10": (10, 10_000, 10_240)}
SIZES = {
    "kmix": (100, 1_000, 10_000, 100_000),
    "skew": (100, 1_000, 10_000, 100_000),
    "vmlike": (100, 1_000, 10_000, 100_000),
    "unique": (100, 1_000, 10_000),
    "constr": (1_000, 10_000),
    "gpumix": (1_000, 10_000),
}
POOLS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "constr": price_table.any_arch,
    "gpumix": price_table.with_gpus,
}
MOST_BASELINE_PODS = 10_000


def optimum(asked: PackingProblem) -> int:
    """Return the least price for pods of one class, by dynamic programming over the pods left.

    Independent of the packer: every shape is looked at, nothing is left out beforehand.
    """
    (one,) = asked.classes
    ways = []
    for shape in asked.shapes:
        fit = min(max(shape.allocatable[name], 0) // amount for name, amount in one.requests.items)
        if fit:
            ways.append((fit, shape.pools[0].price_micros_per_hour))
    least = [0]
    for n in range(1, one.count + 1):
        least.append(min(price + least[max(n - fit, 0)] for fit, price in ways))
    return least[-1]


def timed(asked: PackingProblem, runs: int = 3) -> tuple[Packing, float]:
    """Return the plan and the median CPU time of some runs, in milliseconds."""
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.process_time()
        made = pack(asked)
        times.append((time.process_time() - start) * 1000)
    return made, sorted(times)[len(times) // 2]


def row(name: str, asked: PackingProblem, settings: str, *, baselines: bool) -> str:
    """Return one line of the table."""
    made, milliseconds = timed(asked)
    bound = made.lower_bound_micros_per_hour
    pods = sum(one.count for one in asked.classes)
    cells = [name, f"{pods:,}", f"{sum(1 for one in asked.classes if one.count)}", settings]
    cells += [f"{bound / 1e6:,.4f}", f"{_over(made.cost_micros_per_hour, bound):.2f}"]
    cells += [f"{len(made.nodes)}", f"{len({node.options for node in made.nodes})}"]
    cells += [f"{milliseconds:.1f}"]
    for baseline in (published.v1, published.v06):
        if not baselines:
            cells.append("–")
            continue
        price, nodes, left_out = baseline(asked)
        note = f" ({left_out} left out)" if left_out else ""
        cells.append(f"{_over(price, bound):.1f} / {nodes}{note}")
    if made.fallback:
        cells[0] += " FALLBACK"
    return "| " + " | ".join(cells) + " |"


def _over(price: int, bound: int) -> float:
    return (price / bound - 1) * 100 if bound else 0.0


def plan_rows(*, quick: bool) -> Iterator[str]:
    """Yield the lines about single plans."""
    for name, (count, cpu, memory) in WALKTHROUGH.items():
        asked = workloads.problem(workloads.single(count, cpu, memory))
        exact = optimum(asked) / 1e6
        yield row(f"{name} (optimum ${exact:.4f})", asked, "plain", baselines=True)
    for name, sizes in SIZES.items():
        for count in sizes:
            if quick and count > 10_000:
                continue
            rows = workloads.WORKLOADS[name](count)
            asked = workloads.problem(rows, POOLS.get(name, price_table.general))
            small = count <= MOST_BASELINE_PODS and not (name == "unique" and count > 1_000)
            yield row(name, asked, "plain", baselines=small)
    for name in ("kmix", "skew"):
        rows = workloads.WORKLOADS[name](10_000)
        asked = workloads.problem(rows, settings=PackingSettings())
        yield row(name, asked, "default", baselines=False)
        spot = workloads.problem(rows, settings=PackingSettings(), capacity_type="spot")
        yield row(name, spot, "default, spot", baselines=False)


def whole_row(count: int = 100_000) -> str:
    """Return a sentence on a plan from pods to pods: grouping, packing and binding included."""
    rows = workloads.kmix(count)
    times = []
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        asked = workloads.problem(rows)
        made = pack(asked)
        queues = {found[0]: [] for found in workloads.classes_of(rows)}  # type: ignore[var-annotated]
        for number, one in enumerate(rows):
            queues[one].append(number)
        waiting = list(queues.values())
        bound = [
            [waiting[k].pop() for k, n in node.contents for _ in range(n)] for node in made.nodes
        ]
        times.append((time.process_time() - start) * 1000)
    assert sum(map(len, bound)) == count
    return (
        f"{count:,} kmix pods from list to bound pods, grouping and binding included: "
        f"{sorted(times)[1]:.0f} ms."
    )


def stream_rows(*, quick: bool) -> Iterator[str]:
    """Yield the lines about pods that arrive in batches."""
    pods = 2_000 if quick else 10_000
    named = {
        "plain": replace(PLAIN, leftover_value_percent=0),
        "default leftover value (90 %)": PLAIN,
        "leftover value 97 %": replace(PLAIN, leftover_value_percent=97),
    }
    for name in ("kmix", "skew"):
        rows = workloads.WORKLOADS[name](pods)
        for batch in (10, 30, 100, 1_000):
            gap, nodes = streams.run(rows, batch, streams.v1)
            yield f"| {name} | {pods:,} | {batch} | v1 | {gap:.1f} | {nodes} |"
            for settings, chosen in named.items():
                if batch > chosen.small_batch_pods and settings != "plain":
                    continue
                gap, nodes = streams.run(rows, batch, streams.ours(chosen))
                yield f"| {name} | {pods:,} | {batch} | {settings} | {gap:.1f} | {nodes} |"


def main() -> None:
    """Print the tables, or write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest cases out")
    parser.add_argument("--write", type=Path, help="file to write instead of printing")
    chosen = parser.parse_args()
    lines = [
        "# Benchmarks of the packer",
        "",
        (
            f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, "
            f"{platform.machine()}, "
            "one core, CPU time, checker "
            "included. Workloads are synthetic and seeded; the price table "
            "is the embedded one. Gap: percent over the proven lower bound. "
            "Plain: node size uncapped, "
            "by the cheapest pool (k = 1), no node fee."
        ),
        "",
        (
            "| case | pods | classes | settings | bound $/h | gap % | nodes | launch groups | ms "
            "| v1 gap % / nodes | v0.6 gap % / nodes |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *plan_rows(quick=chosen.quick),
        "",
        whole_row(),
        "",
        "Pods in batches, room left over reused; gap over the bound of the whole:",
        "",
        "| case | pods | batch | settings | gap % | nodes |",
        "|---|---|---|---|---|---|",
        *stream_rows(quick=chosen.quick),
    ]
    text = "\n".join(lines) + "\n"
    if chosen.write:
        chosen.write.write_text(text)
    else:
        print(text)  # noqa: T201 - it is what the command is for


if __name__ == "__main__":
    main()

"""Asks both sides, and returns their answers in one form."""

import gc
import json
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from shared.disruption.consolidation import consolidate
from shared.disruption.settings import SAVING_ALONE
from shared.disruption.simulate import by_price
from shared.model.plan import Plan
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from shared.planning.lower_bound import with_bound
from tests.peers.answers import Answer, Change, Consolidated, Machine, read_machines
from tests.peers.problems import Problem, Raw
from tests.peers.standing import Standing
from tests.real.build import CACHE, build

_SOURCES: Final = Path(__file__).parent / "karpenter"
# More than any cluster needs.
_MOST_CHANGES: Final = 500


def build_karpenter() -> Path:
    """Return the program that asks Karpenter, built if its sources changed.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    return build(_SOURCES, CACHE / "peer-karpenter", ["-ldflags=-s -w", "."])


def ask_karpenter(program: Path, problem: Problem, repetitions: int = 1) -> tuple[Answer, ...]:
    """Return what Karpenter decides, each time with other UIDs: they break its ties."""
    said = run(program, "decide", problem.for_karpenter(), "--repetitions", repetitions)
    return tuple(_karpenter(decision) for decision in said["decisions"])


def stream_karpenter(
    program: Path, problem: Problem, arrivals: Sequence[str], batch: int
) -> Answer:
    """Return the machines once all pods have arrived, so many at a time; CPU time of one batch."""
    asked = {**problem.for_karpenter(), "arrivals": arrivals}
    said = run(program, "stream", asked, "--batch", batch)
    return replace(_karpenter(said), cpu_millis=said["cpuMillis"] / said["batches"])


def consolidate_karpenter(
    program: Path, problem: Problem, standing: Iterable[Machine]
) -> Consolidated:
    """Return what Karpenter's consolidation makes of these machines."""
    machines = [
        {
            "pods": machine.pods,
            "options": [
                {
                    "instanceType": machine.options[0].instance_type,
                    "zone": machine.options[0].zone,
                    "capacityType": machine.options[0].capacity_type.value,
                    "priceMicros": machine.price_micros_per_hour,
                }
            ],
        }
        for machine in standing
    ]
    said = run(program, "consolidate", {**problem.for_karpenter(), "standing": machines})
    changes = (
        Change(moved=change["moved"], price_micros_per_hour=change["priceMicros"])
        for change in said["changes"]
    )
    return Consolidated(answer=_karpenter({"leftOut": {}, **said}), changes=tuple(changes))


def run(program: Path, command: str, asked: Raw, *flags: str | int) -> Any:
    """Return what the Go program answers to a problem."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        path.write_text(json.dumps(asked, separators=(",", ":")), encoding="utf-8")
        words = [str(program), command, str(path), *map(str, flags)]
        return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)


def _karpenter(said: Raw) -> Answer:
    return Answer(
        machines=read_machines(said["nodes"]),
        left_out=tuple(sorted(said["leftOut"])),
        cpu_millis=said["cpuMillis"],
    )


def ask_dovetail(
    problem: Problem, settings: PackingSettings | None = None, repetitions: int = 1
) -> tuple[Answer, ...]:
    """Return the same decision, timed several times in this process, the first time not counted.

    The snapshot is there already, as is Karpenter's: what is timed is everything after it is read,
    up to the plan. Its bound is proved afterwards, and timed by itself.
    """
    snapshot = problem.snapshot()
    decide(snapshot, settings)
    spent = []
    for _ in range(repetitions):
        gc.collect()
        began = time.process_time()
        plan = decide(snapshot, settings)
        spent.append((time.process_time() - began) * 1000)
    began = time.process_time()
    proved = with_bound(snapshot, plan)
    bound_millis = (time.process_time() - began) * 1000
    return tuple(_answer(proved, millis, bound_millis) for millis in spent)


def stream_dovetail(
    problem: Problem, arrivals: Sequence[str], batch: int, settings: PackingSettings | None = None
) -> Answer:
    """Return the same of Dovetail: each batch is a whole decision about the cluster as it is."""
    standing = Standing(problem)
    decide(standing.snapshot(), settings)
    spent, left_out = [], []
    for first in range(0, len(arrivals), batch):
        snapshot = standing.snapshot(arrivals[first : first + batch])
        began = time.process_time()
        plan = decide(snapshot, settings)
        spent.append((time.process_time() - began) * 1000)
        standing.carry_out(plan)
        left_out += [left.pod.name for left in plan.unschedulable]
    return Answer(
        machines=standing.machines(),
        left_out=tuple(left_out),
        cpu_millis=statistics.mean(spent),
    )


def consolidate_dovetail(problem: Problem, standing: Iterable[Machine]) -> Consolidated:
    """Return what Dovetail's consolidation makes of these machines, until it finds nothing."""
    cluster = Standing(problem)
    for machine in standing:
        cluster.start(machine)
    changes: list[Change] = []
    spent = 0.0
    while len(changes) < _MOST_CHANGES:
        seen = cluster.snapshot()
        began = time.process_time()
        best = consolidate(
            seen,
            (),
            SAVING_ALONE.within_reason(problem.pods),
            by_price(PackingSettings()),
            most_nodes=len(seen.nodes),
        ).best
        spent += (time.process_time() - began) * 1000
        if best is None:
            break
        moved = cluster.carry_out(best.plan, best.remove)
        price = cluster.price_micros_per_hour
        changes.append(Change(moved=moved, price_micros_per_hour=price))
    answer = Answer(machines=cluster.machines(), cpu_millis=spent)
    return Consolidated(answer=answer, changes=tuple(changes))


def _answer(plan: Plan, cpu_millis: float, bound_millis: float) -> Answer:
    return Answer(
        machines=tuple(
            Machine(
                options=tuple(option.offering for option in node.options),
                price_micros_per_hour=node.price_micros_per_hour,
                pods=tuple(ref.name for ref in node.pods),
            )
            for node in plan.nodes
        ),
        left_out=tuple(left.pod.name for left in plan.unschedulable),
        cpu_millis=cpu_millis,
        bound_micros_per_hour=plan.lower_bound_micros_per_hour,
        bound_millis=bound_millis,
    )

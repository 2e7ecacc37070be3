"""Asks both sides, and returns their answers in one form."""

import gc
import json
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from shared.model.plan import Plan
from shared.packing.problem import PackingSettings
from shared.planning.decide import decide
from tests.peers.answers import Answer, Machine, read_machines
from tests.peers.problems import Problem
from tests.real.build import CACHE, build

_SOURCES: Final = Path(__file__).parent / "karpenter"


def build_karpenter() -> Path:
    """Return the program that asks Karpenter, built if its sources changed.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    return build(_SOURCES, CACHE / "peer-karpenter", ["-ldflags=-s -w", "."])


def ask_karpenter(program: Path, problem: Problem, repetitions: int = 1) -> tuple[Answer, ...]:
    """Return what Karpenter decides, each time with other UIDs: they break its ties."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        path.write_text(problem.for_karpenter(), encoding="utf-8")
        command = [str(program), str(path), "--repetitions", str(repetitions)]
        said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return tuple(
        Answer(
            machines=read_machines(decision["nodes"]),
            left_out=tuple(sorted(decision["leftOut"])),
            cpu_millis=decision["cpuMillis"],
        )
        for decision in said["decisions"]
    )


def ask_dovetail(
    problem: Problem, settings: PackingSettings | None = None, repetitions: int = 1
) -> tuple[Answer, ...]:
    """Return the same decision, timed several times in this process, the first time not counted.

    The snapshot is there already, as is Karpenter's: what is timed is everything after it is read.
    """
    snapshot = problem.snapshot()
    decide(snapshot, settings)
    found = []
    for _ in range(repetitions):
        gc.collect()
        began = time.process_time()
        plan = decide(snapshot, settings)
        found.append(_answer(plan, (time.process_time() - began) * 1000))
    return tuple(found)


def _answer(plan: Plan, cpu_millis: float) -> Answer:
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
    )

"""A cold process to a finished plan: interpreter, imports, catalogue as JSON, 400 pods.

Each run is a process of its own; its CPU time is what the operating system counted, from the start
of the interpreter to its end, byte code in a folder that the first, uncounted run fills. The first
two programs need the core alone and run without site-packages (`-S`) but msgspec, so nothing else
can be imported; the command runs as people start it.
"""

import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from tests.benchmarks.packing import price_table
from tests.benchmarks.report import Bar, Bought, Row
from tests.benchmarks.timing import kept_byte_code

ROOT: Final = Path(__file__).parents[2]
BAR: Final = Bar(milliseconds=100)
_RUNS: Final = 9
_CORE: Final = ("-S", "-m", "tests.benchmarks.cold_core")


def cold_rows() -> Iterator[Row]:
    """Yield the rows: the restricted catalogue, the whole one, and the command on manifests."""
    with TemporaryDirectory() as folder:
        part = Path(folder) / "part.json"
        part.write_text(json.dumps(restricted()))
        yield _row("cold process, catalogue of on-demand c/m/r", [*_CORE, str(part)], BAR)
        whole = str(price_table.TABLE)
        yield _row("cold process, embedded catalogue", [*_CORE, whole], BAR)
        manifests = Path(folder) / "pods.json"
        manifests.write_text(json.dumps(_manifests()))
        files = ["-f", str(manifests), "--catalog", str(part)]
        command = ["-m", "functions.cli", "plan", *files, "--output", "json"]
        yield _row("cold `dovetail plan`, catalogue of on-demand c/m/r", command, None)


def restricted() -> dict[str, object]:
    """Return the catalogue document of the getting-started pool, on demand."""
    document = json.loads(price_table.TABLE.read_text())
    rows = []
    for row in document["types"]:
        ways = [
            offering for offering in row["offerings"] if offering["capacity_type"] == "on-demand"
        ]
        if ways and price_table.general(row):
            rows.append({**row, "offerings": ways})
    return {**document, "types": rows}


def cpu_millis(arguments: list[str]) -> float:
    """Return the CPU time of a fresh interpreter with these arguments: median of several."""
    times = []
    with TemporaryDirectory() as folder:
        (Path(folder) / "msgspec").symlink_to(Path(msgspec.__file__).parent)
        kept = kept_byte_code(folder) | {"PYTHONPATH": folder}
        for _ in range(_RUNS + 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, *arguments], cwd=ROOT, env=kept, capture_output=True, check=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return statistics.median(times[1:]) * 1000


def _row(case: str, arguments: list[str], bar: Bar | None) -> Row:
    took = cpu_millis(arguments)
    return Row(
        case=case,
        pods=400,
        classes=1,
        settings="default",
        bound_micros_per_hour=0,
        ours=Bought(cost_micros_per_hour=0, nodes=0, milliseconds=took),
        bar=bar,
    )


def _manifests() -> dict[str, object]:
    container = {"name": "a", "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 400,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container]},
            },
        },
    }
    provisioner = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "default"},
        "spec": {},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [provisioner, deployment]}

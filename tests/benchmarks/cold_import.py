"""How long a cold function needs until its handler is imported, and what it holds then.

Each handler is imported in fresh processes; the figure is CPU time of the import alone, above a
bare interpreter, with byte code in a folder that the first, uncounted run fills. A ratio to
importing boto3 in the same run is printed beside it: machines are noisy, ratios travel better.
"""

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from tests.benchmarks.timing import kept_byte_code

_RUNS = 5
_PROBE = """
import importlib, json, sys, time
began = time.process_time()
importlib.import_module(sys.argv[1])
used = time.process_time() - began
# What getrusage says counts the parent before exec, too.
with open("/proc/self/status") as file:
    kib = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
resident = kib / 1024
print(json.dumps([used * 1000, resident]))
"""
HANDLERS = ("provision", "bind", "emptiness", "termination", "interrupt", "sweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCost:
    """Median of several cold imports."""

    module: str
    cpu_millis: float
    resident_mib: float


def measure(module: str) -> ImportCost:
    """Return the cost of importing a module in a fresh process."""
    command = [sys.executable, "-c", _PROBE, module]
    rows = []
    with TemporaryDirectory() as folder:
        kept = kept_byte_code(folder)
        for _ in range(_RUNS + 1):
            ended = subprocess.run(command, env=kept, capture_output=True, text=True, check=True)
            rows.append(json.loads(ended.stdout))
    counted = rows[1:]
    return ImportCost(
        module=module,
        cpu_millis=statistics.median(row[0] for row in counted),
        resident_mib=statistics.median(row[1] for row in counted),
    )


def table() -> str:
    """Return a table of all handlers, in Markdown."""
    base = measure("boto3")
    lines = ["| import | CPU ms (median of 5) | × boto3 | RSS MiB |", "|---|---|---|---|"]
    for module in ("boto3", *(f"functions.{name}.handler" for name in HANDLERS)):
        try:
            cost = base if module == "boto3" else measure(module)
        except subprocess.CalledProcessError as error:
            lines.append(f"| {module} | failed: {error.stderr.strip().splitlines()[-1]} | – | – |")
            continue
        ratio = cost.cpu_millis / base.cpu_millis
        lines.append(
            f"| {module} | {cost.cpu_millis:.0f} | {ratio:.1f} | {cost.resident_mib:.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")

"""How cost and time grow with the cluster: one table, with exponents.

Run as `python -m tests.scale [--row NAME] [--most SIZE] [--write FILE]`. Each measurement is a
process of its own, so that its memory is its own. A bar that is not met is told in the table, never
by the exit code: timings are noisy.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.benchmarks.timing import reference_milliseconds
from tests.scale.report import Measured, page, result, table
from tests.scale.rows import ROWS

_ROOT: Final = Path(__file__).parents[2]


def main() -> None:
    """Measure all rows, or one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=ROWS, help="one row; all otherwise")
    parser.add_argument("--most", type=int, default=100_000, help="largest size")
    parser.add_argument("--write", type=Path, help="page whose table is written anew")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        name, size = chosen.measure
        sys.stdout.write(json.dumps(ROWS[name].measure(int(size))))
        return
    speed = reference_milliseconds()
    measured = []
    for name in (chosen.row,) if chosen.row else ROWS:
        for size in (size for size in ROWS[name].sizes if size <= chosen.most):
            sys.stderr.write(f"{name} {size:,} ...\n")
            measured.append(Measured(row=name, size=size, values=_alone(name, size)))
    lines = table(measured, (speed + reference_milliseconds()) / 2)
    if chosen.write:
        chosen.write.write_text(page(chosen.write.read_text(), lines, result(measured)))
    sys.stdout.write("\n".join(lines) + "\n")


def _alone(name: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.scale", "--measure", name, str(size)]
    ended = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
    values: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return values


if __name__ == "__main__":
    main()

"""How much runs of the suites that repeat themselves.

`make test` runs a share of their repetition, another one with each commit: as many commits as there
are shares run all of it. `make verify-commit` sets EXTENT=whole, which runs all.
"""

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

WHOLE: Final = os.environ.get("EXTENT", "") == "whole"


@cache
def commits() -> int:
    """Return how many commits lead to this checkout; 0 outside of one."""
    counted = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-list", "--count", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(counted.stdout or 0)


def shares(number: int) -> tuple[int, ...]:
    """Return which of so many shares run, counted from 0: one of them, or all."""
    return tuple(range(number)) if WHOLE else (commits() % number,)

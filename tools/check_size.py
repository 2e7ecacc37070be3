"""Fails when a file is longer than one room should be. Ruff has no rule for that."""

import subprocess
import sys
from pathlib import Path

LIMIT = 300
FOLDERS = ("functions", "infra", "shared", "tests", "tools")


def main() -> int:
    """Return 1 and name every Python file that is too long."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS],
        capture_output=True,
        text=True,
        check=True,
    )
    failed = 0
    for name in listed.stdout.splitlines():
        path = Path(name)
        if path.suffix != ".py" or name.startswith("tests/data/") or not path.exists():
            continue
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LIMIT:
            print(f"{name}: {lines} lines, at most {LIMIT}: is this one room, or two?")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""Says in one line what this machine lacks. Runs before anything is installed.

    python3 tools/check_machine.py             # Python and its venv module
    python3 tools/check_machine.py node npm    # these programs, too

Which Node.js is needed is in package.json (`engines`).
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "package.json"


def needed_node() -> str:
    """Return the least version of Node.js, such as `20.19`."""
    engines = json.loads(PACKAGE.read_text(encoding="utf-8"))["engines"]
    return str(engines["node"]).lstrip(">=")


def lacking(programs: list[str]) -> str:
    """Return what is missing or too old, with the remedy; empty if nothing is."""
    if sys.version_info < (3, 11):  # noqa: UP036 - it runs before the right Python is known
        version = ".".join(map(str, sys.version_info[:3]))
        return f"Python {version} is too old: install Python 3.11 or newer, or set PYTHON=..."
    try:
        import ensurepip  # noqa: F401, PLC0415 - only asked whether it is there
    except ImportError:
        return "Python's venv module is missing: install it (Debian: apt-get install python3-venv)"
    needed = needed_node()
    for program in programs:
        if shutil.which(program) is None:
            return f"{program} is missing: install Node.js {needed} or newer (the CDK needs it)"
    if "node" in programs:
        found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
        version = tuple(map(int, re.findall(r"\d+", found.stdout)[:2]))
        if version < tuple(map(int, needed.split("."))):
            return f"Node.js {found.stdout.strip()} is too old: install Node.js {needed} or newer"
    return ""


def main() -> int:
    """Return 1 and print a line when something is missing."""
    if line := lacking(sys.argv[1:]):
        print(line)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

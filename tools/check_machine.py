"""Says in one line what this machine lacks. Runs before anything is installed."""

import re
import shutil
import subprocess
import sys


def main() -> int:
    """Return 1 and print a line when something is missing; warn of an old Node.js."""
    if sys.version_info < (3, 11):  # noqa: UP036 - it runs before the right Python is known
        version = ".".join(map(str, sys.version_info[:3]))
        print(f"Python {version} is too old: install Python 3.11 or newer, or set PYTHON=...")
        return 1
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing: install Node.js 22 or newer (CDK needs it)")
            return 1
    found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    major = re.match(r"v(\d+)", found.stdout)
    if major is None or int(major[1]) < 20:
        print(f"Node.js {found.stdout.strip()} is too old: install Node.js 22 or newer")
        return 1
    try:
        import ensurepip  # noqa: F401, PLC0415 - only asked whether it is there
    except ImportError:
        print("Python's venv module is missing: install it (Debian: apt-get install python3-venv)")
        return 1
    if int(major[1]) < 22:
        print(f"Node.js {major[1]} works, but is past its end of life: install Node.js 22 or newer")
    return 0


if __name__ == "__main__":
    sys.exit(main())

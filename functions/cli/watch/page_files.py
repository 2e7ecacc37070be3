"""The built page: shipped in the wheel, or built once in a clone."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

from shared.model.errors import PermanentError

HERE: Final = Path(__file__).parent
BUILT: Final = HERE / "built"
PAGE: Final = HERE / "page"
_SOURCES: Final = ("package-lock.json", "index.html", "vite.config.ts", "tsconfig.json")
_LAST_LINES: Final = 3


def is_built() -> bool:
    """Return whether the built page exists and is not older than its sources."""
    made = BUILT / "index.html"
    if not made.is_file():
        return False
    sources = [PAGE / name for name in _SOURCES] + [*(PAGE / "src").glob("*")]
    at = made.stat().st_mtime
    return all(source.stat().st_mtime <= at for source in sources if source.is_file())


def build() -> None:
    """Install the locked packages and build the page, as `make page` does.

    Raises:
        PermanentError: If it cannot be built; one line that says what to do.
    """
    package = PAGE / "package.json"
    if not package.is_file():
        raise PermanentError("the page is not in this package: install a released wheel")
    npm = shutil.which("npm")
    if npm is None:
        needed = json.loads(package.read_text(encoding="utf-8"))["engines"]["node"].lstrip(">=")
        raise PermanentError(
            f"the page is not built and npm is missing: install Node.js {needed} or newer"
        )
    steps = [["run", "build"]]
    if not (PAGE / "node_modules" / ".package-lock.json").is_file():
        steps.insert(0, ["ci", "--silent", "--no-audit", "--no-fund"])
    for step in steps:
        done = subprocess.run(  # noqa: S603 -- fixed words
            [npm, *step], cwd=PAGE, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            output_lines = [
                line for line in (done.stdout + done.stderr).splitlines() if line.strip()
            ]
            last = " ".join(output_lines[-_LAST_LINES:])
            raise PermanentError(f"the page cannot be built: npm {step[0]}: {last}")

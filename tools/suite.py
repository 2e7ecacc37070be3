"""Runs a suite of tests and prints a line: what came of it, in seconds and CPU seconds.

    python tools/suite.py unit -- .venv/bin/pytest tests/unit
    python tools/suite.py local --if-changed infra/local tests/local -- .venv/bin/pytest tests/local

A suite that fails prints all that it said. With --if-changed it runs only if one of the paths
differs from the last commit that is known to have passed: the one that this checkout has seen pass,
else origin/main, where only what passed lands. Where neither is known, it runs.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / ".build" / "passed"


def git(*words: str) -> str:
    """Return what git prints, empty where it fails."""
    asked = subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else ""


def changed(paths: list[str], commit: str) -> bool:
    """Return whether the working tree differs from a commit in these paths, in new files too."""
    same = subprocess.run(
        ["git", "-C", str(ROOT), "diff", "--quiet", commit, "--", *paths], check=False
    )
    return same.returncode != 0 or bool(
        git("ls-files", "--others", "--exclude-standard", "--", *paths)
    )


def reason_to_leave_out(name: str, paths: list[str]) -> str:
    """Return why a suite need not run, or an empty text: it must."""
    kept = PASSED / name
    here = kept.read_text(encoding="ascii").strip() if kept.exists() else ""
    for commit, where in ((here, "passed here"), (git("rev-parse", "origin/main"), "origin/main")):
        if commit and git("cat-file", "-t", commit) == "commit" and not changed(paths, commit):
            return f"{', '.join(paths)} are as in {commit[:8]} ({where})"
    return ""


def keep(name: str, paths: list[str]) -> None:
    """Remember that a suite has passed at HEAD, unless its paths differ from it."""
    head = git("rev-parse", "HEAD")
    if head and not changed(paths, head):
        PASSED.mkdir(parents=True, exist_ok=True)
        (PASSED / name).write_text(f"{head}\n", encoding="ascii")


def told(output: str) -> tuple[list[str], str]:
    """Return what pytest said besides its progress, and its counts such as `12 passed`."""
    lines = [line for line in output.splitlines() if line.strip()]
    counts = re.fullmatch(r"(?:=+ )?(.* passed.*) in [\d.]+s.*", lines[-1]) if lines else None
    if counts is None:
        return [], ""
    said = [line for line in lines[:-1] if not re.fullmatch(r"[.sxX]+ +\[ *\d+%\]", line)]
    return said, f"{counts[1]}, "


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--if-changed", nargs="+", default=[], metavar="PATH")
    own, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    given = parser.parse_args(own)
    if given.if_changed and (reason := reason_to_leave_out(given.name, given.if_changed)):
        print(f"{given.name}: not run: {reason}", flush=True)
        return 0
    print(f"{given.name} ...", flush=True)
    began = time.monotonic()
    ran = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    if ran.returncode:
        sys.stdout.write(ran.stdout)
        print(f"{given.name}: failed after {seconds:.0f} s", flush=True)
        return ran.returncode
    if given.if_changed:
        keep(given.name, given.if_changed)
    said, counts = told(ran.stdout)
    result = f"{given.name}: {counts}{seconds:.0f} s, {cpu:.0f} CPU s"
    print("\n".join([*said, result]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

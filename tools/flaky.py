"""Runs the folders whose tests share servers or ports with many seeds, and prints what came of it.

`make flaky` does all, and chooses tests as `make test` does; `make flaky SEEDS=3 FOLDERS="contract
e2e"` does a part. Results are kept in .build/flaky.jsonl, for each state of the checkout by itself:
an interrupted run goes on where it stopped. The output of a run that failed is in .build/flaky/.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / ".build" / "flaky.jsonl"
OUTPUT = ROOT / ".build" / "flaky"
FOLDERS = ("contract", "local", "infra", "e2e", "functions")


def state() -> str:
    """Return what the checkout is: the commit, and a digest of what differs from it."""
    words = ["git", "-C", str(ROOT), "stash", "create"]
    made = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    tree = f"{made or 'HEAD'}^{{tree}}"
    words = ["git", "-C", str(ROOT), "rev-parse", tree]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def known(tree: str) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the results of this state by seed and folder."""
    if not RESULTS.exists():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return {(row["seed"], row["folder"]): row for row in rows if row["tree"] == tree}


def run(seed: int, folder: str, tree: str, marks: str) -> dict[str, Any]:
    """Run the tests of a folder that have these marks with a seed; return and keep its result."""
    command = [
        *(sys.executable, "-m", "pytest", f"tests/{folder}", "-m", marks),
        *("-p", "no:cacheprovider", "--randomly-seed", str(seed), "-n", "2"),
    ]
    began = time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    row = {
        "tree": tree,
        "seed": seed,
        "folder": folder,
        "result": "passed" if ended.returncode == 0 else "failed",
        "seconds": round(time.monotonic() - began, 1),
    }
    if ended.returncode:
        OUTPUT.mkdir(parents=True, exist_ok=True)
        (OUTPUT / f"{folder}-{seed}.log").write_text(ended.stdout + ended.stderr, encoding="utf-8")
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return row


def results(seeds: int, folders: Sequence[str], marks: str) -> Iterator[dict[str, Any]]:
    """Yield the result of each seed and folder, running what was not run yet."""
    tree = state()
    done = known(tree)
    for seed in range(1, seeds + 1):
        for folder in folders:
            yield done.get((seed, folder)) or run(seed, folder, tree, marks)


def main() -> int:
    """Print a row for each run as it ends; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", dest="marks", required=True, help="which tests, as for pytest")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("folders", nargs="*", choices=[*FOLDERS, []], help="all by default")
    given = parser.parse_args()
    failed = total = 0
    print(f"{'seed':>4}  {'folder':<10}  {'result':<7} {'seconds':>8}")
    for row in results(given.seeds, given.folders or FOLDERS, given.marks):
        total += 1
        failed += row["result"] != "passed"
        print(
            f"{row['seed']:>4}  {row['folder']:<10}  {row['result']:<7} {row['seconds']:>8}",
            flush=True,
        )
    print(f"{total - failed} of {total} passed", f"; see {OUTPUT}" if failed else "", sep="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

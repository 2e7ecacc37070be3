"""The table of what was played: .build/real/table.jsonl, and the same to read in table.md."""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from infra.local.demo.children import ROOT
from tests.real.build import CACHE
from tests.real.play import SIMULATED, Played

_FILE: Final = CACHE / "table.jsonl"
_USUAL_SECONDS: Final = 240.0
_COLUMNS: Final = (
    "state",
    "scenario",
    "minor",
    "kubelet",
    "run",
    "cloud",
    "passed",
    "steps, s",
    "nodes",
    "initialized after, s",
    "pods bound early",
    "of these refused",
    "limits ×",
    "in all, s",
    "notes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is played once.

    Attributes:
        state: Of the checkout.
        run: 1 for the first time it is played in this state.
        cloud: The cloud controller manager: real or simulated.
    """

    state: str
    scenario: str
    minor: str
    kubelet: str
    run: int
    cloud: str = SIMULATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of it.

    Attributes:
        steps: Seconds of each step.
        initialized: Seconds from the creation of a Node until it was initialized, sorted.
        early: Pods that were bound before their Node was Ready.
        refused: How many of them the kubelet refused.
        factor: Of the time limits.
        seconds: From the first process until the last has ended.
        notes: Expectations that failed, and machines without a kubelet.
    """

    key: Key
    passed: bool
    steps: tuple[float, ...]
    nodes: int
    initialized: tuple[float, ...]
    early: int
    refused: int
    factor: float
    seconds: float
    notes: tuple[str, ...]

    @property
    def line(self) -> str:
        """Return the row of the Markdown table."""
        spread = f"{self.initialized[0]}–{self.initialized[-1]}" if self.initialized else ""
        cells = (
            *asdict(self.key).values(),
            "yes" if self.passed else "**no**",
            ", ".join(map(str, self.steps)),
            self.nodes,
            spread,
            self.early,
            self.refused,
            self.factor,
            self.seconds,
            "; ".join(self.notes).replace("|", "/"),
        )
        return _line(cells)


def row_of(key: Key, played: Played, factor: float, seconds: float) -> Row:
    """Return the row of a scenario that was played in so many seconds."""
    report = played.report
    nodes = report["nodes"]
    waited = [node["initialized_after"] for node in nodes if node["initialized_after"] is not None]
    failures = [
        f"{failure['expectation']}: {failure['why']}"
        for step in report["steps"]
        for failure in step["failures"]
    ]
    return Row(
        key=key,
        passed=played.passed,
        steps=tuple(step["seconds"] for step in report["steps"]),
        nodes=len(nodes),
        initialized=tuple(sorted(waited)),
        early=report["bound_early"],
        refused=report["refused"],
        factor=factor,
        seconds=round(seconds),
        notes=(*failures, *played.problems),
    )


def rows() -> list[Row]:
    """Return all rows, in the order in which they were played."""
    if not _FILE.exists():
        return []
    return [_read(json.loads(line)) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def add(row: Row) -> None:
    """Add a row, and write the table anew for people."""
    with _FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row)) + "\n")
    known = rows()
    lines = [
        _line(_COLUMNS),
        _line("---" for _ in _COLUMNS),
        *(row.line for row in known),
    ]
    states = dict.fromkeys(row.key.state for row in known)
    lines += [
        "",
        *(total([row for row in known if row.key.state == state]) for state in states),
    ]
    _FILE.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def total(found: Sequence[Row]) -> str:
    """Return what rows of the same state come to, in words."""
    passed = sum(row.passed for row in found)
    early, refused = sum(row.early for row in found), sum(entry.refused for entry in found)
    return (
        f"{found[0].key.state}: {passed} of {len(found)} rows passed; "
        f"{refused} of {early} pods bound early were refused."
    )


def seconds_for(keys: Iterable[Key]) -> float:
    """Return how long scenarios will take: as long as they last did, else as the mean of all."""
    known = {row.key.scenario: row.seconds for row in rows()}
    usual = sum(known.values()) / len(known) if known else _USUAL_SECONDS
    return sum(known.get(key.scenario, usual) for key in keys)


def git_state() -> str:
    """Return the commit, and a hash of what is not committed."""
    commit = _git("rev-parse", "--short=10", "HEAD").strip()
    changes = _git("diff", "HEAD") + _git("status", "--porcelain")
    if not changes:
        return commit
    return f"{commit}+{hashlib.sha256(changes.encode()).hexdigest()[:6]}"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _read(document: dict[str, Any]) -> Row:
    lists = {name: tuple(document[name]) for name in ("steps", "initialized", "notes")}
    return Row(**{**document, **lists, "key": Key(**document["key"])})


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"

"""What was broken in a world and what it survived: kept in a file beside the world's own."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from rich.markup import escape
from rich.table import Table


class Verdict(StrEnum):
    """How it came out."""

    SURVIVED = "survived"
    NOT_YET = "not yet"
    UNTESTED = "not tested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One thing that was broken.

    Attributes:
        seconds: From the fault until every pod ran again, or until the trial ended.
        most_waiting: The most pods that waited at one time.
        waiting: Those that waited at the end.
    """

    fault: str
    told: str
    verdict: Verdict
    seconds: float
    most_waiting: int
    waiting: int


def read_scores(path: Path) -> list[Score]:
    """Return what was kept, oldest first; a missing file holds nothing."""
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Score(**{**row, "verdict": Verdict(row["verdict"])}) for row in rows]


def keep_score(path: Path, score: Score) -> list[Score]:
    scores = [*read_scores(path), score]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps([asdict(row) for row in scores]), encoding="utf-8")
    fresh.replace(path)
    return scores


def table_of(scores: Sequence[Score]) -> Table:
    survived = sum(score.verdict is Verdict.SURVIVED for score in scores)
    tested = sum(score.verdict is not Verdict.UNTESTED for score in scores)
    table = Table(title=f"Survived {survived} of {tested}", title_justify="left", box=None)
    for title in ("broken", ""):
        table.add_column(title)
    for title in ("seconds", "pods waited", "still wait"):
        table.add_column(title, justify="right")
    table.add_column("what happened")
    for score in scores:
        numbers = (f"{score.seconds:.0f}", str(score.most_waiting), str(score.waiting))
        counted = score.verdict is not Verdict.UNTESTED
        told = escape(score.told) if counted else ""
        table.add_row(score.fault, str(score.verdict), *(numbers if counted else [""] * 3), told)
    return table

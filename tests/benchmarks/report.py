"""Rows of the table: what was bought, how fast, against which bar."""

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HEADINGS = (
    *("case", "pods", "classes", "settings", "bound $/h"),
    *("gap % / nodes / ms", "bar", "met"),
)
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What one procedure buys.

    Attributes:
        milliseconds: CPU time, None where it was not measured.
        left_out: Pods it did not place.
        broken: What it breaks or why something simpler stands here, empty for nothing.
    """

    cost_micros_per_hour: int
    nodes: int
    milliseconds: float | None
    left_out: int = 0
    broken: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a row is measured by; what is None is not asked.

    Attributes:
        exact: The cost must be this: the optimum, found another way.
    """

    gap_percent: float | None = None
    milliseconds: float | None = None
    exact: int | None = None

    def __str__(self) -> str:
        """What is asked, as text."""
        parts = []
        if self.exact is not None:
            parts.append(f"exactly ${self.exact / _MICROS:.4f}")
        if self.gap_percent is not None:
            parts.append(f"≤ {self.gap_percent:g} %")
        if self.milliseconds is not None:
            parts.append(f"≤ {self.milliseconds:g} ms")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    case: str
    pods: int
    classes: int | None
    settings: str
    bound_micros_per_hour: int
    ours: Bought
    bar: Bar | None = None

    @property
    def gap(self) -> float:
        """By how much the price is over the bound, in percent."""
        floor = self.bound_micros_per_hour
        return 100 * (self.ours.cost_micros_per_hour / floor - 1) if floor else 0.0

    def missed(self) -> list[str]:
        """Return what of the bar is not met."""
        bar, ours = self.bar, self.ours
        if bar is None:
            return []
        found = []
        if ours.broken:
            found.append(ours.broken)
        if bar.exact is not None and ours.cost_micros_per_hour != bar.exact:
            found.append("optimum")
        if bar.gap_percent is not None and self.gap > bar.gap_percent:
            found.append("gap")
        if bar.milliseconds is not None and (ours.milliseconds or 0) > bar.milliseconds:
            found.append("time")
        return found

    def cells(self) -> list[str]:
        """Return the line, cell by cell."""
        missed = self.missed()
        met = "–" if self.bar is None else f"**no: {', '.join(missed)}**" if missed else "yes"
        return [
            self.case,
            f"{self.pods:,}",
            "–" if self.classes is None else f"{self.classes:,}",
            self.settings,
            f"{self.bound_micros_per_hour / _MICROS:,.4f}" if self.bound_micros_per_hour else "–",
            self._told(),
            str(self.bar) if self.bar is not None else "–",
            met,
        ]

    def _told(self) -> str:
        ours = self.ours
        parts = []
        if self.bound_micros_per_hour:
            parts = [f"{self.gap:.2f}", f"{ours.nodes:,}"]
        if ours.milliseconds is not None:
            took = ours.milliseconds
            parts.append(f"{took:,.1f}" if took < 100 else f"{took:,.0f}")
        told = " / ".join(parts)
        if ours.left_out:
            told += f" ({ours.left_out} left out)"
        return f"{told} ({ours.broken})" if ours.broken else told


def table(rows: Iterable[Row]) -> list[str]:
    """Return the lines of the table."""
    return markdown(HEADINGS, (row.cells() for row in rows))


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of any table."""
    found = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cells)} |" for cells in found]


def summary(rows: Sequence[Row]) -> str:
    """Return how many bars are met, and which are not."""
    asked = [row for row in rows if row.bar is not None]
    open_ = [row for row in asked if row.missed()]
    told = f"{len(asked) - len(open_)} of {len(asked)} bars met."
    if open_:
        named = "; ".join(
            f"{row.case} {row.pods:,} {row.settings} ({', '.join(row.missed())})" for row in open_
        )
        told += f" Not met: {named}."
    return told


def machine() -> str:
    """Return when and where this runs."""
    model = platform.processor() or platform.machine()
    cores = 0
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        lines = [line.partition(":") for line in facts.read_text().splitlines()]
        found = [(name.strip(), value.strip()) for name, _, value in lines]
        cores = sum(1 for name, _ in found if name == "processor")
        model = next((value for name, value in found if name == "model name"), model)
        speed = next((value for name, value in found if name == "cpu MHz"), "")
        model += f" at {float(speed) / 1000:.1f} GHz" if speed else ""
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {model}, {cores} cores of which one is used, "
        f"{platform.system()}, Python {platform.python_version()}"
    )

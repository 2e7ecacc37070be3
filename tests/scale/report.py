"""The table of what was measured, its result, and their places in a page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.report import machine, markdown
from tests.scale.rows import ROWS
from tests.scale.virtual import constants
from tools.made_part import with_result

_BELOW: Final = "<!-- written by `make scale`: below this line nothing is kept -->"
_HEADINGS: Final = ("row", "value", "sizes", "measured", "exponent", "bar", "met")
_MISSED: Final = "**no**"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The values of one row at one size."""

    row: str
    size: int
    values: Mapping[str, float]


def exponent(first: tuple[int, float], last: tuple[int, float]) -> float:
    """Return how a value grows with the size: as the size to this power; 0 for one that is 0.

    Example:
        >>> exponent((10, 3.0), (1000, 300.0))
        1.0
    """
    if not (first[1] and last[1]):
        return 0.0
    return math.log(last[1] / first[1]) / math.log(last[0] / first[0])


def result(measured: Sequence[Measured]) -> str:
    """Return how many bars are met, and which are not."""
    judged = [cells for cells in _lines(measured) if cells[-1] != "–"]
    missed = [f"{what} ({value})" for what, value, *_, met in judged if met == _MISSED]
    told = f"{len(judged) - len(missed)} of {len(judged)} bars met"
    return f"{told}. Not met: {'; '.join(missed)}" if missed else told


def table(measured: Sequence[Measured], speed: float) -> list[str]:
    """Return the lines of the table.

    Args:
        speed: CPU milliseconds of a fixed piece of work, before and after.
    """
    head = [
        f"Measured {machine()}; a fixed piece of work takes {speed:.0f} ms of CPU time.",
        "",
        f"Assumed: {constants()}.",
        "",
    ]
    return [*head, *markdown(_HEADINGS, _lines(measured))]


def page(before: str, lines: Sequence[str], told: str) -> str:
    """Return a page whose result and part below the mark are replaced."""
    kept, mark, _ = before.partition(_BELOW)
    if not mark:
        raise ValueError(f"the page has no line {_BELOW!r}: add it where the table begins")
    return with_result("\n".join([kept + mark, "", *lines, ""]), told)


def _lines(measured: Sequence[Measured]) -> Iterator[list[str]]:
    for name, row in ROWS.items():
        found = [entry for entry in measured if entry.row == name]
        for value in found[0].values if found else ():
            series = [(entry.size, entry.values[value]) for entry in found]
            yield [row.what, value, *_cells(series), *_judged(name, value, series)]


def _cells(series: Sequence[tuple[int, float]]) -> list[str]:
    sizes = " / ".join(f"{size:,}" for size, _ in series)
    return [sizes, " / ".join(_text(value) for _, value in series)]


def _judged(name: str, value: str, series: Sequence[tuple[int, float]]) -> list[str]:
    """Return exponent, bar, and whether it is met."""
    row, (first, last) = ROWS[name], (series[0], series[-1])
    grows = exponent(first, last) if last[0] > first[0] and first[1] else None
    told = "–" if grows is None else f"{grows:.2f}"
    asked, met = [], []
    bar = row.bars.get(value)
    if isinstance(bar, tuple):
        of_size = dict(zip(row.sizes, bar, strict=True))
        asked.append("≤ " + " / ".join(f"{of_size[size]:g}" for size, _ in series))
        met += [found <= of_size[size] for size, found in series]
    elif bar is not None and last[0] == row.sizes[-1]:
        asked.append(f"≤ {bar:g}")
        met.append(last[1] <= bar)
    if value in row.exponents and grows is not None:
        asked.append(f"exponent ≤ {row.exponents[value]:g}")
        met.append(grows <= row.exponents[value])
    return [told, ", ".join(asked) or "–", "–" if not met else "yes" if all(met) else _MISSED]


def _text(value: float) -> str:
    if math.isinf(value):
        return "never"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"

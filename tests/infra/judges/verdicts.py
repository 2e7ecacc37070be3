"""What a judge says, and the table of all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a judge said.

    Attributes:
        version: Of the judge.
        asked: How many questions it answered.
        disagreements: Where it says otherwise than we do and nobody has explained it, in a line.
        explained: Where it says otherwise, and why that stays.
    """

    version: str
    asked: int
    disagreements: tuple[str, ...] = ()
    explained: tuple[str, ...] = ()


def table(verdicts: Mapping[str, Verdict | str]) -> str:
    """Return judge, version, questions and disagreements, aligned; and each of these in a line.

    Args:
        verdicts: By judge, in order; a text says why one could not be asked.
    """
    rows: list[tuple[str, ...]] = [("judge", "version", "asked", "disagreements")]
    below: list[str] = []
    for judge, said in verdicts.items():
        if isinstance(said, str):
            rows.append((judge, "-", "NOT ASKED", "-"))
            below.append(f"{judge}: not asked: {said}")
            continue
        explained = f" ({len(said.explained)} explained)" if said.explained else ""
        rows.append((judge, said.version, str(said.asked), f"{len(said.disagreements)}{explained}"))
        below += [f"{judge}: explained: {line}" for line in said.explained]
        below += [f"{judge}: DISAGREES: {line}" for line in said.disagreements]
    return "\n".join([*_aligned(rows), *below])


def _aligned(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()

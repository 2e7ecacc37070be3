"""The documents of the repository, taken apart: shell commands, output, links, tables."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "tests" / "karpenter_cases").rglob("*.md")),
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_INLINE = re.compile(r"`((?:make|dovetail) [^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A command of a page, and the lines shown under it."""

    command: str
    output: tuple[str, ...] = ()


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of some languages, in order."""
    text = page.read_text(encoding="utf-8")
    return [body for language, body in _BLOCK.findall(text) if language in languages]


def shown(page: Path) -> list[Shown]:
    """Return the commands of the `console` blocks with their output."""
    found: list[Shown] = []
    for body in blocks(page, "console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            found.append(Shown(command=command, output=tuple(o for o in output if o.strip())))
    return found


def commands(page: Path) -> list[str]:
    """Return every command line a page names, also those within sentences."""
    text = page.read_text(encoding="utf-8")
    lines = [line for body in blocks(page, "sh", "text") for line in body.splitlines()]
    lines += _INDENTED.findall(_BLOCK.sub("", text))
    lines += _INLINE.findall(text)
    lines += [other_shown.command for other_shown in shown(page)]
    known = ("make ", "dovetail ", "kubectl ", "npx ", "docker ")
    lines = [line.removeprefix(".venv/bin/") for line in lines]
    return [line.split("  #")[0].strip() for line in lines if line.startswith(known)]


def steps(page: Path, heading: str) -> list[str]:
    """Return the commands under a heading, in order; indented lines are commands."""
    parts = re.split(r"^###? ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [part for part in parts if part.startswith(heading)]
    return [line.strip() for line in section.splitlines() if re.match(r" {4,7}[a-z.]", line)]


def words_after(page: Path, program: str) -> Iterator[list[str]]:
    """Return the arguments of each command of one program."""
    for line in commands(page):
        words = shlex.split(line)
        if words[0] == program and "…" not in words:
            yield words[1:]


def links(page: Path) -> list[str]:
    """Return the targets of a page's links, without those to other hosts."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return [entry for entry in _LINK.findall(text) if not entry.startswith(("http:", "https:"))]


def rows(page: Path, heading: str) -> list[tuple[str, ...]]:
    """Return the cells of all tables under a heading, heads and rules left out."""
    text = page.read_text(encoding="utf-8")
    part = re.split(r"^#+ ", text, flags=re.MULTILINE)
    section = next(value for value in part if value.startswith(f"{heading}\n"))
    tables = re.findall(r"(?:^\|.*\|$\n?)+", section, flags=re.MULTILINE)
    return [
        tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        for table in tables
        for line in table.strip().splitlines()[2:]
    ]


def anchor(title: str) -> str:
    """Return the anchor that a heading gets."""
    kept = re.sub(r"[^\w\- ]", "", title.strip().lower())
    return kept.replace(" ", "-")

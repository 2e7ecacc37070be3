"""Checklists: named cases, each with one mark: what keeps it, or why nothing does.

A folder with one or several files `checklist*.toml` is one checklist, named like the folder. A file
has a table for each group, with the number of its cases in its name, so that a lost line is
detected; a group is in one file only:

    ["Scheduling › Taints (4)"]
    "name of a case" = "test_taints.py::test_some_sentence"
    "kept by several" = ["test_taints.py::test_a", "tests/unit/test_others.py::test_b"]
    "another" = "differs: anchor-of-a-heading"
    "of what is not offered" = "not offered: test_refused.py::test_it_is_refused_with_a_remedy"
    "one that the list has twice" = { "what the first is" = "...", "the second" = "..." }

A test is named from the folder of its checklist, one that begins with `tests/` from the root. The
file `differences.md` of the folder has a heading for each case that differs.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent
DIFFERENCES: Final = "differences.md"
PATTERN: Final = "checklist*.toml"
# At most one in so many cases may differ.
SHARE_THAT_MAY_DIFFER: Final = 10
_COUNTED: Final = re.compile(r".* \((\d+)\)\Z")


class Mark(StrEnum):
    """What is said of a case; the value is how its entry begins."""

    PASSES = ""
    DIFFERS = "differs: "
    NOT_OFFERED = "not offered: "
    NOT_YET = "not yet: "


Entry = str | list[str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        tests: Node ids of the tests that keep it, or that show the refusal of what is not offered.
        reason: The anchor in DIFFERENCES that says why it differs, or what it waits for.
    """

    group: str
    name: str
    mark: Mark
    tests: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Checklist:
    """All cases of one folder."""

    folder: Path
    cases: tuple[Case, ...]
    promised: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def tested(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.tests)

    def marked(self, mark: Mark) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.mark == mark)


def checklists() -> tuple[Checklist, ...]:
    return tuple(
        read(parent) for parent in sorted({path.parent for path in FOLDER.glob(f"*/{PATTERN}")})
    )


def read(folder: Path) -> Checklist:
    cases: list[Case] = []
    promised: dict[str, int] = {}
    for path in sorted(folder.glob(PATTERN)):
        for group, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
            counted = _COUNTED.match(group)
            promised[group] = int(counted[1]) if counted and group not in promised else -1
            for name, entry in entries.items():
                cases.extend(_cases(folder, group, name, entry))
    return Checklist(folder=folder, cases=tuple(cases), promised=promised)


def _cases(
    folder: Path, group: str, name: str, entry: Entry | Mapping[str, Entry]
) -> Iterator[Case]:
    if isinstance(entry, Mapping):
        for what, target in entry.items():
            yield from _cases(folder, group, f"{name} [{what}]", target)
        return
    first, *others = [entry] if isinstance(entry, str) else entry
    mark = next(mark for mark in reversed(Mark) if first.startswith(mark))
    rest = (first.removeprefix(mark), *others)
    if mark in (Mark.DIFFERS, Mark.NOT_YET):
        yield Case(group=group, name=name, mark=mark, reason=" ".join(rest))
    else:
        tests = tuple(_node_id(folder, value) for value in rest)
        yield Case(group=group, name=name, mark=mark, tests=tests)


def _node_id(folder: Path, value: str) -> str:
    prefix = "" if value.startswith("tests/") else f"{folder.relative_to(ROOT).as_posix()}/"
    return f"{prefix}{value}"


def faults(checklist: Checklist) -> list[str]:
    """Return what is wrong with the file itself, without running anything."""
    found = []
    per_group = Counter(case.group for case in checklist.cases)
    for group, promised in checklist.promised.items():
        if per_group[group] != promised:
            found.append(f"{group}: has {per_group[group]} cases")
    found.extend(_given_twice(test for case in checklist.cases for test in case.tests))
    found.extend(_given_twice(case.reason for case in checklist.marked(Mark.DIFFERS)))
    for case in checklist.tested:
        found.extend(f"{case.name}: there is no test {test}" for test in case.tests if _lost(test))
    differing = checklist.marked(Mark.DIFFERS)
    reasons = anchors(checklist.folder / DIFFERENCES)
    found.extend(
        f"{case.name}: there is no {case.reason} in {DIFFERENCES}"
        for case in differing
        if case.reason not in reasons
    )
    if len(differing) * SHARE_THAT_MAY_DIFFER > len(checklist.cases):
        found.append(f"{len(differing)} of {len(checklist.cases)} cases differ: too many")
    return found


def _given_twice(entries: Iterable[str]) -> list[str]:
    used = Counter(entries)
    return [f"{entry}: given for {count} cases" for entry, count in used.items() if count > 1]


def _lost(test: str) -> bool:
    path, _, function = test.partition("::")
    written = ROOT / path
    source = written.read_text(encoding="utf-8") if written.is_file() else ""
    return f"\ndef {function.partition('[')[0]}(" not in source


def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of a document's headings, written as code forges make them."""
    if not document.is_file():
        return frozenset()
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    )

"""Checklists: named cases, each kept by one test, or by a written reason why it is not.

A folder with one or several files `checklist*.toml` is one checklist, named like the folder. A file
has a table for each group, with the number of its cases in its name, so that a lost line is
detected; a group is in one file only:

    ["Scheduling › Taints (2)"]
    "name of a case" = "test_taints.py::test_some_sentence"
    "another" = "differs: 0007-example.md#anchor"
    "one that the list has twice" = { "what the first is" = "...", "the second" = "..." }
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent
DECISIONS: Final = ROOT / "docs" / "decisions"
PATTERN: Final = "checklist*.toml"
# At most one in so many cases may differ.
SHARE_THAT_MAY_DIFFER: Final = 10
_DIFFERS: Final = "differs: "
_COUNTED: Final = re.compile(r".* \((\d+)\)\Z")


@dataclass(frozen=True)
class Case:
    """One case: kept by the test `node_id`, or not kept for the reason at `differs`."""

    group: str
    name: str
    node_id: str = ""
    differs: str = ""


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
        return tuple(case for case in self.cases if case.node_id)

    @cached_property
    def differing(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.differs)


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


def _cases(folder: Path, group: str, name: str, entry: str | Mapping[str, str]) -> Iterator[Case]:
    if not isinstance(entry, str):
        for what, target in entry.items():
            yield from _cases(folder, group, f"{name} [{what}]", target)
    elif entry.startswith(_DIFFERS):
        yield Case(group=group, name=name, differs=entry.removeprefix(_DIFFERS))
    else:
        path = f"{folder.relative_to(ROOT).as_posix()}/{entry}"
        yield Case(group=group, name=name, node_id=path)


def faults(checklist: Checklist) -> list[str]:
    """Return what is wrong with the file itself, without running anything."""
    found = []
    per_group = Counter(case.group for case in checklist.cases)
    for group, promised in checklist.promised.items():
        if per_group[group] != promised:
            found.append(f"{group}: has {per_group[group]} cases")
    for what in ("node_id", "differs"):
        used = Counter(getattr(case, what) for case in checklist.cases if getattr(case, what))
        found.extend(
            f"{entry}: given for {count} cases" for entry, count in used.items() if count > 1
        )
    for case in checklist.tested:
        path, _, function = case.node_id.partition("::")
        written = ROOT / path
        source = written.read_text(encoding="utf-8") if written.is_file() else ""
        if f"\ndef {function.partition('[')[0]}(" not in source:
            found.append(f"{case.name}: there is no test {case.node_id}")
    for case in checklist.differing:
        document, _, anchor = case.differs.partition("#")
        if anchor not in anchors(DECISIONS / document):
            found.append(f"{case.name}: there is no {case.differs} in docs/decisions")
    if len(checklist.differing) * SHARE_THAT_MAY_DIFFER > len(checklist.cases):
        found.append(f"{len(checklist.differing)} of {len(checklist.cases)} cases differ: too many")
    return found


def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of a document's headings, written as code forges make them."""
    if not document.is_file():
        return frozenset()
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    )

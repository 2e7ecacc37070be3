"""The walks of the architecture page name files and functions that exist, each file once."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "architecture.md"
_STEP = re.compile(r"^\d+\. `([^`]+\.py)` \(([^)]+)\):", re.MULTILINE)
_NUMBER = re.compile(r"^\d+\. ", re.MULTILINE)


def _walks() -> dict[str, str]:
    _, _, after = PAGE.read_text(encoding="utf-8").partition("\n## Four walks\n")
    section = after.partition("\n## ")[0]
    titled = (part.partition("\n") for part in section.split("\n### ")[1:])
    return {title: body for title, _, body in titled}


def _defined(path: Path) -> set[str]:
    """Return the functions and classes of a file, and methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return found


def test_there_are_four_walks() -> None:
    assert len(_walks()) == 4


@pytest.mark.parametrize("title", _walks())
def test_each_step_of_a_walk_names_a_file_once_and_functions_that_it_defines(title: str) -> None:
    body = _walks()[title]
    steps = _STEP.findall(body)
    assert len(steps) == len(_NUMBER.findall(body))
    assert len({path for path, _ in steps}) == len(steps)
    for path, listed in steps:
        names = re.findall(r"`([^`]+)`", listed)
        assert names, path
        known = _defined(ROOT / path)
        for name in names:
            assert name in known, f"{path}: {name}"

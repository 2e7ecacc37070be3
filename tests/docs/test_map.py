"""The page that says which file to open for a change names files that exist."""

import re

from tests.docs.pages import ROOT, rows

PAGE = ROOT / "docs" / "map.md"
SECTIONS = (
    "What is planned",
    "What is launched",
    "What happens to a node",
    "What users and operators see",
    "Plumbing",
)
LEAST_ROWS = 25


def test_every_path_of_the_map_exists() -> None:
    for request, files in _listed():
        paths = re.findall(r"`([^`]+)`", files)
        assert paths, request
        for path in paths:
            assert (ROOT / path).is_file(), f"{request}: {path}"


def test_the_map_answers_each_request_once_and_at_least_25() -> None:
    requests = [request for request, _ in _listed()]
    assert len(requests) >= LEAST_ROWS
    assert len(set(requests)) == len(requests)


def test_every_row_of_the_map_is_in_a_section_that_is_checked() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = text.count("\n|---|---|\n")
    lines = len(re.findall(r"^\|", text, re.MULTILINE))
    assert tables == len(SECTIONS)
    assert lines == len(_listed()) + 2 * tables


def _listed() -> list[tuple[str, str]]:
    return [(request, files) for section in SECTIONS for request, files in rows(PAGE, section)]

"""The page that says which file to open for a change names files that exist."""

import re

import pytest

from tests.docs.pages import ROOT, rows

PAGE = ROOT / "docs" / "map.md"
SECTIONS = (
    "Manifests and user data",
    "Plans: which nodes for which pods",
    "Launches",
    "Nodes, from joining to termination",
    "Status, Events and messages",
    "Functions and adapters",
    "The command line",
    "Deployment and the local world",
)
LEAST_ROWS = 40
MOST_ROWS = 60


def test_every_path_of_the_map_exists() -> None:
    for request, files in _listed():
        paths = re.findall(r"`([^`]+)`", files)
        assert paths, request
        for path in paths:
            assert (ROOT / path).is_file(), f"{request}: {path}"


def test_the_map_answers_each_request_once_and_stays_short() -> None:
    requests = [request for request, _ in _listed()]
    assert LEAST_ROWS <= len(requests) <= MOST_ROWS
    assert len(set(requests)) == len(requests)


def test_every_row_of_the_map_is_in_a_section_that_is_checked() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = text.count("\n|---|---|\n")
    lines = len(re.findall(r"^\|", text, re.MULTILINE))
    assert tables == len(SECTIONS)
    assert lines == len(_listed()) + 2 * tables


def test_each_request_of_a_row_has_its_files() -> None:
    for request, files in _listed():
        assert request.count(";") == files.count(";"), request


@pytest.mark.parametrize("room", ["shared", "functions", "infra"])
def test_every_package_is_in_the_map(room: str) -> None:
    listed = {
        path.split("/")[1]
        for _, files in _listed()
        for path in re.findall(r"`([^`]+)`", files)
        if path.startswith(f"{room}/")
    }
    folders = {
        path.name
        for path in (ROOT / room).iterdir()
        if path.is_dir() and path.name != "__pycache__" and any(path.glob("[!_.]*"))
    }
    assert len(folders) >= 3
    assert folders <= listed, sorted(folders - listed)


def _listed() -> list[tuple[str, str]]:
    return [(request, files) for section in SECTIONS for request, files in rows(PAGE, section)]

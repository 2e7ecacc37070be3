"""What `make release` writes: each part is what it says, and the same bytes each time."""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.manifests.chart import chart_files, version
from tools.release import make_release
from tools.release.make_release import Release, ReleaseError, chart_archive, make, notes

CHANGES = """# Changelog

## [Unreleased]

### Added

- What comes next.

## [0.2.0] - 2026-12-01

### Fixed

- What was wrong.

## [0.1.0] - 2026-11-01
"""


def test_the_notes_are_what_the_changelog_says_of_the_version() -> None:
    assert notes(CHANGES, "0.2.0") == "# Dovetail 0.2.0\n\n### Fixed\n\n- What was wrong.\n"


def test_until_a_version_has_a_heading_its_notes_are_what_is_unreleased() -> None:
    assert "- What comes next.\n" in notes(CHANGES, "0.3.0")
    assert "What was wrong" not in notes(CHANGES, "0.3.0")
    with pytest.raises(ReleaseError, match=r"nothing under \[0\.3\.0\] or \[Unreleased\]"):
        notes("# Changelog\n", "0.3.0")


def test_the_chart_is_packed_as_helm_packs_it(release: Release) -> None:
    packed = chart_archive(release)

    assert packed == chart_archive(release)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = archive.getmembers()
        found = {
            member.name.removeprefix("dovetail/"): (archive.extractfile(member) or io.BytesIO())
            .read()
            .decode()
            for member in members
        }
    assert all(member.name.startswith("dovetail/") for member in members)
    assert {member.mtime for member in members} == {release.epoch}
    assert found == chart_files()


def test_a_time_that_is_no_number_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    monkeypatch.setattr("functions.cli.watch.page_files.is_built", lambda: True)

    assert make_release.main([]) == 1
    assert capsys.readouterr().err == (
        "release: SOURCE_DATE_EPOCH: 'yesterday': give whole seconds since 1970\n"
    )


@pytest.mark.landing
def test_a_release_is_complete_and_the_same_each_time(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is downloaded and synthesised for minutes: test_assembly.py, test_oci.py, and
    # `make release TWICE=1`.
    monkeypatch.setattr("tools.release.image.layout", lambda *_: b"an image")
    monkeypatch.setattr("tools.release.assembly.functions_zip", lambda *_: b"code")
    monkeypatch.setattr("tools.release.assembly.templates", dict)
    parts = make(release, tmp_path / "first")
    again = make(release, tmp_path / "second")

    assert [part.name for part in parts] == [
        "NOTES.md",
        "dovetail-0.1.0-assembly.zip",
        "dovetail-0.1.0.chart.oci.tar",
        "dovetail-0.1.0.provenance.json",
        "dovetail-0.1.0.sbom.json",
        "dovetail-0.1.0.tgz",
        "dovetail-forwarder-0.1.0.oci.tar",
        "dovetail_autoscaler-0.1.0-py3-none-any.whl",
        "SHA256SUMS",
    ]
    assert [part.read_bytes() for part in parts] == [part.read_bytes() for part in again]
    assert dict(_sums(parts[-1])) == {
        part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts[:-1]
    }
    by_name = {part.name: part for part in parts}
    bill = json.loads(by_name["dovetail-0.1.0.sbom.json"].read_text())
    assert bill["bomFormat"] == "CycloneDX"
    said = json.loads(by_name["dovetail-0.1.0.provenance.json"].read_text())
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {row["name"]: row["digest"]["sha256"] for row in said["subject"]}
    sums = dict(_sums(parts[-1]))
    assert sums.keys() - subjects.keys() == {"dovetail-0.1.0.provenance.json"}
    assert all(sums[name] == digest for name, digest in subjects.items())


def test_the_notes_of_this_version_are_about_forty_lines() -> None:
    changes = (make_release.ROOT / "CHANGELOG.md").read_text()

    said = [line for line in notes(changes, version()).splitlines() if line]
    assert 30 <= len(said) <= 60
    assert re.search(r"^## \[(.+)\]", changes, re.MULTILINE)[1] in {version(), "Unreleased"}  # type: ignore[index]


def _sums(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        digest, name = line.split("  ")
        yield name, digest

"""A release, into .build/release: all that users install, and what it was made from.

    python -m tools.release.make_release [--twice]

Wheel with the page of `dovetail watch`, Helm chart (packed, and as OCI artefact), the forwarder's
image, the cloud assembly, bill of materials, notes, provenance, checksums. The same commit makes
the same bytes on the same machine: all times are SOURCE_DATE_EPOCH, by default that of the commit.
Source: https://reproducible-builds.org/specs/source-date-epoch/ (2026-11).
"""

import argparse
import filecmp
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from functions.cli.watch import page_files
from infra.aws.bundling import BundlingError
from shared.model.errors import PermanentError
from tools import make_sbom
from tools.manifests import chart
from tools.release import assembly, image, oci, provenance
from tools.release.debian_packages import DebianError

ROOT: Final = Path(__file__).parents[2]
RELEASE: Final = ROOT / ".build" / "release"
CHECKSUMS: Final = "SHA256SUMS"
LOCKS: Final = (
    *((ROOT / "requirements" / f"{name}.txt") for name in ("forwarder", "functions", "image")),
    ROOT / "functions" / "cli" / "watch" / "page" / "package-lock.json",
)
_PAGE: Final = Path("functions") / "cli" / "watch" / "built"


class ReleaseError(RuntimeError):
    """A part of the release cannot be made; one line says which, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a release is made from.

    Attributes:
        epoch: Seconds since 1970 that every time in it is set to.
        page: Folder of the built page.
        commit: Hash of the commit it is made from.
    """

    version: str
    epoch: int
    page: Path
    commit: str


def make(release: Release, target: Path) -> tuple[Path, ...]:
    """Write all parts into a folder, in place of what is there; return them, sorted.

    Raises:
        ReleaseError: If a part cannot be made.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    write_wheel(release, target)
    packed = chart_archive(release)
    (target / f"dovetail-{release.version}.tgz").write_bytes(packed)
    (target / f"dovetail-{release.version}.chart.oci.tar").write_bytes(
        chart_layout(release, packed)
    )
    write_image(release, target)
    write_assembly(release, target)
    write_bill(target / f"dovetail-{release.version}.sbom.json")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (target / "NOTES.md").write_text(notes(changes, release.version), encoding="utf-8")
    made = provenance.statement(
        version=release.version,
        epoch=release.epoch,
        commit=release.commit,
        locks=LOCKS,
        parts=sorted(target.iterdir()),
    )
    said = target / f"dovetail-{release.version}.provenance.json"
    said.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    parts = tuple(sorted(target.iterdir()))
    lines = [f"{hashlib.sha256(part.read_bytes()).hexdigest()}  {part.name}\n" for part in parts]
    (target / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
    return (*parts, target / CHECKSUMS)


def write_wheel(release: Release, target: Path) -> None:
    """Build the wheel from the files that git knows, and the page.

    Raises:
        ReleaseError: If it cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix="dovetail-release-") as folder:
        source = Path(folder) / "source"
        for name in _tracked():
            if (ROOT / name).is_file():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, source / name)
        shutil.copytree(release.page, source / _PAGE)
        # Whatever the umask here is: the modes are part of the archive.
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        _run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
                *("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)),
                str(source),
            ],
            "wheel",
            {**os.environ, "SOURCE_DATE_EPOCH": str(release.epoch)},
        )


def write_image(release: Release, target: Path) -> None:
    """Write the forwarder's image.

    Raises:
        ReleaseError: If a package of it cannot be had.
    """
    try:
        content = image.layout(release.version, release.epoch)
    except (DebianError, subprocess.CalledProcessError) as error:
        raise ReleaseError(f"image: {error}") from error
    (target / f"dovetail-forwarder-{release.version}.oci.tar").write_bytes(content)


def write_assembly(release: Release, target: Path) -> None:
    """Write the cloud assembly.

    Raises:
        ReleaseError: If the functions' packages cannot be had.
    """
    with tempfile.TemporaryDirectory(prefix="dovetail-bundle-") as folder:
        try:
            code = assembly.functions_zip(Path(folder) / "bundle")
        except BundlingError as error:
            raise ReleaseError(f"assembly: {error}") from error
    content = assembly.archive(release.version, assembly.templates(), code)
    (target / f"dovetail-{release.version}-assembly.zip").write_bytes(content)


def chart_archive(release: Release) -> bytes:
    """Return the chart as `helm package` names and packs it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(chart.chart_files().items()):
            content = text.encode()
            entry = tarfile.TarInfo(f"dovetail/{name}")
            entry.size, entry.mtime, entry.mode = len(content), release.epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=release.epoch)


def chart_layout(release: Release, packed: bytes) -> bytes:
    """Return the packed chart as an OCI artefact."""
    about = yaml.safe_load(chart.chart_files()["Chart.yaml"])
    return oci.chart(about, packed, release.epoch)


def write_bill(path: Path) -> None:
    """Write the bill of materials.

    Raises:
        ReleaseError: If a shipped package is under a licence that was not reviewed.
    """
    bill = make_sbom.document()
    left = make_sbom.unexplained(bill)
    if left:
        raise ReleaseError(f"licence: {left[0]}: look at it and add it to tools/make_sbom.py")
    path.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


def notes(changes: str, version: str) -> str:
    """Return what the changelog says of a version; until it has its heading, what is unreleased.

    Raises:
        ReleaseError: If the changelog has neither.
    """
    sections = {
        heading: body.strip()
        for heading, body in re.findall(
            r"^## \[([^\]]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", changes, re.MULTILINE | re.DOTALL
        )
    }
    told = sections.get(version) or sections.get("Unreleased")
    if not told:
        raise ReleaseError(f"CHANGELOG.md: nothing under [{version}] or [Unreleased]: write it")
    return f"# Dovetail {version}\n\n{told}\n"


def _tracked() -> list[str]:
    said = _run(["git", "-C", str(ROOT), "ls-files", "-z"], "files", dict(os.environ))
    return [name for name in said.split("\0") if name]


def _epoch() -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the commit.

    Raises:
        ReleaseError: If the variable is no number of seconds.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given and not given.isdecimal():
        raise ReleaseError(f"SOURCE_DATE_EPOCH: {given!r}: give whole seconds since 1970")
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(given or _run(command, "SOURCE_DATE_EPOCH", dict(os.environ)))


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return _run(command, "commit", dict(os.environ)).strip()


def _run(command: Sequence[str], what: str, environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ReleaseError(f"{what}: {lines[-1] if lines else f'ended with {done.returncode}'}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a release; 1 when a part cannot be made."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release.make_release", description=__doc__
    )
    parser.add_argument("--twice", action="store_true", help="make it again, and compare")
    given = parser.parse_args(arguments)
    try:
        if not page_files.is_built():
            page_files.build()
        release = Release(
            version=chart.version(), epoch=_epoch(), page=page_files.BUILT, commit=_commit()
        )
        parts = make(release, RELEASE)
        if given.twice:
            _compare(release, parts)
    except (ReleaseError, PermanentError) as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    for part in parts:
        sys.stdout.write(f"{part.relative_to(ROOT)}: {part.stat().st_size / 1e3:,.0f} kB\n")
    return 0


def _compare(release: Release, parts: Sequence[Path]) -> None:
    """Make a release again.

    Raises:
        ReleaseError: If a part has other bytes.
    """
    with tempfile.TemporaryDirectory(prefix="dovetail-release-") as folder:
        for part in make(release, Path(folder) / "again"):
            if not filecmp.cmp(part, RELEASE / part.name, shallow=False):
                raise ReleaseError(f"{part.name}: made again it is another")
    sys.stdout.write(f"made twice: {len(parts)} files, the same bytes\n")


if __name__ == "__main__":
    sys.exit(main())

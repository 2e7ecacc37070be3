"""Packages of Debian, unpacked and not installed: an interpreter with the libraries it needs.

apt proves their signatures; the hashes of those of the forwarder's image are locked besides.

Source: https://manpages.debian.org/trixie/apt/apt-get.8.en.html (2026-12).
"""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SETTINGS: Final = """\
Dir "{root}";
Dir::State::status "{root}/status";
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
"""


class DebianError(RuntimeError):
    """There is no apt of Debian, or a package cannot be had; one line says which."""


def download(names: Sequence[str], architecture: str, suite: str, folder: Path) -> list[Path]:
    """Download packages, and what they depend on, into a folder; return them, sorted.

    Raises:
        DebianError: If one cannot be had.
    """
    addresses = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)"], {})
    of_debian = [line.split()[0] for line in addresses.splitlines() if line.endswith(" Debian")]
    if not of_debian:
        raise DebianError("apt knows no archive of Debian: run apt-get update")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dovetail-apt-") as made:
        root = Path(made)
        for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial"):
            (root / name).mkdir(parents=True)
        archives = root / "var/cache/apt/archives"
        (archives / "partial").mkdir(parents=True)
        (root / "status").touch()
        settings = _SETTINGS.format(root=root, architecture=architecture)
        (root / "settings").write_text(settings, encoding="utf-8")
        source = f"deb [signed-by={_KEYS} arch={architecture}] {of_debian[0]} {suite} main\n"
        (root / "etc/apt/sources.list").write_text(source, encoding="utf-8")
        own = {"APT_CONFIG": str(root / "settings")}
        _run(["apt-get", "-q", "update"], own)
        _run(["apt-get", "-q", "-y", "--download-only", "install", *names], own)
        for package in archives.glob("*.deb"):
            package.rename(folder / package.name)
    return sorted(folder.glob("*.deb"))


def unpack(packages: Sequence[Path], root: Path) -> None:
    """Unpack packages into a folder that is like the root of Debian, and say which they are.

    A folder has what each is, for those who look for packages with known faults.

    Raises:
        DebianError: If one is broken.
    """
    for name in ("bin", "lib", "sbin", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    known = root / "var" / "lib" / "dpkg" / "status.d"
    known.mkdir(parents=True)
    for package in packages:
        _run(["dpkg", "-x", str(package), str(root)], {})
        about = _run(["dpkg-deb", "--field", str(package)], {})
        (known / package.name.partition("_")[0]).write_text(about, encoding="utf-8")


def locked(packages: Sequence[Path]) -> str:
    """Return the lock of packages: a line with name, version, architecture and hash for each."""
    return "".join(f"{package.name.replace('%3a', ':')} {_hash(package)}\n" for package in packages)


def _hash(package: Path) -> str:
    return f"sha256:{hashlib.sha256(package.read_bytes()).hexdigest()}"


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise DebianError(f"{command[0]} is missing") from error
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise DebianError(f"{command[0]} fails: {(said or ['it said nothing'])[-1][:300]}")
    return done.stdout

"""Installs what the forwarder's image needs of the locked packages, and no more.

    python tools/forwarder_files.py requirements/forwarder.txt FOLDER [amd64 | arm64]

Standard library only: the image's build runs it. Of the forwarder's lock that is left out which it
never imports. With an architecture, as Docker names it, the packages are those of the image;
without one, of this interpreter.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

LIMIT_BYTES: Final = 150 * 1000 * 1000
# What only the asynchronous half of the Kubernetes client needs.
LEFT_OUT: Final = frozenset(
    {
        "aiohappyeyeballs",
        "aiohttp",
        "aiohttp-retry",
        "aiosignal",
        "attrs",
        "frozenlist",
        "multidict",
        "propcache",
        "yarl",
    }
)
PRUNED: Final = ("bin", "kubernetes/aio", "kubernetes/client/api", "*/tests", "**/*.pyi")
# Descriptions of services: one is called, and with roles for service accounts another.
SERVICES: Final = frozenset({"events", "sts"})
# Of wheels, by the architecture as Docker names it; the base is Debian with glibc 2.41.
MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC: Final = ("manylinux2014", "manylinux_2_28")
_PYTHON_VERSION: Final = "3.13"
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==")


def kept(lock: str) -> str:
    """Return a lock without the packages that are left out; comments and hashes go with them."""
    lines: list[str] = []
    keeps = True
    for line in lock.splitlines():
        found = _PIN.match(line)
        if found is not None:
            keeps = found[1].lower() not in LEFT_OUT
        if keeps:
            lines.append(line)
    return "\n".join([*lines, ""])


def prune(target: Path) -> None:
    """Remove what the forwarder never imports."""
    found = [path for pattern in PRUNED for path in target.glob(pattern)]
    described = (target / "botocore" / "data").glob("*/")
    found += [path for path in described if path.is_dir() and path.name not in SERVICES]
    for path in sorted(found):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def size(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def wheels_of(architecture: str) -> list[str]:
    """Return the options of pip for another architecture than that of this machine."""
    machine = MACHINES[architecture]
    return [
        *("--implementation", "cp", "--python-version", _PYTHON_VERSION),
        *(word for glibc in _GLIBC for word in ("--platform", f"{glibc}_{machine}")),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Install into a folder; 1 when that is larger than the image may be."""
    given = sys.argv[1:] if arguments is None else arguments
    lock, target = Path(given[0]), Path(given[1])
    foreign = wheels_of(given[2]) if given[2:] else []
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "forwarder.txt"
        wanted.write_text(kept(lock.read_text(encoding="utf-8")), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-compile", "--only-binary=:all:", "--require-hashes", "--no-deps", *foreign),
            *("--target", str(target), "-r", str(wanted)),
        ]
        subprocess.run(command, check=True)
    prune(target)
    found = size(target)
    sys.stdout.write(f"{found / 1e6:.1f} MB of packages\n")
    return 0 if found <= LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())

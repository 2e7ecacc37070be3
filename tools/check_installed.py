"""Compare what is installed with the locks: names, versions, and the content of every file.

    python -m tools.check_installed

pip checks the hash of an archive when it installs it; this finds what was changed, added or
replaced afterwards. Each installed distribution must be pinned in requirements/dev.txt with its
version, and each of its files must have the hash that its RECORD has.

The list of certificate authorities may have more of them at its end: where a proxy stands between
a machine and the Internet, its administrator appends the proxy's authority to every such list.

Sources: https://packaging.python.org/en/latest/specifications/recording-installed-packages/,
https://pypi.org/project/certifi/ (2026-11).
"""

import base64
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

from tools.make_sbom import DEVELOPMENT, pins

# Of the environment itself: venv brings it, no lock names it.
OWN: Final = frozenset({"dovetail-autoscaler", "pip", "setuptools"})

AUTHORITIES: Final = "certifi/cacert.pem"
_CERTIFICATE: Final = re.compile(
    rb"(?:#[^\n]*\n|\s)*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*"
)


def faults(
    installed: Iterable[metadata.Distribution], locked: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """Yield what is not as it is locked, one line each, sorted."""
    pinned: dict[str, set[str]] = {}
    for name, version in locked:
        pinned.setdefault(_canonical(name), set()).add(version)
    found = {_canonical(distribution.metadata["Name"]): distribution for distribution in installed}
    recorded = _recorded(found.values())
    for name, distribution in sorted(found.items()):
        if name in OWN:
            continue
        if distribution.version not in pinned.get(name, ()):
            wanted = " or ".join(sorted(pinned.get(name, {"nothing"})))
            yield f"{name} {distribution.version} is installed, the lock has {wanted}"
        changed = [file for file, _ in _files(distribution) if _changed(file, recorded)]
        yield from (f"{name}: {file} was changed" for file in changed)


def _files(distribution: metadata.Distribution) -> Iterator[tuple[metadata.PackagePath, str]]:
    """Yield the files with their hashes, as `sha256=...`.

    Scripts are left out, for pip writes them for this machine.
    """
    for file in distribution.files or ():
        if file.hash is not None and ".." not in file.parts:
            yield file, f"{file.hash.mode}={file.hash.value}"


def _recorded(distributions: Iterable[metadata.Distribution]) -> Mapping[str, set[str]]:
    """Return the hashes of each path: two distributions may bring one file."""
    hashes: dict[str, set[str]] = {}
    for distribution in distributions:
        for file, recorded in _files(distribution):
            hashes.setdefault(str(file.locate()), set()).add(recorded)
    return hashes


def _changed(file: metadata.PackagePath, recorded: Mapping[str, set[str]]) -> bool:
    """Return whether a file is gone or has none of the hashes of its path."""
    try:
        content = Path(file.locate()).read_bytes()
    except OSError:
        return True
    if str(file) == AUTHORITIES and file.size is not None:
        content, appended = content[: file.size], content[file.size :]
        if _CERTIFICATE.sub(b"", appended):
            return True
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}" not in recorded[str(file.locate())]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    locked = [(name, version) for name, version, _ in pins(DEVELOPMENT)]
    found = list(faults(metadata.distributions(), locked))
    for line in found:
        sys.stderr.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

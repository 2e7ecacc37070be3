"""The functions' real bundle: made as `cdk deploy` makes it, weighed, and made again to compare.

    python -m tools.make_bundle

Packages are installed from the lock for Lambda (Python 3.13, arm64), whatever this machine is.
"""

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BUNDLE: Final = ROOT / ".build" / "bundle"
LIMIT_BYTES: Final = 60 * 1000 * 1000


def digest(folder: Path) -> str:
    """Return a hash over the paths and contents of all files."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            total.update(path.relative_to(folder).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def size(folder: Path) -> int:
    """Return the bytes of all files, unzipped."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def stage() -> Path:
    """Return a folder with the bundle's files: both builds use the same copy."""
    from infra.aws.bundling import staged  # noqa: PLC0415

    return staged(with_lock=True)


def make(source: Path, target: Path) -> None:
    """Fill a folder as the asset of `cdk deploy` is filled from its staged source.

    Raises:
        BundlingError: If pip fails.
    """
    # Only this needs the CDK's packages.
    from infra.aws.bundling import LockedInstall  # noqa: PLC0415

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    LockedInstall(source).try_bundle(str(target))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the bundle; 1 when it is too large or not the same twice."""
    parser = argparse.ArgumentParser(prog="python -m tools.make_bundle", description=__doc__)
    parser.add_argument("--once", action="store_true", help="do not make it again to compare")
    given = parser.parse_args(arguments)
    source = stage()
    make(source, BUNDLE)
    weight, made = size(BUNDLE), digest(BUNDLE)
    sys.stdout.write(f"{BUNDLE}: {weight / 1e6:.1f} MB unzipped, sha256 {made}\n")
    if weight > LIMIT_BYTES:
        sys.stderr.write(f"bundle: more than {LIMIT_BYTES / 1e6:.0f} MB: prune it in bundling.py\n")
        return 1
    if not given.once:
        with tempfile.TemporaryDirectory(prefix="dovetail-bundle-") as folder:
            make(source, Path(folder) / "again")
            again = digest(Path(folder) / "again")
        if again != made:
            sys.stderr.write(f"bundle: made again it is {again}: it is not reproducible\n")
            return 1
        sys.stdout.write("made again: the same\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

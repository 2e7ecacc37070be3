"""How judges are got: by the registries' own clients, in the version that is locked here.

All of it is kept in .build/judges until a lock changes.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from infra.local.demo.children import ROOT
from infra.local.demo.problem import Problem

HERE: Final = Path(__file__).parent
CACHE: Final = ROOT / ".build" / "judges"


def node_packages() -> Path:
    """Return the folder `node_modules` of what npm/package-lock.json locks.

    Raises:
        Problem: There is no npm, or a package cannot be had.
    """
    lock = HERE / "npm" / "package-lock.json"

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(HERE / "npm" / name, folder / name)
        run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    return made("npm", lock.read_bytes(), install) / "node_modules"


def jars() -> list[Path]:
    """Return the event-ruler and what it depends on, each as its hash in ruler/jars.sha256 says.

    Raises:
        Problem: There is no Maven, a jar cannot be had, or one is another than was looked at.
    """
    project, listed = HERE / "ruler" / "pom.xml", HERE / "ruler" / "jars.sha256"

    def install(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        run(["mvn", "-q", "-B", "-f", str(project), *goal], folder)
        hashes = {path.name: hashlib.sha256(path.read_bytes()) for path in folder.glob("*.jar")}
        lines = [line.split() for line in listed.read_text("ascii").splitlines()]
        wanted = {name: digest for digest, name in lines}
        for name in sorted(wanted.keys() | hashes.keys()):
            if name not in hashes or hashes[name].hexdigest() != wanted.get(name):
                raise Problem(f"{name}: is not what ruler/jars.sha256 says")

    state = project.read_bytes() + listed.read_bytes()
    return sorted(made("jars", state, install).glob("*.jar"))


def made(name: str, state: bytes, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, filled anew where what decides its content changed.

    Args:
        state: Decides the content.
        make: Fills an empty folder.

    Raises:
        Problem: As `make`; nothing is kept then.
    """
    folder, stamp = CACHE / name, CACHE / f"{name}.stamp"
    digest = hashlib.sha256(state).hexdigest()
    if stamp.exists() and stamp.read_text("ascii") == digest:
        return folder
    stamp.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder)
    stamp.write_text(digest, "ascii")
    return folder


def run(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Return what a program prints.

    Raises:
        Problem: It is missing or fails.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise Problem(f"{command[0]} is missing") from error
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Problem(f"{command[0]} fails: {(said or ['it said nothing'])[-1][:300]}")
    return done.stdout

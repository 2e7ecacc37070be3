"""Makes the virtual environment and installs a locked set of packages into it, with uv.

    python3 tools/set_up.py .venv requirements/local.txt

It runs with the machine's own Python, before anything is installed. Each stage is one line: what it
does, and how long it took. uv installs with the hashes of the lock, as pip does, and in a tenth of
the time; pip brings uv itself, by its hash. What pip is told of package indexes holds for uv, too.

Source: https://docs.astral.sh/uv/pip/compatibility/ (2026-11).
"""

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path("requirements/build.txt")
# Settings of pip with those of uv that mean the same.
INDEXES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Say what is done, and when it has been done how long it took."""
    sys.stdout.write(f"{what} ...\n")
    sys.stdout.flush()
    began = time.monotonic()
    yield
    sys.stdout.write(f"  {time.monotonic() - began:.1f} s\n")
    sys.stdout.flush()


def locked(file: Path) -> dict[str, str]:
    """Return the versions that a file of requirements names."""
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    pinned = [words[0].partition("==") for words in lines if words and "==" in words[0]]
    return {name: version for name, _, version in pinned}


def uv_environment(pip_settings: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of uv: what pip is told of indexes, unless uv is told itself.

    Args:
        pip_settings: What `pip config list` prints: `global.index-url='https://...'` and the like.
        environment: That of this process.
    """
    settings = dict(line.partition("=")[::2] for line in pip_settings.splitlines())
    told: dict[str, str] = {}
    for section in (":env:", "install", "global"):
        for name, variable in INDEXES.items():
            if value := settings.get(f"{section}.{name}"):
                told.setdefault(variable, " ".join(str(ast.literal_eval(value)).split()))
    return {**told, **environment}


def main() -> int:
    """Install; return the exit code of the first command that failed."""
    venv, requirements = ROOT / sys.argv[1], ROOT / sys.argv[2]
    python = venv / "bin" / "python"
    try:
        if not python.exists():
            with stage(f"making a virtual environment in {sys.argv[1]}"):
                _run([sys.executable, "-m", "venv", str(venv)])
        wanted = locked(ROOT / BUILD)["uv"]
        if not list(venv.glob(f"lib/python*/site-packages/uv-{wanted}.dist-info")):
            with stage(f"installing uv {wanted}, which installs the rest"):
                words = [*("-m", "pip", "install", "--quiet", "--disable-pip-version-check")]
                _run(
                    [str(python), *words, "--no-deps", "--require-hashes", "-r", str(ROOT / BUILD)]
                )
        listed = subprocess.run(
            [str(python), "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
        )
        environment = uv_environment(listed.stdout, os.environ)
        # It shows its progress to people, and then each package it has installed.
        quiet = [] if sys.stderr.isatty() else ["--quiet"]
        uv = [*(str(venv / "bin" / "uv"), "pip", "install", "--python", str(python)), *quiet]
        with stage(f"installing {len(locked(requirements))} locked packages of {sys.argv[2]}"):
            _run([*uv, "--no-deps", "--require-hashes", "-r", str(requirements)], environment)
            own = ["--no-deps", "--no-build-isolation", "--quiet", "--editable", str(ROOT)]
            _run([*uv, *own], environment)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


def _run(words: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(words, check=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())

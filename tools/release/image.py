"""The forwarder's image for both architectures, as an OCI layout, without Docker and a registry.

    python -m tools.release.image --lock

Files and start are those of functions/forwarder/Dockerfile. Its base comes from a registry of
images; here the base is the interpreter of Debian 13, which the Dockerfile's base is made on, from
packages that apt proves and requirements/image.txt locks.
"""

import argparse
import io
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

from infra.aws.forwarder_image import DOCKERFILE, staged
from tools import forwarder_files
from tools.release import debian_packages, oci
from tools.release.debian_packages import DebianError

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = ROOT / "requirements" / "image.txt"
SUITE: Final = "trixie"
INTERPRETER: Final = ("python3.13-minimal", "libpython3.13-stdlib")
_SITE: Final = Path("lib") / "python3.13" / "site-packages"
# What nobody needs who runs one program; what says whose work it is stays.
_PRUNED: Final = (
    "usr/bin/debconf*",
    "usr/sbin",
    "usr/lib/python3.13/ensurepip",
    "usr/lib/python3.13/idlelib",
    "usr/lib/python3.13/pydoc_data",
    "usr/share/[!dz]*",
    "usr/share/debconf",
    "usr/share/doc-base",
    "usr/share/doc/*/[!c]*",
    "usr/share/doc/*/changelog*",
    "usr/share/zoneinfo/[pr][oi]*",
    "var/cache",
)
# By the architecture as Docker names it: its name in folders of Debian, and its dynamic linker.
_LINKERS: Final = {
    "amd64": ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    "arm64": ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
}
Compile = Callable[[Path, str], None]
_USERS: Final = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532::/:/sbin/nologin\n"


def layout(version: str, epoch: int) -> bytes:
    """Return the image.

    Raises:
        DebianError: If a package cannot be had or is another than was locked.
    """
    source = staged()
    words = start(DOCKERFILE_TEXT)
    manifests, blobs = list[oci.Blob](), list[oci.Blob]()
    own = _architecture()
    with tempfile.TemporaryDirectory(prefix="dovetail-image-") as made:
        folders = {name: Path(made) / name for name in sorted(forwarder_files.MACHINES)}
        for architecture, folder in folders.items():
            packages = debian_packages.download(INTERPRETER, architecture, SUITE, folder / "debian")
            check(packages)
            _unpack(packages, folder / "base")
            _install(source, architecture, folder / "own")

        def compile_(folder: Path, inside: str) -> None:
            _compile(own, folders[own] / "base", folder, inside)

        layers = {
            architecture: [
                oci.layer(_base(folder / "base", compile_), epoch),
                oci.layer(_forwarder(folder / "own", compile_), epoch),
            ]
            for architecture, folder in folders.items()
        }
    for architecture, pair in layers.items():
        config = oci.document(
            oci.CONFIG,
            {
                "architecture": architecture,
                "os": "linux",
                "created": oci.moment(epoch),
                "config": words,
                "rootfs": {"type": "layers", "diff_ids": [digest for _, digest in pair]},
                "history": [
                    {"created": oci.moment(epoch), "created_by": made_by}
                    for made_by in (f"packages of Debian {SUITE}", "make release")
                ],
            },
        )
        contents = [blob for blob, _ in pair]
        platform = {"architecture": architecture, "os": "linux"}
        manifests.append(oci.manifest(config, contents, {}, platform=platform))
        blobs += [config, *contents]
    annotations = {
        "org.opencontainers.image.created": oci.moment(epoch),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": "dovetail forwarder",
        "org.opencontainers.image.version": version,
    }
    top = oci.index(manifests, annotations)
    return oci.archive(version, top, (*manifests, *blobs), epoch)


DOCKERFILE_TEXT: Final = (ROOT / DOCKERFILE).read_text(encoding="utf-8")


def start(dockerfile: str) -> dict[str, Any]:
    """Return how a container of the last stage of a Dockerfile starts, as an image says it."""
    stage = re.sub(r"\\\n\s*", "", dockerfile.rpartition("\nFROM ")[2])
    said: dict[str, list[str]] = {}
    for line in stage.splitlines():
        word, _, rest = line.partition(" ")
        said.setdefault(word, []).append(rest)
    return {
        "Entrypoint": json.loads(said["ENTRYPOINT"][0]),
        "Env": ["PATH=/opt/forwarder/bin:/usr/bin", *shlex.split(" ".join(said["ENV"]))],
        "ExposedPorts": {f"{port}/tcp": {} for port in said["EXPOSE"]},
        "Labels": dict(entry.split("=", 1) for entry in shlex.split(" ".join(said["LABEL"]))),
        "User": said["USER"][0],
        "WorkingDir": said["WORKDIR"][0],
    }


def check(packages: Sequence[Path]) -> None:
    """Compare packages with the lock.

    Raises:
        DebianError: If one is another than was locked.
    """
    known = set(LOCK.read_text(encoding="utf-8").splitlines())
    for line in debian_packages.locked(packages).splitlines():
        if line not in known:
            name = line.partition(" ")[0]
            raise DebianError(
                f"{name} is not what requirements/image.txt locks: run make lock-image, and read "
                "what it changes"
            )


def _architecture() -> str:
    """Return the architecture of this machine, as Docker names it.

    Raises:
        DebianError: If the image is not made for it: its interpreter writes the bytecode.
    """
    machine = platform.machine()
    for architecture, known in forwarder_files.MACHINES.items():
        if machine == known and sys.platform == "linux":
            return architecture
    raise DebianError(f"this machine is {sys.platform} on {machine}: make it on Linux")


def _unpack(packages: Sequence[Path], root: Path) -> None:
    debian_packages.unpack(packages, root)
    for path in [path for pattern in _PRUNED for path in root.glob(pattern)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (root / "tmp").mkdir(mode=0o1777)
    (root / "etc" / "passwd").write_text(_USERS, encoding="utf-8")
    (root / "etc" / "group").write_text("root:x:0:\nnonroot:x:65532:\n", encoding="utf-8")


def _install(source: Path, architecture: str, root: Path) -> None:
    """Fill a folder as the last stage of the Dockerfile does."""
    own = root / "opt" / "forwarder"
    (own / "bin").mkdir(parents=True)
    (own / "bin" / "python").symlink_to("/usr/bin/python3.13")
    (own / "pyvenv.cfg").write_text(
        "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.13\n", encoding="utf-8"
    )
    lock = source / "requirements" / "forwarder.txt"
    with redirect_stdout(io.StringIO()):
        forwarder_files.main([str(lock), str(own / _SITE), architecture])
    for name in ("shared", "functions"):
        shutil.copytree(source / name, root / "app" / name)
    (root / "app" / DOCKERFILE).unlink()


def _base(root: Path, compile_: Compile) -> Path:
    compile_(root / "usr" / "lib" / "python3.13", "/usr/lib/python3.13")
    return root


def _forwarder(root: Path, compile_: Compile) -> Path:
    compile_(root / "opt" / "forwarder" / _SITE, f"/opt/forwarder/{_SITE}")
    compile_(root / "app", "/app")
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    return root


def _compile(architecture: str, base: Path, folder: Path, inside: str) -> None:
    """Write bytecode with the interpreter of the image: the root is read-only when it runs."""
    libraries, linker = _LINKERS[architecture]
    done = subprocess.run(
        [
            str(base / "usr" / "lib" / libraries / linker),
            *("--library-path", str(base / "usr" / "lib" / libraries)),
            *(str(base / "usr" / "bin" / "python3.13"), "-m", "compileall", "-q", "-j", "1"),
            *("--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", inside),
            str(folder),
        ],
        env={**os.environ, "PYTHONHOME": str(base / "usr"), "PYTHONPATH": ""},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise DebianError(f"bytecode of {inside}: {(done.stdout + done.stderr).strip()[-300:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Lock the packages of the base again; 1 when one cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.image", description=__doc__)
    parser.add_argument("--lock", action="store_true", required=True, help="lock them again")
    parser.parse_args(arguments)
    lines = set[str]()
    try:
        for architecture in sorted(forwarder_files.MACHINES):
            with tempfile.TemporaryDirectory(prefix="dovetail-image-") as made:
                packages = debian_packages.download(INTERPRETER, architecture, SUITE, Path(made))
                lines |= set(debian_packages.locked(packages).splitlines())
    except DebianError as error:
        sys.stderr.write(f"lock-image: {error}\n")
        return 1
    LOCK.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

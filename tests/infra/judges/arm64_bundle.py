"""Python 3.13 of arm64, emulated: is the functions' bundle imported as Lambda would?

Interpreter and libraries are Debian's packages, the emulator too, unpacked into .build/judges and
not installed; apt proves their signatures. Debian's glibc is newer than that of Amazon Linux 2023,
so what a wheel needs of it is compared with the runtime's 2.34.

Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html and
https://docs.aws.amazon.com/linux/al2023/ug/core-glibc.html (2026-11).
"""

import json
import platform
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from infra.aws.bundling import SERVICES, BundlingError
from infra.aws.functions import FUNCTIONS
from infra.local.demo.problem import Problem
from tests.infra.judges.programs import CACHE, made, run
from tests.infra.judges.verdicts import Verdict
from tools import make_bundle

_INTERPRETER: Final = ("python3.13-minimal", "libpython3.13-stdlib")
_EMULATOR: Final = "qemu-user-static"
_OF_INTERPRETER, _OF_EMULATOR = "trixie", "bookworm"
_GLIBC: Final = (2, 34)
_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SETTINGS: Final = """\
Dir "{root}";
Dir::State::status "{root}/status";
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; "{machine}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
"""
_SUITES: Final = """\
deb [signed-by={keys} arch=arm64] {address} {of_interpreter} main
deb [signed-by={keys} arch={machine}] {address} {of_emulator} main
"""
# Runs inside: imports the handlers and each native module, and makes a client of each service.
_IMPORTS: Final = """
import importlib, json, pathlib, sys
bundle, handlers, services = pathlib.Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3].split()
sys.path.insert(0, str(bundle))
native = [p.relative_to(bundle) for p in bundle.rglob("*.so")]
failed = []
def tried(what, do):
    try:
        return do()
    except BaseException as error:
        failed.append(f"{what}: {type(error).__name__}: {error}")
for name in [*handlers, *(".".join([*p.parts[:-1], p.name.partition(".")[0]]) for p in native)]:
    tried(name, lambda: importlib.import_module(name))
boto3 = importlib.import_module("boto3")
for name in services:
    tried(f"client of {name}", lambda: boto3.client(name, region_name="eu-west-1"))
ours = (str(bundle), str(pathlib.Path(json.__file__).parents[1]))
for name, module in sorted(sys.modules.items()):
    if not (getattr(module, "__file__", None) or ours[0]).startswith(ours):
        failed.append(f"{name} comes from {module.__file__}")
machine = importlib.import_module("platform").machine()
version = f"{sys.version.split()[0]} {machine}"
print(json.dumps({"version": version, "modules": len(sys.modules), "failed": failed}))
"""


def ask() -> Verdict:
    """Ask of each module and client.

    Raises:
        Problem: If there is no apt of Debian, a package cannot be had, or no bundle can be made.
    """
    root = made("arm64", f"{_INTERPRETER}{_EMULATOR}{_SETTINGS}{_SUITES}".encode(), _unpack)
    bundle = CACHE / "bundle"
    try:
        make_bundle.make(make_bundle.stage(), bundle)
    except BundlingError as error:
        raise Problem(str(error)) from error
    handlers = [f"functions.{plan.name}.handler" for plan in FUNCTIONS]
    interpreter = root / "usr" / "bin" / "python3.13"
    command = [*_emulated(root), str(interpreter), "-I", "-B", "-c", _IMPORTS, str(bundle)]
    said = json.loads(run([*command, " ".join(handlers), " ".join(SERVICES)]))
    return Verdict(
        version=said["version"],
        asked=said["modules"] + len(SERVICES),
        disagreements=(*said["failed"], *_too_new(bundle.rglob("*.so*"))),
    )


def _emulated(root: Path) -> list[str]:
    return [str(root / "usr" / "bin" / "qemu-aarch64-static"), "-L", str(root)]


def _too_new(libraries: Iterable[Path]) -> list[str]:
    """Return the native files that need a newer glibc than the runtime has."""
    return [
        f"{path.name} needs glibc {found.decode()}"
        for path in libraries
        for found in sorted(set(re.findall(rb"GLIBC_(\d+\.\d+)", path.read_bytes())))
        if tuple(int(part) for part in found.split(b".")) > _GLIBC
    ]


def _unpack(root: Path) -> None:
    """Unpack interpreter, libraries and emulator into a folder.

    Raises:
        Problem: If a package cannot be had.
    """
    machine = run(["dpkg", "--print-architecture"]).strip()
    if machine == "arm64":
        raise Problem(f"this machine is {platform.machine()}: nothing to emulate")
    addresses = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)"])
    of_debian = [line.split()[0] for line in addresses.splitlines() if line.endswith(" Debian")]
    if not of_debian:
        raise Problem("apt knows no archive of Debian: run apt-get update")
    apt = root / "apt"
    for folder in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial"):
        (apt / folder).mkdir(parents=True)
    (apt / "var/cache/apt/archives/partial").mkdir(parents=True)
    (apt / "status").touch()
    (apt / "settings").write_text(_SETTINGS.format(root=apt, machine=machine), encoding="utf-8")
    suites = _SUITES.format(
        keys=_KEYS,
        address=of_debian[0],
        machine=machine,
        of_interpreter=_OF_INTERPRETER,
        of_emulator=_OF_EMULATOR,
    )
    (apt / "etc/apt/sources.list").write_text(suites, encoding="utf-8")
    own = {"APT_CONFIG": str(apt / "settings")}
    run(["apt-get", "-q", "update"], apt, own)
    run(["apt-get", "-q", "-y", "--download-only", "install", *_INTERPRETER], apt, own)
    run(["apt-get", "-q", "download", f"{_EMULATOR}:{machine}"], apt, own)
    (root / "lib").symlink_to("usr/lib")
    for package in sorted(apt.rglob("*.deb")):
        run(["dpkg", "-x", str(package), str(root)])
    shutil.rmtree(apt)
    for emulator in (root / "usr" / "bin").glob("qemu-*"):
        if emulator != Path(_emulated(root)[0]):
            emulator.unlink()

"""The code of the functions as one asset, made without Docker.

`code` carries the repository's code only. `full` adds the locked dependencies, built for the
Lambda runtime (Python 3.13 on arm64); the lock file is part of the asset's source, so the
asset's hash changes when it does.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, Literal

import jsii
from aws_cdk import BundlingOptions, DockerImage, ILocalBundling
from aws_cdk import aws_lambda as lambda_

from infra.aws.config import ConfigError

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = Path("requirements") / "functions.txt"
PACKAGES: Final = ("functions", "shared")
# Entry points that do not run in Lambda.
LEFT_OUT: Final = (Path("functions") / "cli", Path("functions") / "forwarder")

# manylinux_2_28 for wheels that have dropped the older tag; AL2023 has glibc 2.34.
PLATFORMS: Final = ("manylinux2014_aarch64", "manylinux_2_28_aarch64")
PYTHON_VERSION: Final = "3.13"

# The service descriptions of the SDK that are kept. The locked SDK is bundled because the runtime's
# own has another version than the one the tests run with.
SERVICES: Final = (
    "dynamodb",
    "ec2",
    "eks",
    "iam",
    "lambda",
    "pricing",
    "s3",
    "sqs",
    "ssm",
    "stepfunctions",
    "sts",
)
# Left out of the bundle: nothing imports them.
PRUNED: Final = ("bin", "boto3/examples", "*/tests", "**/*.pyi")


NO_BYTECODE: Final = (
    f"no Python {PYTHON_VERSION} is found: the functions compile what they import at each cold "
    "start, about 2 s of CPU. Install it, or name it in DOVETAIL_BUNDLE_PYTHON, and deploy again"
)


class BundlingError(RuntimeError):
    """The dependencies could not be installed; the text says why."""


@jsii.implements(ILocalBundling)
class LockedInstall:
    """Installs the lock file for the Lambda runtime and puts the code beside it."""

    def __init__(self, source: Path) -> None:
        self._source = source

    def try_bundle(self, output_dir: str, *_args: Any, **_options: Any) -> bool:
        """Fill `output_dir`; always succeeds or raises, so that Docker is never asked.

        Raises:
            BundlingError: If pip fails.
        """
        _install(self._source / LOCK, Path(output_dir))
        for package in PACKAGES:
            shutil.copytree(self._source / package, Path(output_dir) / package)
        interpreter = target_interpreter()
        if interpreter:
            _compile(interpreter, Path(output_dir))
        # The CDK lets every user of this computer write into it, as a container may run as another
        # user; but its content becomes the functions' code. Source: https://github.com/aws/aws-cdk/
        # blob/main/packages/aws-cdk-lib/core/lib/asset-staging.ts (`bundle`), 2026-11-29.
        Path(output_dir).chmod(0o755)
        return True


def function_code(bundle: Literal["full", "code"]) -> lambda_.Code:
    """Return the asset all functions share.

    Raises:
        ConfigError: If the lock file that `full` needs is not there.
    """
    source = staged(with_lock=bundle == "full")
    if bundle == "code":
        return lambda_.Code.from_asset(str(source))
    return lambda_.Code.from_asset(
        str(source),
        bundling=BundlingOptions(
            # Never pulled: local bundling either succeeds or raises.
            image=DockerImage.from_registry("never-used"),
            local=LockedInstall(source),
        ),
    )


def staged(*, with_lock: bool) -> Path:
    """Return a fresh folder with exactly the files that decide what the asset contains."""
    folder = Path(tempfile.mkdtemp(prefix="dovetail-asset-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            inside = path.relative_to(ROOT)
            if any(inside.is_relative_to(left_out) for left_out in LEFT_OUT):
                continue
            _copy(path, folder / inside)
    for path in sorted((ROOT / "shared").rglob("*.json")):
        _copy(path, folder / path.relative_to(ROOT))
    if with_lock:
        if not (ROOT / LOCK).is_file():
            raise ConfigError(f"bundle: {LOCK} is missing: run `make lock` or give bundle=code")
        _copy(ROOT / LOCK, folder / LOCK)
        recipe = {
            "bytecode": bool(target_interpreter()),
            "platforms": PLATFORMS,
            "pruned": PRUNED,
            "python": PYTHON_VERSION,
            "services": SERVICES,
        }
        (folder / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    return folder


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def _install(lock: Path, target: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        # Bytecode of this interpreter would have the wrong version and contain timestamps.
        *("--no-compile", "--only-binary=:all:", "--implementation", "cp"),
        *("--python-version", PYTHON_VERSION),
        *(word for platform in PLATFORMS for word in ("--platform", platform)),
        *("--require-hashes", "--no-deps", "--target", str(target), "-r", str(lock)),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 -- fixed words
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"pip ended with {done.returncode}"
        raise BundlingError(f"{LOCK}: the bundle could not be installed: {reason}")
    described = (path for path in target.glob("botocore/data/*/") if path.name not in SERVICES)
    for path in [
        *(path for pattern in PRUNED for path in target.glob(pattern)),
        *described,
    ]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def target_interpreter() -> str:
    """Return an interpreter on this computer that writes the runtime's bytecode, empty for none.

    Without one the functions compile what they import at each cold start. Nothing is downloaded;
    DOVETAIL_BUNDLE_PYTHON names one that is neither on the path nor known to uv.
    """
    named = os.environ.get("DOVETAIL_BUNDLE_PYTHON")
    if named:
        return named
    on_path = shutil.which(f"python{PYTHON_VERSION}")
    if on_path is not None and _runs(on_path):
        return on_path
    finder = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if finder is None:
        return ""
    done = subprocess.run(  # noqa: S603 -- fixed words
        [finder, "python", "find", "--offline", "--no-python-downloads", PYTHON_VERSION],
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _runs(interpreter: str) -> bool:
    """Return whether an interpreter runs: the shim of a version that is not active does not."""
    done = subprocess.run(  # noqa: S603 -- a file of the path
        [interpreter, "-c", ""], check=False, capture_output=True
    )
    return done.returncode == 0


def _compile(interpreter: str, target: Path) -> None:
    """Write bytecode that depends on the source only: no times, no path of this computer.

    Raises:
        BundlingError: If the interpreter fails.
    """
    done = subprocess.run(  # noqa: S603 -- fixed words
        [
            *(interpreter, "-m", "compileall", "-q", "-j", "1"),
            *("--invalidation-mode", "unchecked-hash", "-s", str(target), "-p", "/var/task"),
            str(target),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BundlingError(f"{interpreter}: the bytecode could not be written: {done.stderr}")

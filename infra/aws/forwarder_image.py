"""The forwarder's image: an asset that `cdk deploy` builds and pushes, or one that is named.

Nothing is built at synthesis: the files are staged, and `docker build` runs on the deployer's
computer when the asset is published into the registry of the bootstrapped account.

Source: https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_ecr_assets-readme.html
(2026-11).
"""

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Final

from aws_cdk import aws_ecr_assets as ecr_assets
from constructs import Construct

from infra.aws.bundling import ROOT

DOCKERFILE: Final = Path("functions") / "forwarder" / "Dockerfile"
LOCK: Final = Path("requirements") / "forwarder.txt"
# Nodes of both architectures pull the same name.
PLATFORMS: Final = ("linux/amd64", "linux/arm64")
# What the Dockerfile copies.
_FILES: Final = (
    DOCKERFILE,
    LOCK,
    Path("tools") / "forwarder_files.py",
    Path("functions") / "__init__.py",
)
_FOLDERS: Final = (Path("shared"), Path("functions") / "forwarder")


def forwarder_image(scope: Construct, named: str) -> str:
    """Return the name under which clusters pull the forwarder's image.

    Args:
        scope: The stack that gets the asset.
        named: An image that exists already, used instead of an asset. Empty for none.
    """
    if named:
        return named
    asset = ecr_assets.DockerImageAsset(
        scope,
        "ForwarderImage",
        directory=str(staged()),
        file=DOCKERFILE.as_posix(),
        platform=ecr_assets.Platform.custom(",".join(PLATFORMS)),
        display_name="forwarder",
    )
    return asset.image_uri


def staged() -> Path:
    """Return a fresh folder with exactly the files that decide what the image contains."""
    folder = Path(tempfile.mkdtemp(prefix="dovetail-image-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in _FILES:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, folder / path)
    for path in _FOLDERS:
        shutil.copytree(
            ROOT / path,
            folder / path,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "Dockerfile*"),
        )
    return folder

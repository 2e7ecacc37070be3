"""An image of the user's own: chosen by `amiSelector`, told exactly what the user wrote."""

from typing import Final

from shared.ami_families.al2023 import AL2023
from shared.ami_families.bootstrap_script import AL2
from shared.ami_families.bottlerocket import BOTTLEROCKET
from shared.ami_families.family import Family, Joining
from shared.ami_families.node_settings import NodeSettings
from shared.ami_families.scripts import BOOTSTRAP
from shared.model.errors import InvalidManifestError


def _check(_custom: str) -> None:
    """Take anything: only the image knows what it reads."""


def _settings(custom: str) -> NodeSettings:
    """Return what it sets, if it is written as one of the other families reads it."""
    for family in (AL2,) if BOOTSTRAP in custom else (BOTTLEROCKET, AL2023):
        try:
            return family.settings(custom)
        except InvalidManifestError:
            continue
    return NodeSettings(unread=("all of it",))


def _write(_joining: Joining, custom: str) -> str:
    return custom


CUSTOM: Final = Family(
    name="Custom", parameter=None, write=_write, check=_check, settings=_settings, disks=()
)

"""A user's own image: selected by `amiSelector`; it gets the user's user data unchanged."""

from typing import Final

from shared.instance_types.ami_families.al2_ubuntu import AL2
from shared.instance_types.ami_families.al2023 import AL2023
from shared.instance_types.ami_families.bottlerocket import BOTTLEROCKET
from shared.instance_types.ami_families.family import BootstrapOptions, Family
from shared.instance_types.ami_families.node_settings import NodeSettings
from shared.instance_types.ami_families.scripts import BOOTSTRAP
from shared.model.errors import InvalidManifestError


def _check(_custom: str) -> None:
    """Accept anything: only the image knows what it reads."""


def _settings(custom: str) -> NodeSettings:
    """Return the settings of user data, if one of the other families can read it."""
    for family in (AL2,) if BOOTSTRAP in custom else (BOTTLEROCKET, AL2023):
        try:
            return family.settings(custom)
        except InvalidManifestError:
            continue
    return NodeSettings(unread=("all of it",))


def _write(_options: BootstrapOptions, custom: str) -> str:
    return custom


CUSTOM: Final = Family(
    name="Custom", parameter=None, write=_write, check=_check, settings=_settings, disks=()
)

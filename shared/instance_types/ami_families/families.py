"""All AMI families, by name."""

from collections.abc import Mapping
from typing import Final

from shared.instance_types.ami_families.al2_ubuntu import AL2, UBUNTU
from shared.instance_types.ami_families.al2023 import AL2023
from shared.instance_types.ami_families.bottlerocket import BOTTLEROCKET
from shared.instance_types.ami_families.custom import CUSTOM
from shared.instance_types.ami_families.family import Family
from shared.model.errors import PermanentError
from shared.model.provisioner import AMI_FAMILIES

FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family for family in (AL2023, BOTTLEROCKET, AL2, UBUNTU, CUSTOM)
}
DEFAULT: Final = AMI_FAMILIES[0]


def refuse_wrong_user_data(family: str, custom: str) -> None:
    """Check the user's part of user data on its own.

    Raises:
        InvalidManifestError: With line or part, and what to write instead.
    """
    FAMILIES[family].refuse_wrong(custom)


def family_of(name: str) -> Family:
    """Return the family that `amiFamily` names.

    Raises:
        PermanentError: If there is none; the message lists all.
    """
    if name not in FAMILIES:
        raise PermanentError(f"amiFamily: {name!r}: use one of {', '.join(FAMILIES)}")
    return FAMILIES[name]

"""How a machine becomes a node: one module for each AMI family, behind one small interface.

A family says which public parameter names its image, which disks its machines have, and how its
user data is written: ours, with what the user wants done besides.
"""

from shared.ami_families.families import DEFAULT, FAMILIES, family_of, refuse_wrong_user_data
from shared.ami_families.family import USER_DATA_LIMIT_BYTES, Family, ImageRequest, Joining
from shared.ami_families.provisioner_settings import with_user_data

__all__ = [
    "DEFAULT",
    "FAMILIES",
    "USER_DATA_LIMIT_BYTES",
    "Family",
    "ImageRequest",
    "Joining",
    "family_of",
    "refuse_wrong_user_data",
    "with_user_data",
]

"""AMI families: how an instance becomes a node; one module for each family, with one interface.

A family defines the public parameter of its image, the disks of its instances, and how its user
data is written: Dovetail's own part, and the user's.
"""

from shared.instance_types.ami_families.families import (
    DEFAULT,
    FAMILIES,
    family_of,
    refuse_wrong_user_data,
)
from shared.instance_types.ami_families.family import (
    USER_DATA_LIMIT_BYTES,
    BootstrapOptions,
    Family,
    ImageRequest,
)
from shared.instance_types.ami_families.provisioner_settings import with_user_data_settings

__all__ = [
    "DEFAULT",
    "FAMILIES",
    "USER_DATA_LIMIT_BYTES",
    "BootstrapOptions",
    "Family",
    "ImageRequest",
    "family_of",
    "refuse_wrong_user_data",
    "with_user_data_settings",
]

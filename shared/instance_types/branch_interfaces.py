"""How many pods can have their own (branch) network interface on an instance of a type.

EC2 does not return this number. It is the number of interfaces of the instance's size less the
instance's own; types that are known to differ are listed. A type that is not listed gets the
lowest number of its size.

Source: https://github.com/aws/amazon-vpc-resource-controller-k8s (pkg/aws/vpc/limits.go), in the
state of https://github.com/aws/karpenter-provider-aws (zz_generated.vpclimits.go at 01a436f,
read 2026-11), https://docs.aws.amazon.com/eks/latest/userguide/security-groups-for-pods.html.
"""

from collections.abc import Mapping
from typing import Final

from shared.instance_types.document import TypeRow
from shared.model import labels as keys

POD_INTERFACE: Final = "vpc.amazonaws.com/pod-eni"

# The most interfaces of an instance, by size; flex families have about half.
_ATTACHED: Final = {"medium": 6, "large": 12, "xlarge": 22, "2xlarge": 42, "3xlarge": 42}
_ATTACHED_FLEX: Final = {"medium": 3, "large": 6, "xlarge": 12, "2xlarge": 22, "4xlarge": 42}
_BELOW_16: Final = 62
_FROM_16: Final = 122
_MANY: Final = 16

# Families without a trunk interface, besides all that do not use the Nitro system.
_WITHOUT: Final = frozenset({"hpc6a", "hpc6id", "hpc7a", "hpc8a", "trn2", "trn2u", "u-6tb1"})
_WITHOUT_LETTERS: Final = ("t2", "t3", "t4", "t8", "mac")

_LISTED: Final[Mapping[str, Mapping[str, int]]] = {
    "a1": {"medium": 10, "metal": 54},
    "c8i": {"8xlarge": 82, "12xlarge": 110},
    "c8i-flex": {"12xlarge": 110, "16xlarge": 106},
    "c8ib": {"8xlarge": 84, "12xlarge": 110},
    "c8id": {"8xlarge": 82, "12xlarge": 110},
    "c8in": {"8xlarge": 84, "12xlarge": 110},
    "c8ine": {"8xlarge": 84, "12xlarge": 110},
    "d3": {"xlarge": 42, "2xlarge": 92, "4xlarge": 118, "8xlarge": 119},
    "d3en": {
        "xlarge": 24,
        "2xlarge": 58,
        "4xlarge": 118,
        "6xlarge": 118,
        "8xlarge": 118,
        "12xlarge": 119,
    },
    "f2": {"6xlarge": 84, "12xlarge": 114},
    "g4ad": {"xlarge": 12, "2xlarge": 12, "4xlarge": 11, "8xlarge": 10, "16xlarge": 6},
    "g4dn": {"xlarge": 39},
    "g5": {"xlarge": 4, "2xlarge": 17, "4xlarge": 34, "8xlarge": 84, "12xlarge": 107},
    "g6": {"8xlarge": 84, "12xlarge": 114},
    "g6e": {"8xlarge": 84, "12xlarge": 112},
    "g7": {"8xlarge": 82, "12xlarge": 110},
    "g7e": dict.fromkeys(
        ("2xlarge", "4xlarge", "8xlarge", "12xlarge", "24xlarge", "48xlarge"), 120
    ),
    "gr6": {"8xlarge": 84},
    "hpc7g": {"4xlarge": 118, "8xlarge": 118, "16xlarge": 118},
    "i3en": {"large": 5, "xlarge": 12, "2xlarge": 28},
    "i4i": {
        "large": 0,
        "xlarge": 6,
        "2xlarge": 26,
        "4xlarge": 52,
        "8xlarge": 112,
        "12xlarge": 112,
        "16xlarge": 120,
        "24xlarge": 105,
        "32xlarge": 120,
        "metal": 120,
    },
    "i7i": {"8xlarge": 84, "12xlarge": 84},
    "i7ie": {"large": 19, "xlarge": 27, "2xlarge": 27, "3xlarge": 27},
    "i8ge": {"large": 19, "xlarge": 27, "2xlarge": 27, "3xlarge": 25},
    "inf1": {"xlarge": 38},
    "inf2": {"8xlarge": 84},
    "p5": {"48xlarge": 120},
    "p5e": {"48xlarge": 120},
    "p5en": {"48xlarge": 120},
    "p6-b200": {"48xlarge": 120},
    "p6-b300": {"48xlarge": 120},
    "trn1": {"2xlarge": 17},
    "trn1n": {"32xlarge": 120},
    "u-3tb1": {"56xlarge": 6},
    "x2gd": {"medium": 10},
    "x2iedn": {"xlarge": 11, "2xlarge": 27, "8xlarge": 114},
    "x2iezn": {"2xlarge": 62, "4xlarge": 114, "6xlarge": 114, "8xlarge": 114, "12xlarge": 107},
    "x8aedz": {"12xlarge": 106},
    "x8i": {"8xlarge": 82, "12xlarge": 110},
    "z1d": {"large": 13, "xlarge": 28, "2xlarge": 58, "3xlarge": 54, "12xlarge": 107},
}


def branch_interfaces_of(row: TypeRow) -> int:
    """Return how many pods can have their own interface on an instance of the type."""
    family, _, size = row["name"].partition(".")
    xen = row["labels"].get(keys.INSTANCE_HYPERVISOR) == "xen"
    if xen or family in _WITHOUT or family.startswith(_WITHOUT_LETTERS):
        return 0
    listed = _LISTED.get(family, {}).get(size)
    if listed is not None:
        return listed
    own = row["network"]["interfaces"]
    return max(_attached(size, flexible=family.endswith("-flex")) - own, 0)


def _attached(size: str, *, flexible: bool) -> int:
    """Return how many interfaces instances of a size have; zero for an unknown size."""
    few = _ATTACHED_FLEX if flexible else _ATTACHED
    if size in few:
        return few[size]
    times = size.removesuffix("xlarge")
    if not times.isdigit():
        return _FROM_16 if size.startswith("metal") else 0
    return _BELOW_16 if flexible or int(times) < _MANY else _FROM_16

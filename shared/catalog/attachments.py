"""What can be attached to a machine: volumes, and network interfaces for single pods.

Source: https://docs.aws.amazon.com/ebs/latest/userguide/volume_limits.html (2026-11),
https://github.com/kubernetes-sigs/aws-ebs-csi-driver (pkg/cloud/limits, 2026-11).
"""

from collections.abc import Mapping
from typing import Any, Final

Fact = Mapping[str, Any]

# What a machine of the Nitro system attaches, its first network interface left out.
_NITRO: Final = 27
_XEN: Final = 39
_METAL: Final = 31
_ROOT_VOLUMES: Final = 1
# The CNI keeps one interface beyond the first in reserve from the beginning.
_SPARE_INTERFACES: Final = 1
# Of a type about which nobody says anything: that of most.
USUAL_EBS_VOLUMES: Final = _NITRO - _ROOT_VOLUMES - _SPARE_INTERFACES

POD_INTERFACE: Final = "vpc.amazonaws.com/pod-eni"
# Branch interfaces by size of machine, the least of any family that has them; 16xlarge and more
# have the last. Families without trunk interfaces are named, as are machines that are not Nitro.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/security-groups-for-pods.html,
# https://github.com/aws/amazon-vpc-resource-controller-k8s (pkg/aws/vpc/limits.go, 2025-10).
_BRANCHES: Final = {"medium": 4, "large": 9, "xlarge": 18, "2xlarge": 38}
_BRANCHES_BELOW_16: Final = 54
_BRANCHES_ABOVE: Final = 107
# Sizes beyond those: 4xlarge and up, metal, metal-24xl.
_LARGE_SIZES: Final = ("xlarge", "metal", "xl")
_WITHOUT_BRANCHES: Final = ("t", "mac")


def ebs_volumes_of(fact: Fact) -> int:
    """Return how many EBS volumes pods can have attached to a machine of the type.

    EC2 says how many attachments there are and whether network interfaces share them; the root
    volume takes one, and where they are shared one more interface is expected from the start.
    Where EC2 says nothing (older answers), it is 28 of the Nitro system less the first interface,
    instance store disks and accelerators.
    """
    ebs = fact.get("EbsInfo", {})
    limit = ebs.get("MaximumEbsAttachments")
    shared = ebs.get("AttachmentLimitType", "shared") == "shared"
    if fact.get("Hypervisor") == "xen":
        limit, shared = limit or _XEN, False
    elif limit is None:
        limit = _METAL if fact.get("BareMetal") else _NITRO - _devices(fact)
    return max(int(limit) - _ROOT_VOLUMES - (_SPARE_INTERFACES if shared else 0), 0)


def branch_interfaces_of(fact: Fact) -> int:
    """Return how many pods can have a network interface of their own on a machine of the type.

    EC2 does not say; this is the least that machines of the size have.
    """
    family, _, size = fact["InstanceType"].partition(".")
    if fact.get("Hypervisor") == "xen" or family.startswith(_WITHOUT_BRANCHES):
        return 0
    if size in _BRANCHES:
        return _BRANCHES[size]
    if not size.endswith(_LARGE_SIZES):
        return 0
    times = size.removesuffix("xlarge")
    return _BRANCHES_BELOW_16 if times.isdigit() and int(times) < 16 else _BRANCHES_ABOVE


def _devices(fact: Fact) -> int:
    disks = fact.get("InstanceStorageInfo", {})
    own = disks.get("Disks", ()) if disks.get("NvmeSupport", "unsupported") != "unsupported" else ()
    accelerators = (
        *fact.get("GpuInfo", {}).get("Gpus", ()),
        *fact.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()),
    )
    return sum(int(one["Count"]) for one in (*own, *accelerators))

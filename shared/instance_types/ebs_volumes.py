"""How many volumes can be attached to an instance.

Source: https://docs.aws.amazon.com/ebs/latest/userguide/volume_limits.html (2026-11),
https://github.com/kubernetes-sigs/aws-ebs-csi-driver (pkg/cloud/limits, 2026-11).
"""

from collections.abc import Mapping
from typing import Any, Final

Fact = Mapping[str, Any]

# Attachments of a Nitro instance, without its first network interface.
_NITRO: Final = 27
_XEN: Final = 39
_METAL: Final = 31
_ROOT_VOLUMES: Final = 1
# The CNI attaches one spare interface beyond the first from the start.
_SPARE_INTERFACES: Final = 1
# For a type without any facts: the number that most types have.
DEFAULT_EBS_VOLUME_LIMIT: Final = _NITRO - _ROOT_VOLUMES - _SPARE_INTERFACES


def ebs_volume_limit(fact: Fact) -> int:
    """Return how many EBS volumes pods can have attached to an instance of the type.

    EC2 returns the number of attachments and whether network interfaces share them; the root
    volume takes one, and where they are shared one more interface is expected from the start.
    Where EC2 returns nothing (older answers), it is Nitro's limit of 28 less the first interface,
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


def _devices(fact: Fact) -> int:
    disks = fact.get("InstanceStorageInfo", {})
    own = disks.get("Disks", ()) if disks.get("NvmeSupport", "unsupported") != "unsupported" else ()
    accelerators = (
        *fact.get("GpuInfo", {}).get("Gpus", ()),
        *fact.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()),
    )
    return sum(int(accelerator["Count"]) for accelerator in (*own, *accelerators))

"""Formulas for the overhead of an instance, which pods cannot use."""

import math
import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

# Percentage of memory that hypervisor and kernel keep, where it is not measured.
# Source: https://karpenter.sh/v0.31/concepts/settings/ (vmMemoryOverheadPercent, 2023-09).
VM_MEMORY_OVERHEAD_PERCENT: Final = 7.5
# The same as measured on nodes with Amazon Linux, in MiB: the type's memory less the capacity of
# Node.status, or less allocatable and what nodeadm reserves by default. Of several the largest.
# Source, all read 2026-11-29:
# https://github.com/2i2c-org/infrastructure/blob/1097ae3ce6239df9adb945807390848956dfb14f/deployer/commands/generate/resource_allocation/node-capacity-info.json
# and the same at 63cd17e76a52aae984ffb0cf128426044960899f (r5, r7i: capacity),
# https://github.com/aws/karpenter-provider-aws/pull/3940 (m5, t4g: allocatable, in its test),
# https://github.com/aws/karpenter-provider-aws/pull/6184 (c6g, m6g: allocatable),
# https://github.com/aws/karpenter-provider-aws/issues/6611 (i4i: allocatable),
# https://github.com/aws/karpenter-provider-aws/issues/4163 (c5: allocatable),
# https://github.com/aws/karpenter-provider-aws/issues/6453 (c6gd: capacity, less 7.5 percent).
MEASURED_OVERHEAD_MIB: Final[Mapping[str, int]] = {
    "c5.large": 389,
    "c6g.medium": 213,
    "c6gd.16xlarge": 4562,
    "i4i.32xlarge": 32691,
    "m5.large": 467,
    "m6g.medium": 300,
    "r5.xlarge": 1141,
    "r5.4xlarge": 3735,
    "r5.16xlarge": 13956,
    "r7i.xlarge": 1212,
    "r7i.4xlarge": 4311,
    "t4g.small": 197,
    "t4g.medium": 256,
    "t4g.xlarge": 610,
}
# Memory that the Linux kernel reserves on arm64 (CMA).
# Source: https://github.com/aws/karpenter-provider-aws (pkg/providers/instancetype/types.go, 2024).
ARM64_RESERVED_MIB: Final = 64

# Source: https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/ (2026-08):
# memory.available < 100Mi, nodefs.available < 10 %.
EVICTION_MEMORY_MIB: Final = 100
EVICTION_STORAGE_PERCENT: Final = 10

# Source: amazon-eks-ami, nodeadm/internal/kubelet/config.go (2026-08).
KUBE_RESERVED_STORAGE_GIB: Final = 1
# Source: https://karpenter.sh/v0.31/concepts/node-templates/ (root volume when none is given).
ROOT_VOLUME_GIB: Final = 20

# Millionths of a core reserved on cores up to the given number: 6 % of the first, 1 % of the
# second, 0.5 % of the third and fourth, 0.25 % of each one beyond.
_CPU_STEPS: Final = ((1, 60_000), (2, 10_000), (4, 5_000))
_CPU_BEYOND: Final = 2_500


def vm_overhead_mib(memory_mib: int, arch: str, percent: float = VM_MEMORY_OVERHEAD_PERCENT) -> int:
    """Return an estimate of the memory that hypervisor and kernel keep, in MiB.

    Source: https://karpenter.sh/v0.31/concepts/settings/ (2023-09), and for arm64
    https://github.com/aws/karpenter-provider-aws (pkg/providers/instancetype/types.go, 2024).

    Example:
        >>> 8192 - vm_overhead_mib(8192, "amd64")
        7577
    """
    kept = ARM64_RESERVED_MIB if arch == "arm64" else 0
    return kept + math.ceil((memory_mib - kept) * Fraction(str(percent)) / 100)


def kube_reserved_cpu_millis(vcpus: int) -> int:
    """Return the cpu reserved for the kubelet and the container runtime, in millicores.

    Source: https://github.com/awslabs/amazon-eks-ami
    (nodeadm/internal/kubelet/config.go, 2026-08).

    Example:
        >>> kube_reserved_cpu_millis(2), kube_reserved_cpu_millis(48)
        (70, 190)
    """
    total = 0
    below = 0
    for upto, per_core in _CPU_STEPS:
        total += max(0, min(vcpus, upto) - below) * per_core
        below = upto
    total += max(0, vcpus - below) * _CPU_BEYOND
    return -(-total // 1000)


def kube_reserved_memory_mib(max_pods: int) -> int:
    """Return the memory reserved for the kubelet and the container runtime, in MiB.

    Source: https://github.com/awslabs/amazon-eks-ami
    (nodeadm/internal/kubelet/config.go, 2026-08).

    Args:
        max_pods: The limit by network interfaces, also where the kubelet's own limit differs.

    Example:
        >>> kube_reserved_memory_mib(29)
        574
    """
    return 255 + 11 * max_pods


def share_of_capacity(capacity: int, percent: float) -> int:
    """Return the amount of a percentage threshold, with a 32-bit float as the kubelet computes it.

    Args:
        capacity: In base units.

    Source: https://github.com/kubernetes/kubernetes (v1.36.3, pkg/kubelet/eviction/helpers.go
    parsePercentage, pkg/kubelet/eviction/api/types.go GetThresholdQuantity).

    Example:
        >>> share_of_capacity(20 * 2**30, 10) - 2 * 2**30
        32
    """
    return int(capacity * _float32(_float32(percent) / 100))


def eviction_storage_bytes(storage_bytes: int) -> int:
    """Return the part of the root volume that must stay free, in bytes.

    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/
    (2026-08), nodefs.available.
    """
    return share_of_capacity(storage_bytes, EVICTION_STORAGE_PERCENT)


def _float32(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])

"""Applies the disks and kubelet settings of a Provisioner to an instance type."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from shared.instance_types.ami_families import Family
from shared.instance_types.ami_families.al2023 import AL2023
from shared.instance_types.overhead import (
    eviction_storage_bytes,
    kube_reserved_memory_mib,
    share_of_capacity,
)
from shared.model import labels as keys
from shared.model.ec2.instance_types import InstanceType, Overhead
from shared.model.ec2.pod_disks import pod_disk
from shared.model.errors import InvalidManifestError
from shared.model.kubernetes.volumes import EBS_DRIVER, attachable
from shared.model.provisioner import BlockDevice, KubeletConfiguration
from shared.model.quantity import parse_amount
from shared.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from shared.model.values import replace

_GIB: Final = 2**30
_GB: Final = 10**9
_MIB: Final = 2**20
_SIGNALS: Final = {"memory.available": MEMORY, "nodefs.available": EPHEMERAL_STORAGE}


def apply_root_volume(instance_type: InstanceType, volume_size_gib: int) -> InstanceType:
    """Return the type with a root volume of this size, in GiB, instead of the default one."""
    return _with_pod_storage(instance_type, volume_size_gib * _GIB)


def apply_instance_store(instance_type: InstanceType) -> InstanceType:
    """Return the type with its own NVMe disks as the storage of pods; unchanged without any.

    The label counts gigabytes of 10^9 bytes, as EC2's InstanceStorageInfo does.
    """
    size = int(instance_type.labels.get(keys.INSTANCE_LOCAL_NVME, "0")) * _GB
    return _with_pod_storage(instance_type, size) if size else instance_type


def _with_pod_storage(instance_type: InstanceType, size: int) -> InstanceType:
    overhead = instance_type.overhead
    evicted = overhead.eviction_threshold
    if evicted[EPHEMERAL_STORAGE]:
        evicted = _override(evicted, {EPHEMERAL_STORAGE: eviction_storage_bytes(size)})
    return replace(
        instance_type,
        capacity=_override(instance_type.capacity, {EPHEMERAL_STORAGE: size}),
        overhead=replace(overhead, eviction_threshold=evicted),
    )


def apply_disks(
    instance_type: InstanceType, disks: Sequence[BlockDevice], family: Family = AL2023
) -> InstanceType:
    """Return the type with the disks that a Provisioner gives its instances.

    Pods write to a certain disk of the AMI family, which has the image's size where no given disk
    has its device name. Each further disk takes an attachment from pods.
    """
    taken = family.further_disks(disks)
    number = pod_disk(family.name, [disk.device_name for disk in disks])
    size = None if number is None else disks[number].volume_size_gib
    sized = instance_type if size is None else apply_root_volume(instance_type, size)
    if not taken:
        return sized
    capacity = sized.capacity
    ebs = attachable(EBS_DRIVER)
    if capacity[ebs]:
        capacity = _override(capacity, {ebs: max(capacity[ebs] - taken, 0)})
    left = max(instance_type.volume_limit - taken, 0)
    return replace(sized, capacity=capacity, volume_limit=left)


def with_pod_limit(
    kubelet: KubeletConfiguration, instance_type: InstanceType
) -> KubeletConfiguration:
    """Return the settings with `maxPods` where the image would compute another limit.

    Images count network interfaces and their addresses; they ignore prefix delegation, custom
    networking, or a CNI that does not limit pods at all.

    Source: https://github.com/awslabs/amazon-eks-ami (nodeadm/internal/kubelet/config.go, 2026-07).

    Args:
        instance_type: The type as in the catalog.
    """
    if kubelet.max_pods is not None or instance_type.image_max_pods is None:
        return kubelet
    return replace(kubelet, max_pods=instance_type.capacity[PODS])


def apply_kubelet(
    instance_type: InstanceType,
    kubelet: KubeletConfiguration,
    *,
    reserves_for_max_pods: bool = False,
) -> InstanceType:
    """Return the type as its instances will be with these kubelet settings.

    `maxPods` replaces the pod limit, `podsPerCore` caps it; `kubeReserved` and `systemReserved`
    replace the resources they name; of `evictionHard` and `evictionSoft` the larger threshold
    replaces the default, a percentage is one of capacity, and 100 % switches the signal off.
    Memory for the kubelet is computed from the limit by network interfaces, unless the image
    reserves it for `maxPods`. Apply it once, to a type of the catalog, after `apply_disks`.

    A flat overhead (a row without its parts) is a minimum: for each resource, the result is the
    larger of it and of the settings.

    Source: https://karpenter.sh/v0.31/concepts/provisioners/ (spec.kubeletConfiguration, 2023-09).

    Raises:
        InvalidManifestError: If a threshold is neither a quantity nor a percentage up to 100 %.
    """
    if kubelet == KubeletConfiguration(cluster_dns=kubelet.cluster_dns):
        return instance_type
    capacity = _override(
        instance_type.capacity, {PODS: _pod_limit(instance_type.capacity, kubelet)}
    )
    before = instance_type.overhead
    reserved = dict((kubelet.kube_reserved or Resources()).items)
    system = dict(kubelet.system_reserved.items)
    if kubelet.reserved_cpus:
        reserved[CPU], system[CPU] = 0, kubelet.reserved_cpus * 1000
    if reserves_for_max_pods and kubelet.max_pods is not None:
        reserved.setdefault(MEMORY, kube_reserved_memory_mib(capacity[PODS]) * _MIB)
    after = Overhead(
        kube_reserved=_override(before.kube_reserved, reserved),
        system_reserved=_override(before.system_reserved, system),
        eviction_threshold=_override(
            before.eviction_threshold, _thresholds(instance_type.capacity, kubelet)
        ),
    )
    if not before.eviction_threshold:
        after = _at_least(before.total, replace(after, kube_reserved=Resources()), reserved)
    return replace(instance_type, capacity=capacity, overhead=after)


def apply_observed(instance_type: InstanceType, observed: Resources) -> InstanceType:
    """Return the type with the allocatable resources that its nodes have reported.

    Observed memory replaces the estimate; of other resources it only lowers the estimate.
    """
    allocatable, overhead = instance_type.allocatable, instance_type.overhead
    excess = {name: max(allocatable[name] - amount, 0) for name, amount in observed.items}
    more = max(observed[MEMORY] - allocatable[MEMORY], 0)
    reserved = overhead.system_reserved + Resources.from_mapping(excess)
    return replace(
        instance_type,
        capacity=instance_type.capacity + Resources.of(memory=more),
        overhead=replace(overhead, system_reserved=reserved),
    )


def _at_least(flat: Resources, set_parts: Overhead, reserved: Mapping[str, int]) -> Overhead:
    """Return parts whose sum is the larger of the flat overhead and the settings."""
    asked = set_parts.total + Resources.from_mapping(reserved)
    return replace(set_parts, kube_reserved=flat.largest(asked) - set_parts.total)


def _pod_limit(capacity: Resources, kubelet: KubeletConfiguration) -> int:
    limit = capacity[PODS] if kubelet.max_pods is None else kubelet.max_pods
    if kubelet.pods_per_core:
        limit = min(limit, kubelet.pods_per_core * (capacity[CPU] // 1000))
    return limit


def _thresholds(capacity: Resources, kubelet: KubeletConfiguration) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for field, thresholds in (
        ("evictionHard", kubelet.eviction_hard),
        ("evictionSoft", kubelet.eviction_soft),
    ):
        for signal, resource in _SIGNALS.items():
            if signal in thresholds:
                where = f"spec.kubeletConfiguration.{field}[{signal}]"
                amount = _threshold(capacity[resource], thresholds[signal], where)
                amounts[resource] = max(amount, amounts.get(resource, 0))
    return amounts


def _threshold(capacity: int, text: str, where: str) -> int:
    """Return one eviction threshold in base units; 100 % means none."""
    try:
        share = Fraction(text.removesuffix("%")) if text.endswith("%") else None
        amount = parse_amount(text) if share is None else share_of_capacity(capacity, float(share))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise _wrong_threshold(where, text) from error
    if amount < 0 or (share is not None and share > 100):
        raise _wrong_threshold(where, text)
    return 0 if share == 100 else amount


def _wrong_threshold(where: str, text: str) -> InvalidManifestError:
    remedy = "write a quantity such as 200Mi or a share from 0% to 100%"
    return InvalidManifestError(field=where, value=text, remedy=remedy)


def _override(base: Resources, amounts: Mapping[str, int]) -> Resources:
    return Resources.from_mapping({**dict(base.items), **amounts})

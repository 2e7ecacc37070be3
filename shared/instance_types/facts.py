"""Translates a row of DescribeInstanceTypes to fields of the catalog.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html (2026-08).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.instance_types.document import GpuRow, NetworkRow, TypeRow
from shared.instance_types.pod_addresses import DEFAULT_NETWORK, PodNetwork, eni_limited_pods
from shared.model import labels as keys

Fact = Mapping[str, Any]

_ARCHES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_NEURON: Final = "aws.amazon.com/neuron"
_NEURON_CORE: Final = "aws.amazon.com/neuroncore"
_GPU_RESOURCES: Final = {
    "nvidia": "nvidia.com/gpu",
    "amd": "amd.com/gpu",
    "habana": "habana.ai/gaudi",
}
# Resource names of accelerators, of all vendors.
ACCELERATORS: Final = (*_GPU_RESOURCES.values(), _NEURON, _NEURON_CORE)
# The bandwidth of the whole instance, if it is one number: not "Up to 25 Gigabit" or "Moderate".
_GIGABITS: Final = re.compile(r"(\d+(?:\.\d+)?) Gigabit")
# Category, then for high-memory types the memory, then the generation: m5, g4dn, u-6tb1.
_FAMILY: Final = re.compile(r"^(?P<category>[a-z]+)(?:-\d+tb)?(?P<generation>\d+)")


def instance_family_of(name: str) -> str:
    """Return family and generation, the part before the dot: `m5` of `m5.large`."""
    return name.split(".", 1)[0]


def arch_of(fact: Fact) -> str | None:
    """Return the Kubernetes name of the architecture, None where Linux nodes cannot run."""
    if "hvm" not in fact.get("SupportedVirtualizationTypes", ("hvm",)):
        return None
    supported = fact["ProcessorInfo"]["SupportedArchitectures"]
    return next((ours for theirs, ours in _ARCHES.items() if theirs in supported), None)


def network_of(fact: Fact) -> NetworkRow:
    """Return the network interfaces of the type, and their addresses."""
    info = fact["NetworkInfo"]
    interfaces = of_default = info["MaximumNetworkInterfaces"]
    default_card = info.get("DefaultNetworkCardIndex", 0)
    for card in info.get("NetworkCards", ()):
        if card.get("NetworkCardIndex", 0) == default_card:
            of_default = card["MaximumNetworkInterfaces"]
    return NetworkRow(
        interfaces=interfaces,
        default_card=of_default,
        addresses=info["Ipv4AddressesPerInterface"],
    )


def max_pods_of(row: TypeRow, network: PodNetwork = DEFAULT_NETWORK) -> int:
    """Return the pod limit from the interfaces of the default network card."""
    return eni_limited_pods(
        row["network"]["default_card"],
        row["network"]["addresses"],
        network,
        vcpus=row["vcpus"],
        nitro=row["labels"].get(keys.INSTANCE_HYPERVISOR) != "xen",
    )


def gpus_of(fact: Fact) -> list[GpuRow]:
    """Return the accelerators that pods can request, sorted by resource name."""
    rows: list[GpuRow] = []
    for gpu in fact.get("GpuInfo", {}).get("Gpus", ()):
        resource = _GPU_RESOURCES.get(gpu["Manufacturer"].lower())
        if resource is not None:
            rows.append(GpuRow(resource=resource, count=_count(gpu), name=gpu["Name"]))
    rows += [
        GpuRow(resource=_NEURON, count=device["Count"], name=device["Name"])
        for device in _neuron_devices(fact)
    ]
    return sorted(rows, key=lambda row: (row["resource"], row["name"], row["count"]))


def neuron_cores_of(fact: Fact) -> dict[str, int]:
    """Return the cores of Neuron devices, which pods can request instead of whole devices.

    Empty where EC2 does not return how many a device has.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
    (2026-11).
    """
    devices = _neuron_devices(fact)
    cores = sum(entry["Count"] * entry.get("CoreInfo", {}).get("Count", 0) for entry in devices)
    return {_NEURON_CORE: cores} if cores else {}


def accelerator_count_of(fact: Fact) -> int:
    """Return how many accelerators of any kind the type has, zero for none."""
    groups = (
        fact.get("GpuInfo", {}).get("Gpus", ()),
        _neuron_devices(fact),
        fact.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()),
        fact.get("MediaAcceleratorInfo", {}).get("Accelerators", ()),
        fact.get("FpgaInfo", {}).get("Fpgas", ()),
    )
    return max(sum(_count(entry) for entry in group) for group in groups)


def labels_of(fact: Fact, *, region: str, arch: str) -> dict[str, str]:
    """Return the well-known labels that every instance of the type has, keys sorted.

    A property that the type does not have is an absent label (DoesNotExist), never an empty one.
    Units: memory and GPU memory in MiB, local NVMe in GB, network bandwidth (baseline of all
    cards together) and EBS bandwidth (maximum, where every instance has it) in Mbps, clock speed in
    MHz.

    Source: https://karpenter.sh/docs/concepts/scheduling/#well-known-labels (2026-11) and
    https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/instancetype/types.go
    (computeRequirements).
    """
    name = fact["InstanceType"]
    family, _, size = name.partition(".")
    labels = {
        keys.INSTANCE_TYPE: name,
        keys.ARCH: arch,
        keys.OS: "linux",
        keys.REGION: region,
        keys.INSTANCE_FAMILY: family,
        keys.INSTANCE_SIZE: size,
        keys.INSTANCE_CPU: str(fact["VCpuInfo"]["DefaultVCpus"]),
        keys.INSTANCE_MEMORY: str(fact["MemoryInfo"]["SizeInMiB"]),
        keys.INSTANCE_ENCRYPTION: _text(fact["NetworkInfo"].get("EncryptionInTransitSupported")),
        keys.INSTANCE_FLEX: _text("-flex" in family),
    }
    match = _FAMILY.match(family)
    if match is not None:
        labels[keys.INSTANCE_CATEGORY] = match["category"]
        labels[keys.INSTANCE_GENERATION] = match["generation"]
    if fact.get("Hypervisor"):
        labels[keys.INSTANCE_HYPERVISOR] = fact["Hypervisor"]
    bandwidth = _bandwidth_mbps(fact)
    if bandwidth:
        labels[keys.INSTANCE_NETWORK_BANDWIDTH] = str(bandwidth)
    storage = fact.get("InstanceStorageInfo", {})
    if storage.get("NvmeSupport", "unsupported") != "unsupported":
        labels[keys.INSTANCE_LOCAL_NVME] = str(storage["TotalSizeInGB"])
    labels |= _processor_labels(fact) | _gpu_labels(fact) | _accelerator_labels(fact)
    return dict(sorted(labels.items()))


def _processor_labels(fact: Fact) -> dict[str, str]:
    """Return the labels of CPU manufacturer, clock speed and EBS bandwidth."""
    processor, disks = fact["ProcessorInfo"], fact.get("EbsInfo", {})
    labels = {}
    if processor.get("Manufacturer"):
        labels[keys.INSTANCE_CPU_MANUFACTURER] = _slug(processor["Manufacturer"])
    if processor.get("SustainedClockSpeedInGhz"):
        megahertz = round(processor["SustainedClockSpeedInGhz"] * 1000)
        labels[keys.INSTANCE_CLOCK_SPEED] = str(megahertz)
    if disks.get("EbsOptimizedSupport") == "default" and disks.get("EbsOptimizedInfo"):
        megabits = disks["EbsOptimizedInfo"]["MaximumBandwidthInMbps"]
        labels[keys.INSTANCE_EBS_BANDWIDTH] = str(megabits)
    return labels


def _gpu_labels(fact: Fact) -> dict[str, str]:
    gpus = fact.get("GpuInfo", {}).get("Gpus", ())
    if len(gpus) != 1:
        return {}
    gpu = gpus[0]
    return {
        keys.INSTANCE_GPU_NAME: _slug(gpu["Name"]),
        keys.INSTANCE_GPU_MANUFACTURER: _slug(gpu["Manufacturer"]),
        keys.INSTANCE_GPU_COUNT: str(_count(gpu)),
        keys.INSTANCE_GPU_MEMORY: str(gpu["MemoryInfo"]["SizeInMiB"]),
    }


def _accelerator_labels(fact: Fact) -> dict[str, str]:
    accelerators = fact.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    devices = accelerators or _neuron_devices(fact)
    if len(devices) != 1:
        return {}
    device = devices[0]
    return {
        keys.INSTANCE_ACCELERATOR_NAME: _slug(device["Name"]),
        keys.INSTANCE_ACCELERATOR_MANUFACTURER: _slug(device.get("Manufacturer", "AWS")),
        keys.INSTANCE_ACCELERATOR_COUNT: str(device["Count"]),
    }


def _neuron_devices(fact: Fact) -> list[Fact]:
    """Return Inferentia and Trainium devices; older answers have only Inferentia."""
    devices = fact.get("NeuronInfo", {}).get("NeuronDevices")
    if devices is not None:
        return list(devices)
    inference = fact.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    return [entry for entry in inference if entry.get("Manufacturer") == "AWS"]


def _count(device: Fact) -> int:
    """Return the number of devices; a slice of one GPU counts as one device."""
    return max(1, int(device["Count"]))


def _bandwidth_mbps(fact: Fact) -> int:
    """Return the baseline of all network cards together, at most that of the instance.

    For some types each card repeats the figure of the instance, as for c6in.32xlarge: two cards of
    200 Gbit/s, and `NetworkPerformance` is "200 Gigabit".

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkInfo.html and
    https://docs.aws.amazon.com/ec2/latest/instancetypes/co.html (2026-11).
    """
    network = fact["NetworkInfo"]
    cards: Iterable[Fact] = network.get("NetworkCards", ())
    gbps = sum(float(card.get("BaselineBandwidthInGbps", 0)) for card in cards)
    whole = _GIGABITS.fullmatch(network.get("NetworkPerformance", ""))
    return round(min(gbps, float(whole[1]) if whole else gbps) * 1000)


def _text(value: object) -> str:
    return "true" if value else "false"


def _slug(name: str) -> str:
    """Return the name as a label value: lower case, dashes for anything else."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")

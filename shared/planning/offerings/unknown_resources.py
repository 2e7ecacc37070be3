"""Resources that no instance type has: what they are, and what to do."""

from collections.abc import Iterable
from typing import Final

_ELSEWHERE: Final = "run such pods on nodes that Dovetail does not launch"
# What a resource is, and what to do, by the prefix of its name.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html,
# https://docs.aws.amazon.com/eks/latest/userguide/security-groups-for-pods.html,
# https://kubernetes.io/docs/tasks/manage-hugepages/scheduling-hugepages/,
# https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html,
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-device-plugin.html
# (2026-11).
_MEANINGS: Final = {
    "vpc.amazonaws.com/efa": (
        f"an EFA interface, with which Dovetail launches no instance: {_ELSEWHERE}"
    ),
    "vpc.amazonaws.com/pod-eni": (
        "an interface for security groups of pods: with ENABLE_POD_ENI of the VPC CNI, set "
        "pod_interfaces"
    ),
    "vpc.amazonaws.com/PrivateIPv4Address": (
        f"an address of a Windows node, which Dovetail does not launch: {_ELSEWHERE}"
    ),
    "hugepages-": (
        "huge pages, which a node has where its system reserves some: ask for memory, or "
        f"{_ELSEWHERE}"
    ),
    "nvidia.com/mig-": (
        "a part of a GPU (MIG), which a node has once its GPUs are divided: ask for "
        f"nvidia.com/gpu, or {_ELSEWHERE}"
    ),
    "nvidia.com/gpu.shared": (
        "a GPU in time slices by the name that renameByDefault gives: set that to false and ask "
        "for nvidia.com/gpu; each counts as a whole GPU"
    ),
    "aws.amazon.com/neurondevice": ("the former name of aws.amazon.com/neuron: ask for that"),
    "": f"a device plugin may show it on nodes that run: {_ELSEWHERE}, or leave it out",
}


def unknown_resources(names: Iterable[str]) -> str:
    """Return a message: no instance type has these resources, what they are, and what to do."""
    return "; ".join(f"no instance type has {name}: {_meaning(name)}" for name in names)


def _meaning(name: str) -> str:
    return next(text for start, text in _MEANINGS.items() if name.startswith(start))

"""How many pods a machine has addresses for.

Source: https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html,
https://docs.aws.amazon.com/eks/latest/userguide/cni-increase-ip-addresses.html (2026-11),
https://github.com/awslabs/amazon-eks-ami (nodeadm/internal/kubelet/eni_max_pods.go, 2026-08).
"""

from dataclasses import dataclass
from typing import Final

# Pods of the host's network that every node has: the CNI itself and kube-proxy.
_HOST_PODS: Final = 2
_PREFIX_ADDRESSES: Final = 16
# What Kubernetes recommends a node to have at most, by its size.
_FEW_VCPUS: Final = 30
_MOST_FEW, _MOST_MANY = 110, 250


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNetwork:
    """How the VPC CNI of a cluster is set up.

    Attributes:
        prefix_delegation: Whether an interface gets prefixes of 16 addresses instead of single
            ones (ENABLE_PREFIX_DELEGATION); only Nitro machines can.
        reserved_interfaces: Interfaces kept from pods (custom networking: 1).
        density_limited: Whether addresses limit pods at all; else 110 a node.
        pod_interfaces: Whether pods may ask for interfaces of their own (ENABLE_POD_ENI).
    """

    prefix_delegation: bool = False
    reserved_interfaces: int = 0
    density_limited: bool = True
    pod_interfaces: bool = False


DEFAULT_NETWORK: Final = PodNetwork()


def eni_limited_pods(
    interfaces: int,
    ipv4_per_interface: int,
    network: PodNetwork = DEFAULT_NETWORK,
    *,
    vcpus: int = 0,
    nitro: bool = True,
) -> int:
    """Return how many pods get an address: those of the interfaces, and two of the host's network.

    Args:
        interfaces: Network interfaces of the default network card.
        ipv4_per_interface: IPv4 addresses of each, the primary one included.
        network: How the cluster's CNI is set up.
        vcpus: Of the machine; with prefixes, nodes get 110 pods up to 30, 250 beyond.
        nitro: Whether the machine is one of the Nitro system.

    Example:
        >>> eni_limited_pods(3, 10)
        29
        >>> eni_limited_pods(3, 10, PodNetwork(prefix_delegation=True), vcpus=2)
        110
    """
    if not network.density_limited:
        return _MOST_FEW
    usable = max(interfaces - network.reserved_interfaces, 0)
    if usable == 0:
        return 0
    addresses = usable * (ipv4_per_interface - 1)
    if network.prefix_delegation and nitro:
        most = _MOST_FEW if vcpus <= _FEW_VCPUS else _MOST_MANY
        return min(addresses * _PREFIX_ADDRESSES + _HOST_PODS, most)
    return max(0, addresses + _HOST_PODS)

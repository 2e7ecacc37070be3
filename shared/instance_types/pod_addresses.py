"""How many pods an instance has addresses for.

Source: https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html,
https://docs.aws.amazon.com/eks/latest/userguide/cni-increase-ip-addresses.html (2026-11),
https://github.com/awslabs/amazon-eks-ami (nodeadm/internal/kubelet/eni_max_pods.go, 2026-08).
"""

from typing import Final

from msgspec import Struct

# Pods with host network on every node: the CNI and kube-proxy.
_HOST_PODS: Final = 2
_PREFIX_ADDRESSES: Final = 16
# The most pods of a node that Kubernetes recommends, by vCPUs.
_FEW_VCPUS: Final = 30
_MOST_FEW, _MOST_MANY = 110, 250


class PodNetwork(Struct, frozen=True, kw_only=True):
    """The setup of a cluster's VPC CNI.

    Attributes:
        prefix_delegation: Whether an interface gets prefixes of 16 addresses instead of single
            addresses (ENABLE_PREFIX_DELEGATION); only on Nitro instances.
        reserved_interfaces: Interfaces that pods cannot use (custom networking: 1).
        density_limited: Whether addresses limit pods at all; else 110 a node.
        pod_interfaces: Whether pods may have their own interfaces (ENABLE_POD_ENI).
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
    """Return the pod limit: the addresses of the interfaces, and two pods with host network.

    Args:
        interfaces: Network interfaces of the default network card.
        ipv4_per_interface: IPv4 addresses of each, the primary address included.
        network: The setup of the cluster's CNI.
        vcpus: vCPUs of the instance; with prefixes, nodes get 110 pods up to 30, 250 beyond.
        nitro: Whether the instance uses the Nitro system.

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
